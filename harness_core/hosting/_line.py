"""A connection to a host, from a process that uses what it holds."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from harness_core.bridge import Mutex, anywhere, interruptible
from harness_core.errors import HarnessError, Unavailable
from harness_core.hosting._wire import decode, encode, error_from_json, reachable

__all__ = ["Line", "ask"]

_RECEIVE_BYTES: Final = 65_536


class Line:
    """A connection to the host behind a socket; what it asked for ends with it.

    A turn belongs to the line that entered it: when the process that has the line dies, the host
    puts right what it left broken and gives its turn to the next.

    Args:
        path: the host's socket.

    Raises:
        Unavailable: nobody listens there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = Mutex()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._read = b""
        try:
            with reachable(path) as name:
                self._socket.connect(name)
        except OSError as error:
            self._socket.close()
            raise Unavailable(
                f"reach the host behind {path}",
                observed=error.strerror or str(error),
                next_step="It has ended: `harness ps` lists what runs",
            ) from error

    def __enter__(self) -> Self:
        """Use it as a context manager to have it closed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Hang up; a turn of this line ends."""
        self._socket.close()

    def ask(self, word: str, **fields: Any) -> Any:
        """Ask one thing and wait for its answer.

        Raises:
            HarnessError: what the host could not do; or it has ended.
        """
        with self._mutex:
            try:
                self._socket.sendall(encode({"ask": word, **fields}))
                while b"\n" not in self._read:
                    data = self._socket.recv(_RECEIVE_BYTES)
                    if not data:
                        raise ConnectionResetError("it hung up")
                    self._read += data
            except OSError as error:
                raise HarnessError(
                    f"ask the host of this run to {word}",
                    observed=str(error) or type(error).__name__,
                    next_step="The process that held the environment has ended; read its output",
                ) from error
            line, _, self._read = self._read.partition(b"\n")
        message = decode(line)
        if "error" in message:
            raise error_from_json(message["error"], action=f"ask the host to {word}")
        return message.get("answer")

    @anywhere
    async def ask_in_task(self, word: str, **fields: Any) -> Any:
        """:meth:`ask`, without holding up the caller's event loop.

        When it is cut off, this line hangs up: the host cuts off what it was asked for, and has
        done so when this returns.
        """
        return await interruptible(lambda: self.ask(word, **fields), abort=self._hang_up)

    def _hang_up(self) -> None:
        with suppress(OSError):  # the host was faster
            self._socket.shutdown(socket.SHUT_WR)


def ask(path: Path, word: str, **fields: Any) -> Any:
    """Ask one thing on a connection of its own."""
    with Line(path) as line:
        return line.ask(word, **fields)
