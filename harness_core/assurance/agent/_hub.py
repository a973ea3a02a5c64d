"""Where the agents of a pytest process connect: it names the running test to all, and takes their data.

It writes down who connected: what runs and was never heard of is found by that.

The hub is a thread, and its file is open from the beginning: a test may replace the file system of
its process with one in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import struct
import time
from pathlib import Path
from typing import Any, Final

from harness_core.base.bridge import Condition, beside
from harness_core.process import start_time

#: A process that is stopped, or busy in C code, answers when it can: a test does not wait for longer.
_ANSWER_S: Final = 1.0

_BYTES: Final = 1 << 16

#: ``struct ucred`` of a socket's other end: its pid, user and group.
_PEER: Final = struct.Struct("3i")


class Hub:
    """A socket that agents connect to; open until :meth:`close`.

    Args:
        path: of the socket.
        into: the file that messages are added to.
        answer_s: seconds in which a process is expected to answer.
    """

    def __init__(self, path: Path, into: Path, *, answer_s: float = _ANSWER_S) -> None:
        self._path = path
        self._answer_s = answer_s
        self._file = into.open("ab", buffering=0)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        path.chmod(0o666)
        self._server.listen(128)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._buffers: dict[socket.socket, bytes] = {}
        self._unanswered: set[socket.socket] = set()
        #: Those that did not answer in time are not waited for until they do.
        self._late: set[socket.socket] = set()
        self._context, self._number = "", 0
        self._closed = False
        self._changed = Condition()
        self._heard(os.getpid())
        self._thread = beside(self._serve, name="harness hub")

    def switch(self, context: str) -> int:
        """Name the test that runs from now on; wait until each process has parted the two.

        Returns:
            How many processes did not answer in time.
        """
        with self._changed:
            self._number += 1
            self._context = context
            self._unanswered = set(self._buffers) - self._late
            for connection in self._buffers:
                # One that is gone is noticed by the thread.
                with contextlib.suppress(OSError):
                    connection.sendall(self._named())
            deadline = time.monotonic() + self._answer_s
            while self._unanswered and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._late |= self._unanswered
            return len(self._late)

    def take(self) -> int:
        """Wait until each process has said what it executed so far in the test that runs."""
        return self.switch(self._context)

    def close(self) -> None:
        """Take what has arrived, and end."""
        self.switch("")
        self._closed = True
        self._thread.join(self._answer_s)
        for connection in list(self._buffers):
            connection.close()
        self._server.close()
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _named(self) -> bytes:
        return (json.dumps({"context": self._context, "number": self._number}) + "\n").encode()

    def _serve(self) -> None:
        while True:
            closed = self._closed
            ready = self._selector.select(timeout=0 if closed else 0.2)
            # Who has gone may have left its words with the kernel: they are read before the end.
            if closed and not ready:
                return
            for key, _ in ready:
                found: Any = key.fileobj
                if found is self._server:
                    self._accept()
                else:
                    self._take(found)

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        # A process that is stopped must not stop the test that stopped it.
        connection.settimeout(_ANSWER_S)
        self._selector.register(connection, selectors.EVENT_READ)
        # One that leaves a message and goes does not wait for the name of the test.
        with self._changed, contextlib.suppress(OSError):
            self._buffers[connection] = b""
            connection.sendall(self._named())
        # As this process sees it: one in namespaces of its own has another pid there.
        pid, _, _ = _PEER.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        )
        self._heard(pid)

    def _heard(self, pid: int) -> None:
        self._file.write(json.dumps({"heard": [pid, start_time(pid)]}).encode() + b"\n")

    def _take(self, connection: socket.socket) -> None:
        try:
            piece = connection.recv(_BYTES)
        except OSError:
            piece = b""
        *lines, rest = (self._buffers[connection] + piece).split(b"\n")
        self._buffers[connection] = rest
        for line in lines:
            message = json.loads(line)
            if message.get("ack") is None:
                self._file.write(line + b"\n")
            elif message["ack"] == self._number:
                self._answered(connection)
        if not piece:
            self._selector.unregister(connection)
            with self._changed:
                del self._buffers[connection]
            self._answered(connection)
            connection.close()

    def _answered(self, connection: socket.socket) -> None:
        with self._changed:
            self._unanswered.discard(connection)
            self._late.discard(connection)
            self._changed.notify_all()
