"""The control socket of an environment that is up: what another terminal may ask, and how it asks.

A request is a line of JSON, ``{"ask": "describe"}`` or ``{"ask": "stop"}``; its answer is
``{"answer": …}`` or ``{"error": "…"}``.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import trio

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.process import Run

__all__ = ["CARD", "SOCKET", "Environment", "Host", "ask", "open_host"]

#: In the directory of the run that holds the environment.
SOCKET: Final = "host.sock"
CARD: Final = "host.json"

#: Longest request; the words are short.
_LINE_BYTES: Final = 4096
_BACKLOG: Final = 64

#: ``sun_path`` on Linux holds 108 bytes with the final zero.
_SOCKET_PATH_BYTES: Final = 107

#: ``struct ucred``: pid, uid, gid.
_CREDENTIALS: Final = struct.Struct("3i")


class Environment(Protocol):
    """What a suite boots, and its tests or ``harness up`` hold."""

    def describe(self) -> Mapping[str, Any]:
        """Its parts for people, as JSON: a list ``parts``.

        A part has ``name``, ``kind``, ``state``, ``address``, ``pid``, ``log`` and ``urls``, and
        ``container`` when it is one.
        """


class Host:
    """Answers for an environment; built only by :func:`open_host`.

    Attributes:
        path: the control socket.
        environment: what it answers for, once that is up.
        stopping: set when somebody asked it to end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment: Environment | None = None
        self.stopping = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one request."""
        async with stream:
            given = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            assert isinstance(given, bytes)
            if _CREDENTIALS.unpack(given)[1] not in {0, os.getuid()}:
                return
            try:
                answer = self._answer(await _read_line(stream))
                await stream.send_all(json.dumps(answer, default=str).encode() + b"\n")
            except trio.BrokenResourceError:
                return  # it hung up

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            word = json.loads(line)["ask"]
        except (ValueError, TypeError, KeyError):
            return {"error": f"found {line[:80]!r}, expected a JSON object with the key `ask`"}
        if word == "describe":
            return {"answer": dict(self.environment.describe()) if self.environment else None}
        if word == "stop":
            self.stopping.set()
            return {"answer": None}
        return {"error": f"found {word!r}, expected describe or stop"}


@asynccontextmanager
async def open_host(
    run: Run, *, title: str, root: Path, staged: bool = False
) -> AsyncIterator[Host]:
    """Serve the control socket of a run for the block.

    Args:
        run: the run that holds the environment; the socket lies in its directory.
        title: what ``harness ps`` calls it, e.g. the name of its suite.
        root: the tree it belongs to.
        staged: a person holds it, and may ask it to stop.
    """
    host = Host(run.ledger.directory / SOCKET)
    card = run.ledger.directory / CARD
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(_listen(host.path)))
    told = {"title": title, "since": time.time(), "root": str(root), "staged": staged}
    card.write_text(json.dumps(told), encoding="utf-8")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, host.serve, [listener])
        try:
            yield host
        finally:
            nursery.cancel_scope.cancel()
            host.path.unlink(missing_ok=True)
            card.unlink(missing_ok=True)


def ask(path: Path, word: str) -> Any:
    """Ask one thing of the host behind a socket.

    Args:
        path: the socket.
        word: ``describe``, answered with ``None`` while it boots, or ``stop``.

    Raises:
        Unavailable: nobody listens there.
        HarnessError: it has ended, or does not understand.
    """
    action = f"ask the environment behind {path} to {word}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with _reachable(path) as name:
                connection.connect(name)
        except OSError as error:
            raise Unavailable(
                action,
                observed=error.strerror or str(error),
                next_step="It has ended: `harness ps` lists what runs",
            ) from error
        try:
            connection.sendall(json.dumps({"ask": word}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline())
        except (OSError, ValueError) as error:
            raise HarnessError(
                action,
                observed="it hung up",
                next_step="The process that held it has ended; read its output",
            ) from error
    if "error" in answer:
        raise HarnessError(action, observed=answer["error"])
    return answer["answer"]


async def _read_line(stream: trio.SocketStream) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and len(line) <= _LINE_BYTES:
        data = await stream.receive_some()
        if not data:
            break
        line += data
    return bytes(line)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Bound under another name: between bind and chmod nobody can come in by the right one.
    unnamed = path.with_name(f".{path.name}")
    with _reachable(unnamed) as name:
        listener.bind(name)
    unnamed.chmod(0o600)
    listener.listen(_BACKLOG)
    unnamed.rename(path)
    return listener


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """A name of a socket that is short enough for the kernel."""
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
