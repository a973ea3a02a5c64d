"""A foreign ecosystem in one process, made of the reference system: what ``test_foreign`` runs.

It differs from the reference in every respect that a subject file can describe (``subjects/foreign.toml``):
its variables begin with ``HOUSE_``, it listens where it is configured to and starts the butlers on
ports of its own behind that, its tools are called by plain HTTP, and it drops the trace context of
messages.

    python house.py BUTLERS_COMMAND ROSTER
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket  # lint: allow driver: chooses the ports of the butlers behind it
import subprocess  # lint: allow driver: it is itself a product, started by its command line
import sys
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trio

from harness_core.base.errors import NotReady
from suites.e2e.ecosystem.mcp import CannotReach, call_tool, list_tools

#: Variables that are not for the butlers behind.
OURS = ("HOUSE_", "PYTHONPATH")

LISTEN = re.compile(r"HOUSE_(\w+)_LISTEN")


class Door(ThreadingHTTPServer):
    """Takes as many callers at once as come."""

    request_queue_size = 128


class Front(BaseHTTPRequestHandler):
    """Plain HTTP in front of one butler."""

    inside = 0

    def do_GET(self) -> None:
        """``/tools``: what there is to call."""
        self.give(self.tools)

    def do_POST(self) -> None:
        """``/call/TOOL``: the arguments in, the result out."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        tool = self.path.rpartition("/")[2]
        self.give(lambda: self.call(tool, json.loads(body)))

    def tools(self) -> tuple[int, Any]:
        """The tools as rows."""
        found = trio.run(list_tools, self.url())
        return 200, [{"name": name, "input_schema": schema} for name, schema in found.items()]

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[int, Any]:
        """One call, without the trace context of its caller."""
        for section in arguments.values():
            if isinstance(section, dict):
                section.pop("trace_context", None)
        arguments.pop("trace_context", None)
        answer = trio.run(call_tool, self.url(), tool, arguments)
        if answer.is_error:
            return 422, {"error": answer.text}
        return 200, {"result": answer.value}

    def url(self) -> str:
        """Where the butler really listens."""
        return f"http://127.0.0.1:{self.inside}/sse"

    def give(self, ask: Any) -> None:
        """Answer, also when the butler behind does not."""
        try:
            status, value = ask()
        except (CannotReach, NotReady) as error:
            status, value = 503, {"error": str(error)}
        content = json.dumps(value, default=str).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Calls are no news."""


def main(command: str, roster: str) -> int:
    """Run until SIGTERM; then stop the butlers, and say how that went."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    environment["ANTHROPIC_BASE_URL"] = os.environ["HOUSE_MODEL"]
    environment["ANTHROPIC_API_KEY"] = os.environ["HOUSE_MODEL_KEY"]
    environment["BUTLERS_HEARTBEAT__SCHEDULER__INTERVAL_S"] = "3600"
    with ExitStack() as stack:
        fronts = []
        for key, port in os.environ.items():
            if not (match := LISTEN.fullmatch(key)):
                continue
            name = match[1]
            inside = free_port(stack)
            environment[f"BUTLERS_{name}_PORT"] = str(inside)
            environment[f"BUTLERS_{name}_DATABASE_URL"] = os.environ[f"HOUSE_{name}_STORE"]
            if name == "SWITCHBOARD":
                environment["BUTLERS_SWITCHBOARD_URL"] = f"http://127.0.0.1:{inside}/sse"
            handler = type("Front", (Front,), {"inside": inside})
            fronts.append(Door(("127.0.0.1", int(port)), handler))
    butlers = subprocess.Popen([command, "up", "--dir", roster], env=environment)
    for front in fronts:
        threading.Thread(target=front.serve_forever, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: butlers.terminate())
    return butlers.wait()


def free_port(stack: ExitStack) -> int:
    """A port that is held until all have one."""
    held = stack.enter_context(socket.socket())
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
