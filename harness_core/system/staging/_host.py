"""The control socket of an environment that is up: what another terminal may ask, and how it asks.

A request is a line of JSON, ``{"ask": "describe"}`` say; its answer is ``{"answer": …}`` or
``{"error": "…"}``. ``_words.py`` has the words.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import trio
from msgspec import Struct

from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.slowness import patience
from harness_core.base.sockets import short_name
from harness_core.process import Run
from harness_core.system.staging._words import Held

__all__ = ["SOCKET", "Card", "Host", "ask", "open_host", "read_card"]

#: In the directory of the run that holds the environment.
SOCKET: Final = "host.sock"
_CARD: Final = "host.json"

#: Longest request; the longest holds a message.
_LINE_BYTES: Final = 65_536
_BACKLOG: Final = 64

#: An answer takes milliseconds; a process that is stopped never gives one.
_ANSWER_S: Final = 5.0


class Card(Struct, frozen=True, kw_only=True):
    """What is known of an environment without asking for it.

    Attributes:
        title: what ``harness ps`` calls it, e.g. the name of its suite.
        since: when its run began to hold it, in seconds since 1970.
        root: the tree it belongs to.
        staged: a person holds it, and may ask it to stop.
    """

    title: str
    since: float
    root: str
    staged: bool


def read_card(directory: Path) -> Card | None:
    """The card of the environment that a run holds; ``None`` when it holds none.

    Args:
        directory: of the run.
    """
    try:
        return msgspec.json.decode((directory / _CARD).read_bytes(), type=Card)
    except (OSError, msgspec.DecodeError):
        return None


class Host(Held):
    """Answers for an environment; built only by :func:`open_host`.

    Attributes:
        path: the control socket.
    """

    def __init__(self, path: Path, *, staged: bool) -> None:
        super().__init__(staged=staged)
        self.path = path

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one request."""
        async with stream:
            try:
                line = await _line(stream)
                await stream.send_all(await self._reply(line) + b"\n")
            except trio.BrokenResourceError:
                return  # it hung up

    async def _reply(self, line: bytes) -> bytes:
        try:
            return json.dumps(await self.answer(line), default=str).encode()
        except Exception as error:  # noqa: BLE001 - no question may end what is held
            reason = (
                error if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
            )
            return json.dumps({"error": str(reason)}).encode()


async def _line(stream: trio.SocketStream) -> bytes:
    """A request up to its end; of one that is too long, or has none, the beginning."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_BYTES:
        more = await stream.receive_some(_LINE_BYTES - len(line))
        if not more:
            break
        line += more
    return line


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
    host = Host(run.ledger.directory / SOCKET, staged=staged)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(_listen(host.path)))
    file = run.ledger.directory / _CARD
    card = Card(title=title, since=time.time(), root=str(root), staged=staged)
    file.write_bytes(msgspec.json.encode(card))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, host.serve, [listener])
        try:
            yield host
        finally:
            nursery.cancel_scope.cancel()
            host.path.unlink(missing_ok=True)
            file.unlink(missing_ok=True)


def ask(path: Path, word: str, *, seconds: float | None = None, **about: str) -> Any:
    """Ask one thing of the host behind a socket.

    Args:
        path: the socket.
        word: one of ``_words.py``; ``describe`` is answered with ``None`` while it boots.
        seconds: that it has for its answer; 5 when left out.
        about: what the word takes.

    Raises:
        Unavailable: nothing listens there.
        NotReady: it does not answer.
        HarnessError: it has ended, or does not understand.
    """
    action = f"ask the environment behind {path} to {word}"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        _bounded(connection, action, _ANSWER_S if seconds is None else seconds),
    ):
        try:
            with short_name(path) as name:
                connection.connect(name)
        except TimeoutError:
            raise
        except OSError as error:
            raise Unavailable(
                action,
                observed=error.strerror or str(error),
                next_step="It has ended: `harness ps` lists what runs",
            ) from error
        try:
            connection.sendall(json.dumps({"ask": word, **about}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer = json.loads(answers.readline())
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise HarnessError(
                action,
                observed="it hung up",
                next_step="The process that held it has ended; read its output",
            ) from error
    if "error" in answer:
        raise HarnessError(action, observed=answer["error"])
    return answer["answer"]


@contextmanager
def _bounded(connection: socket.socket, action: str, seconds: float) -> Iterator[None]:
    """Give the other side a time to answer in."""
    bound_s = patience(seconds)
    connection.settimeout(bound_s)
    try:
        yield
    except TimeoutError as error:
        raise NotReady(
            action,
            observed=f"no answer within {bound_s:g} s",
            waited_s=bound_s,
            next_step="See whether its process is stopped: `harness ps` shows the pid",
        ) from error


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # No other user may write to it, and so connect (unix(7)): between bind and chmod it has another name.
    unnamed = path.with_name(f".{path.name}")
    with short_name(unnamed) as name:
        listener.bind(name)
    unnamed.chmod(0o600)
    listener.listen(_BACKLOG)
    unnamed.rename(path)
    return listener
