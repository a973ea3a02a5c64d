"""A web process that keeps orders in PostgreSQL: ``python shop.py HOST PORT``, with DATABASE_URL."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg


def rows(statement, *values):
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return connection.execute(statement, values).fetchall()


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/health":
            rows("select 1")
            return self.answer(200, "well")
        return self.answer(200, [list(row) for row in rows("select item, count from orders order by id")])

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            rows("insert into orders (item, count) values (%s, %s) returning id", order["item"], order["count"])
        except psycopg.errors.CheckViolation:
            return self.answer(422, "count")
        return self.answer(201, order)

    def do_DELETE(self):
        return self.answer(200, len(rows("delete from orders returning id")))

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Shop).serve_forever()
