"""The host: holds an environment, and answers on a Unix socket who attaches to it."""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import trio

from harness_core.errors import BadInput, HarnessError, Unavailable
from harness_core.groups import lone_error, unwrap
from harness_core.hosting._turns import Turns
from harness_core.hosting._wire import decode, encode, error_as_json, reachable
from harness_core.process import Run
from harness_core.suites import find_root

__all__ = ["CARD", "SOCKET", "Environment", "Host", "open_host"]

#: In the directory of the run that holds the environment.
SOCKET: Final = "host.sock"
CARD: Final = "host.json"

#: Longest request; a test sends the environment of a process, some kilobytes.
_LINE_BYTES: Final = 4 * 1024 * 1024
_RECEIVE_BYTES: Final = 65_536
_BACKLOG: Final = 64

#: ``struct ucred``: pid, uid, gid.
_CREDENTIALS: Final = struct.Struct("3i")


class Environment(Protocol):
    """What a suite boots and a host holds."""

    def describe(self) -> Mapping[str, Any]:
        """Everything a user needs to reach it, as JSON; ``parts`` lists its parts for people.

        A part has ``name``, ``kind``, ``state``, ``address``, ``pid``, ``log`` and ``urls``, and
        ``container`` when it is one.
        """

    async def act(self, part: str, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Do something to a part: start, stop, kill, pause, resume, restart, and what it knows."""

    async def mend(self) -> Sequence[str]:
        """Put right what a user left broken; says what that was."""


Opener = Callable[[], AbstractAsyncContextManager[Environment]]


class Host:
    """Holds an environment for its users; built only by :func:`open_host`.

    Attributes:
        path: the control socket.
        stopping: set when somebody asked it to end.
    """

    def __init__(self, opener: Opener, path: Path, nursery: trio.Nursery) -> None:
        self.path = path
        self.stopping = trio.Event()
        self._opener = opener
        self._nursery = nursery
        self._turns = Turns()
        self._lines = itertools.count(1)
        self._closing = trio.Event()
        self._closed = trio.Event()
        self._asked = False
        self._opened = trio.Event()
        self._environment: Environment | None = None
        self._failure: BaseException | None = None
        self._mended: list[str] = []

    async def environment(self) -> Environment:
        """What it holds, opened when the first user asks for it.

        Raises:
            HarnessError: it could not be opened; every later user is told the same.
        """
        if not self._asked:
            self._asked = True
            self._nursery.start_soon(self._hold)
        await self._opened.wait()
        if self._environment is None:
            raise self._failure or HarnessError("open the environment", observed="it was closed")
        return self._environment

    @property
    def is_open(self) -> bool:
        """Whether the environment is there to be used."""
        return self._environment is not None

    @property
    def mended(self) -> tuple[str, ...]:
        """What users that died had left broken, one line each."""
        return tuple(self._mended)

    async def close(self) -> None:
        """Close the environment, when it was opened.

        Raises:
            HarnessError: what went wrong on the way out.
        """
        self._closing.set()
        if not self._asked:
            return
        await self._closed.wait()
        if self._failure is not None and self._environment is not None:
            raise self._failure

    async def _hold(self) -> None:
        """Keep it open, in one task, since it may hold nurseries of its own."""
        try:
            async with self._opener() as environment:
                self._environment = environment
                self._opened.set()
                await self._closing.wait()
        except BaseException as error:
            self._failure = unwrap(error)
            if isinstance(error, trio.Cancelled):
                raise
        finally:
            self._opened.set()
            self._closed.set()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one user until it hangs up; that cuts off what it asked for, and ends its turn."""
        who = next(self._lines)
        name = f"line {who}"
        async with stream:
            if not _is_ours(stream):
                return
            buffer = bytearray()
            try:
                while (line := await _read_line(stream, buffer)) is not None:
                    async with _while_it_listens(stream, buffer):
                        answer = await self._answer(line, who)
                    await stream.send_all(encode(answer))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # it died while it was being answered
            finally:
                with trio.CancelScope(shield=True):
                    await self._take_back(who, name)

    async def _take_back(self, who: int, name: str) -> None:
        """End the turn of a user that hung up; what it left broken alone is put right first."""
        if self._turns.is_alone(who) and self._environment is not None:
            left = await self._environment.mend()
            self._mended.extend(f"{name}: {line}" for line in left)
        self._turns.leave(who)

    async def _answer(self, line: bytes, who: int) -> dict[str, Any]:
        try:
            request = decode(line)
            return {"answer": await self._do(request, who)}
        except trio.Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - a process edge: told to whoever asked
            return {"error": error_as_json(unwrap(error))}

    async def _do(self, request: Mapping[str, Any], who: int) -> Any:
        match request.get("ask"):
            case "describe":
                if request.get("only_if_open") and not self._opened.is_set():
                    return None
                return dict((await self.environment()).describe())
            case "enter":
                await self._turns.enter(who, alone=bool(request.get("alone")))
            case "leave":
                self._turns.leave(who)
            case "act":
                environment = await self.environment()
                arguments = request.get("arguments") or {}
                return await environment.act(request["part"], request["verb"], arguments)
            case "mend":
                return list(await (await self.environment()).mend())
            case "stop":
                self.stopping.set()
            case other:
                known = "describe, enter, leave, act, mend or stop"
                raise BadInput("host", key="ask", found=other, expected=known)
        return None


@asynccontextmanager
async def open_host(
    run: Run,
    opener: Opener,
    *,
    title: str,
    staged: bool = False,
    root: Path | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> AsyncIterator[Host]:
    """Hold an environment and serve its control socket for the block.

    The environment is opened when somebody first asks for it.

    Args:
        run: the run it belongs to; the socket lies in its directory.
        opener: opens the environment.
        title: what ``harness ps`` calls it, e.g. the name of its suite.
        staged: a person holds it, and may ask it to stop.
        root: the tree it belongs to; that of the current folder when left out.
        say: told what was found broken by users that died.

    Raises:
        HarnessError: at the end of the block: the environment could not be closed cleanly.
    """
    path = run.ledger.directory / SOCKET
    listener = _listen(path)
    card = run.ledger.directory / CARD
    content = {
        "title": title,
        "staged": staged,
        "since": time.time(),
        "root": str(root or _root_here()),
    }
    card.write_text(json.dumps(content), encoding="utf-8")
    async with trio.open_nursery() as nursery:
        host = Host(opener, path, nursery)
        serving = trio.CancelScope()

        async def accept() -> None:
            with serving:
                await trio.serve_listeners(
                    host.serve, [trio.SocketListener(trio.socket.from_stdlib_socket(listener))]
                )

        nursery.start_soon(accept)
        try:
            yield host
        finally:
            with trio.CancelScope(shield=True):
                serving.cancel()
                path.unlink(missing_ok=True)
                card.unlink(missing_ok=True)
                for line in host.mended:
                    say(f"put right after a user that died: {line}")
                await host.close()


def _root_here() -> Path:
    try:
        return find_root(Path.cwd())
    except Unavailable:
        return Path.cwd()


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Bound under another name: between bind and chmod nobody can come in by the right one.
    unnamed = path.with_name(f".{path.name}")
    with reachable(unnamed) as name:
        listener.bind(name)
    unnamed.chmod(0o600)
    listener.listen(_BACKLOG)
    unnamed.rename(path)
    return listener


def _is_ours(stream: trio.SocketStream) -> bool:
    """Whether the other side is this user, or root."""
    given = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    assert isinstance(given, bytes)
    return _CREDENTIALS.unpack(given)[1] in {0, os.getuid()}


@asynccontextmanager
async def _while_it_listens(stream: trio.SocketStream, buffer: bytearray) -> AsyncIterator[None]:
    """Cancel the block when the other side hangs up.

    Raises:
        trio.ClosedResourceError: it did.
    """

    async def listen() -> None:
        while len(buffer) <= _LINE_BYTES:
            data = await stream.receive_some(_RECEIVE_BYTES)
            if not data:
                raise trio.ClosedResourceError("it hung up")
            buffer.extend(data)

    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        yield
        nursery.cancel_scope.cancel()


async def _read_line(stream: trio.SocketStream, buffer: bytearray) -> bytes | None:
    """The next whole line; ``None`` at the end, also in the middle of a line."""
    while (at := buffer.find(b"\n")) < 0:
        if len(buffer) > _LINE_BYTES:
            return None
        try:
            data = await stream.receive_some(_RECEIVE_BYTES)
        except trio.BrokenResourceError:
            return None
        if not data:
            return None
        buffer += data
    line = bytes(buffer[:at])
    del buffer[: at + 1]
    return line
