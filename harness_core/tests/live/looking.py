"""A client of the page that is no browser: requests, and the stream as it comes."""

import http.client
import json
import socket
import time

from harness_core.base.slowness import patience


def request(staged, method, path, *, body=None, token=None, **headers):
    """One request: its status, headers and text."""
    connection = http.client.HTTPConnection("127.0.0.1", staged.port, timeout=patience(60))
    token = staged.token if token is None else token
    if token:
        headers.setdefault("authorization", f"Bearer {token}")
    skip = "host" in headers
    connection.putrequest(method, path, skip_host=skip)
    data = b"" if body is None else json.dumps(body).encode()
    for name, value in {**headers, "content-length": str(len(data))}.items():
        connection.putheader(name, value)
    connection.endheaders(data)
    answer = connection.getresponse()
    endless = answer.getheader("content-type", "").startswith("text/event-stream")
    text = "" if endless else answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def post(staged, path, **body):
    """A request of the page's own script."""
    status, _, text = request(staged, "POST", path, body=body)
    return status, text


class Listening:
    """The stream of events, read as far as it is asked for.

    Attributes:
        seen: event name → what came last.
        rows: all rows so far.
    """

    def __init__(self, staged, *, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(patience(60))
        self.socket.connect(("127.0.0.1", staged.port))
        host = f"127.0.0.1:{staged.port}"
        self.socket.sendall(
            f"GET /events HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {staged.token}\r\n\r\n".encode()
        )
        self.seen, self.rows = {}, []
        self._file = self.socket.makefile("rb")
        self._lines = self._read()

    def _read(self):
        status = self._file.readline()
        assert b" 200 " in status, status
        while line := self._file.readline():
            yield line.decode().rstrip("\n")

    def until(self, wanted):
        """Read until ``wanted(self)`` is true; whatever else comes, not for ever."""
        name, ends = "", time.monotonic() + patience(120)
        while not wanted(self):
            assert time.monotonic() < ends, f"it never came; last: {self.rows[-3:]}"
            line = next(self._lines)
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                self.seen[name] = data
                if name == "rows":
                    self.rows += data
        return self

    def part(self, name):
        """A part as it was shown last."""
        return next((each for each in self.seen.get("parts") or () if each["name"] == name), {})

    def close(self):
        """Hang up."""
        self._file.close()
        self.socket.close()
