"""A client for the command line: connect, ask one thing, get the answer. Blocking, with deadlines."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Any

from sexpd.errors import SexpdError
from sexpd.frames import LARGEST_CHARS, FrameError, FrameReader, frame
from sexpd.sexpr import ReadError, as_plist, keyword_name, read, write

DEPTH = 1000
CONNECT_S = 3.0


class Client:
    """A connection that has read the handshake; a context manager.

    Raises:
        SexpdError: no answer comes from there, or none of a daemon.
    """

    def __init__(self, host: str, port: int) -> None:
        self._where = f"{host}:{port}"
        self._reader = FrameReader(limit_chars=LARGEST_CHARS)
        try:
            self._socket = socket.create_connection((host, port), timeout=CONNECT_S)
        except OSError as error:
            raise SexpdError(f"cannot reach {self._where}: {error}. Run: sexpd start") from error
        self.handshake = self.receive(seconds=CONNECT_S)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, message: list[Any]) -> None:
        """Send a message."""
        try:
            self._socket.sendall(frame(write(message)))
        except OSError as error:
            raise SexpdError(f"cannot write to {self._where}: {error}. Is it running?") from error

    def receive(self, *, seconds: float) -> dict[str, Any]:
        """The next message, as properties.

        Raises:
            SexpdError: none came in time, or what came is no message.
        """
        until = time.monotonic() + seconds
        try:
            while (payload := self._reader.next()) is None:
                self._socket.settimeout(max(0.001, until - time.monotonic()))
                chunk = self._socket.recv(65536)
                if not chunk:
                    raise SexpdError(f"cannot read from {self._where}: it closed. Read its log")
                self._reader.feed(chunk)
            return as_plist(read(payload, depth=DEPTH)) or {}
        except (OSError, FrameError, ReadError) as error:
            raise SexpdError(f"cannot read from {self._where}: {error}. Read its log") from error

    def ask(self, message: list[Any], *, seconds: float = 100.0) -> dict[str, Any]:
        """Send a message and read the answer.

        Raises:
            SexpdError: it was refused with an error LOG, or was not answered.
        """
        self.send(message)
        answer = self.receive(seconds=seconds)
        payload = as_plist(answer.get("PAYLOAD")) or {}
        if keyword_name(answer.get("TYPE")) == "LOG":
            raise SexpdError(f"the daemon says: {payload.get('TEXT')}")
        return answer
