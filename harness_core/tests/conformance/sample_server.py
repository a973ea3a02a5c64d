"""A small web server of the standard library: what a sample stack is made of.

It is a program that runs anywhere a Python is, also where nothing of this package is: it imports
nothing but the standard library.

    sample_server.py serve HOST PORT     answer until SIGTERM
    sample_server.py once                look for what it needs, say so, end
"""

import http.server
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

#: One look at a neighbour.
LOOK_S = 1.0


class Handler(http.server.BaseHTTPRequestHandler):
    """Health, what it was given, and notes that survive it."""

    def do_GET(self) -> None:
        """``/health``, ``/environment``, ``/notes``."""
        if self.path == "/health":
            missing = [name for name in needed() if not answers(name)]
            status = 503 if missing else 200
            self.answer(status, {"status": "unhealthy" if missing else "healthy", "no": missing})
        elif self.path == "/environment":
            self.answer(200, dict(os.environ))
        elif self.path == "/notes":
            self.answer(200, notes().read_text().splitlines() if notes().exists() else [])
        else:
            self.answer(404, {"detail": "no such path"})

    def do_POST(self) -> None:
        """``/notes``: one more line."""
        text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        with notes().open("a") as file:
            file.write(f"{text}\n")
        print("noted", text, flush=True)
        self.answer(201, {"noted": text})

    def answer(self, status: int, body: object) -> None:
        """JSON."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Its log says what it does, not who asked."""


def notes() -> Path:
    """Where notes are kept."""
    return Path(os.environ["SAMPLE_DATA"]) / "notes.txt"


def needed() -> list[str]:
    """What it needs: URLs, or ``host:port``."""
    return os.environ.get("SAMPLE_NEEDS", "").split()


def answers(name: str) -> bool:
    """Whether a neighbour is there."""
    try:
        if name.startswith("http://"):
            with urllib.request.urlopen(name, timeout=LOOK_S) as response:
                return bool(response.status == 200)
        host, _, port = name.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=LOOK_S):
            return True
    except (OSError, urllib.error.URLError) as error:
        print(f"{name}: {error}", flush=True)
        return False


def main() -> int:
    """Serve, or look once."""
    if sys.argv[1] == "once":
        missing = [name for name in needed() if not answers(name)]
        print("missing:", *missing) if missing else print("found:", *needed())
        return 3 if missing else 0
    if "SAMPLE_FAILS" in os.environ:
        print("I fail because", os.environ["SAMPLE_FAILS"], flush=True)
        return 4
    # The first process of a container ends by a signal only when it says so.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), Handler)
    print("serving, pid", os.getpid(), flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
