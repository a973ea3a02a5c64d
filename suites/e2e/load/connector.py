"""MCP over HTTP/SSE with nothing but ``http.client``: what a load process can afford.

Locust runs its users as greenlets, for which it patches sockets; a client that brings an event loop
of its own does not run there. One GET holds the event stream, each message is a POST of its own,
and answers come back on the stream, as the transport has it.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Broken", "Connector"]

_PROTOCOL = "2024-11-05"

#: Longest line of the event stream that is read.
_LINE_BYTES = 4 * 1024 * 1024


class Broken(Exception):  # noqa: N818 - what a connector reports, not a failure of the harness
    """The server did not speak MCP to its end: refused, cut, or late."""


class Connector:
    """One MCP session, kept open.

    Args:
        url: address of the event stream, ``http://127.0.0.1:PORT/sse``.
        timeout_s: longest wait for any one answer.
    """

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._address = urlsplit(url)
        self._timeout_s = timeout_s
        self._stream: http.client.HTTPConnection | None = None
        self._events: Iterator[tuple[str, str]] = iter(())
        self._endpoint = ""
        self._number = 0

    def open(self) -> None:
        """Connect and shake hands."""
        self._stream = self._connection()
        try:
            self._stream.request("GET", self._address.path, headers={"accept": "text/event-stream"})
            response = self._stream.getresponse()
            if response.status != http.client.OK:
                raise Broken(f"the event stream was refused with {response.status}")
            self._events = _events(response)
            name, data = next(self._events, ("", ""))
            if name != "endpoint":
                raise Broken(f"the stream began with {name!r}, expected 'endpoint'")
            self._endpoint = data
            about = {"name": "staging-harness-load", "version": "1"}
            self._ask(
                "initialize",
                {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about},
            )
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Leave."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool; its answer as data.

        Raises:
            Broken: no answer, or one that says that the tool failed.
        """
        try:
            result = self._ask("tools/call", {"name": tool, "arguments": dict(arguments)})
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"{type(error).__name__}: {error}") from error
        text = "".join(part.get("text", "") for part in result.get("content", ()))
        if result.get("isError"):
            raise Broken(f"{tool} refused: {text}")
        structured = result.get("structuredContent")
        if isinstance(structured, dict):
            return structured.get("result", structured)
        return json.loads(text)

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._post({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)})
        # A comment from the server every few seconds keeps the socket alive for ever: the deadline
        # is counted here, not by the socket.
        latest = time.monotonic() + self._timeout_s
        for _, data in self._events:
            body = json.loads(data)
            if body.get("id") == number:
                if "error" in body:
                    raise Broken(f"{method} failed: {body['error'].get('message')}")
                return dict(body["result"])
            if time.monotonic() > latest:
                raise Broken(f"{method}: no answer within {self._timeout_s:g} s")
        raise Broken(f"{method}: the event stream ended before its answer")

    def _post(self, body: Mapping[str, Any]) -> None:
        connection = self._connection()
        try:
            content = json.dumps(body).encode()
            headers = {"content-type": "application/json"}
            connection.request("POST", self._endpoint, body=content, headers=headers)
            status = connection.getresponse().status
        finally:
            connection.close()
        if status not in {http.client.OK, http.client.ACCEPTED}:
            raise Broken(f"a message was refused with {status}")

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "127.0.0.1", self._address.port
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str]]:
    """Name and data of each event; a comment counts as an event without data and is left out."""
    name, data = "message", []
    while line := response.readline(_LINE_BYTES):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text:
            if data:
                yield name, "\n".join(data)
            name, data = "message", []
            continue
        field, _, value = text.partition(":")
        if field == "event":
            name = value.strip()
        elif field == "data":
            data.append(value.removeprefix(" "))
