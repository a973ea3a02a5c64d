"""HTTP by the standard library: one thread for each connection, one table of routes."""

from __future__ import annotations

import hmac
import json
import os
import re
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote_to_bytes

FAULT = os.environ.get("STORE_FAULT", "")
OPEN = ("/health", "/openapi.json")
BODY_BYTES = 16_000_000


class Refused(Exception):
    """A request that is not carried out: the status, and a sentence."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


class Asked:
    """A request: its body, its query as pairs of texts, the rest of its path, its headers."""

    def __init__(self, body, query, rest, headers):
        self.body, self.query, self.rest, self.headers = body, query, rest, headers


def serve(host, port, *, title, key, names, routes):
    """Serve until SIGTERM.

    routes: {(method, path): (function of Asked, fields of its body or None)}; a path that ends with
    "/" takes what follows it.
    """
    own = {f"127.0.0.1:{port}", f"localhost:{port}", *names}
    routes = {**routes, ("GET", "/openapi.json"): (lambda asked: _document(title, routes), None)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            try:
                status, found = 200, self._carried_out()
                if isinstance(found, tuple):
                    status, found = found
            except Refused as refused:
                status, found = refused.status, {"detail": str(refused)}
            except Exception:
                traceback.print_exc()
                status, found = 500, {"detail": "the service failed"}
            raw = isinstance(found, bytes)
            data = found if raw else json.dumps(found, ensure_ascii=False).encode()
            self.send_response(status)
            self.send_header("content-type", "application/octet-stream" if raw else "application/json")
            self.send_header("content-length", str(len(data)))
            if not self._read:
                self.send_header("connection", "close")
                self.close_connection = True
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = answer

        def _carried_out(self):
            length = self.headers.get("content-length", "0")
            self._read = length == "0" and "transfer-encoding" not in self.headers
            hosts = self.headers.get_all("host") or []
            # What the library makes of the path is another one: it takes slashes away.
            target = self.requestline.split()[1]
            if len(hosts) != 1 or not target.startswith("/"):
                raise Refused(400, "name one Host, and a path")
            if hosts[0].strip(" \t").lower() not in own:
                raise Refused(421, "that is another Host")
            path, _, query = target.partition("?")
            if not (path in OPEN and self.command in ("GET", "HEAD")):
                given = self.headers.get_all("x-api-key") or [""]
                if len(given) != 1 or not _is_key(given[0], key):
                    raise Refused(401, "X-API-Key is missing, or another one")
            (work, fields), rest = _routed(routes, self.command, path)
            if not length.isdecimal() or int(length) > BODY_BYTES:
                raise Refused(413, "the body has no length, or is too long")
            data = self.rfile.read(int(length))
            self._read = True
            body = _body(data, fields) if fields is not None else {}
            return work(Asked(body, _query(query), rest, self.headers))

        def log_message(self, form, *words):
            sys.stderr.write(f"{self.address_string()} {form % words}\n".replace(key, "…"))

    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer((host, port), Handler).serve_forever()


def _is_key(given, key):
    if FAULT == "beginning-of-the-key":
        return bool(given) and key.startswith(given)
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), key.encode())


def _routed(routes, method, path):
    method = "GET" if method == "HEAD" else method
    found = {m: (each, path[len(p):]) for (m, p), each in routes.items()
             if p == path or (p.endswith("/") and path.startswith(p) and path != p)}
    if not found:
        raise Refused(404, "there is no such path")
    if method not in found:
        raise Refused(405, "not by this method")
    return found[method]


def _query(text):
    try:
        return [(text_of(name), text_of(value)) for name, value in
                ((pair.partition("=")[0], pair.partition("=")[2]) for pair in text.split("&") if pair)]
    except UnicodeDecodeError as error:
        raise Refused(422, "the query is no UTF-8") from error


def text_of(escaped):
    """What a part of a URL stands for."""
    return unquote_to_bytes(escaped.replace("+", " ").encode("latin-1", "replace")).decode()


def _body(data, fields):
    def constant(name):
        raise ValueError(name)

    try:
        body = json.loads(data.decode(), parse_constant=constant)
        data.decode() and json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(422, "the body is no JSON") from error
    if not isinstance(body, dict):
        raise Refused(422, "the body is no object")
    if odd := sorted(set(body) - set(fields)):
        raise Refused(422, f"{odd[0]!r} is no field")
    for name, (kind, least, most, default) in fields.items():
        if body.get(name) is None and default is not None:
            body[name] = default
        value = body.get(name)
        if type(value) is not kind:
            raise Refused(422, f"{name} must be there, as a {kind.__name__}")
        if kind is str and not least <= len(value) <= most:
            raise Refused(422, f"{name} must have {least} to {most} characters")
    return body


def _document(title, routes):
    problem = {"type": "object", "required": ["detail"], "properties": {"detail": {"type": "string"}}}
    refusals = {str(each): {"description": "refused", "content": {"application/json": {"schema": problem}}}
                for each in (400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 503)}
    paths = {}
    for (method, path), (work, fields) in routes.items():
        operation = {"summary": re.sub(r"\s+", " ", work.__doc__ or path),
                     "responses": {"200": {"description": "done"}, **refusals}}
        if path.endswith("/"):
            path += "{path}"
            operation["parameters"] = [{"name": "path", "in": "path", "required": True, "schema": {"type": "string"}}]
        if fields is not None:
            kinds = {str: "string", bool: "boolean"}
            properties = {name: {"type": kinds[kind]} for name, (kind, *_) in fields.items()}
            operation["requestBody"] = {"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}
        paths.setdefault(path, {})[method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": title, "version": "1"}, "paths": paths}


