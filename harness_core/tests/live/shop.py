"""A small shop: a service that passes an order on to the next, logs, and tells of it in spans.

Started as ``shop.py NAME PORT OTLP [NEXT …]``; a process of a test, and nothing of the harness.
"""

import json
import sys
import time
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex

NAME, PORT, OTLP, *NEXT = sys.argv[1:]


def log(text):
    """One line, with its time."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stdout.write(f"{now} {text}\n")
    sys.stdout.flush()


def post(url, body):
    """Send JSON; what is answered."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read()


def span(trace, parent, began, ok):
    """Tell the collector what was done."""
    ours = {
        "traceId": trace,
        "spanId": token_hex(8),
        "parentSpanId": parent,
        "name": f"order at {NAME}",
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(time.time_ns()),
        "status": {"code": 1 if ok else 2},
    }
    service = {"key": "service.name", "value": {"stringValue": NAME}}
    body = {"resourceSpans": [{"resource": {"attributes": [service]}}]}
    body["resourceSpans"][0]["scopeSpans"] = [{"spans": [ours]}]
    try:
        post(f"{OTLP}/v1/traces", body)
    except OSError:
        log("WARNING the collector is away")


class Service(BaseHTTPRequestHandler):
    """Takes orders."""

    def do_GET(self):
        """It is there."""
        self.answer(200, {"name": NAME})

    def do_POST(self):
        """Take an order, and pass it on."""
        order = json.loads(self.rfile.read(int(self.headers["content-length"])))
        began = time.time_ns()
        log(f"INFO order {order['id']}: {order['text']}")
        if order["text"] == "flood":
            for number in range(20_000):
                log(f"INFO line {number} of a flood")
        lost = []
        for url in NEXT:
            try:
                post(url, order)
            except OSError as error:
                log(f"ERROR order {order['id']} is stuck: {error}")
                lost.append(url)
        span(order["id"], "0" * 16, began, not lost)
        self.answer(502 if lost else 200, {"lost": lost})

    def answer(self, status, body):
        """Answer with JSON."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        """Nothing: what is worth a line has one."""


class Counter(ThreadingHTTPServer):
    """Where orders come in."""

    def handle_error(self, request, client_address):
        """Who has been killed meanwhile waits for no answer."""
        log(f"WARNING nobody waits for an answer any more: {sys.exc_info()[1]}")


log(f"INFO {NAME} opens")
Counter(("127.0.0.1", int(PORT)), Service).serve_forever()
