"""Servers of the tests of readiness: real sockets that behave badly on purpose."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from harness_core.base.evidence import open_evidence
from harness_core.process import Run, open_run

#: Listens on the port of its first argument, after its second has come to pass.
LISTENER = """
import os, signal, socket, sys
sock = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind((sys.argv[1], int(sys.argv[2])))
sock.listen()
print("listening", sock.getsockname()[1], flush=True)
if "fork" in sys.argv and os.fork() == 0:
    os.setsid()
    signal.pause()
if "fork" in sys.argv:
    sock.close()
signal.pause()
"""


def listener(port: int, *words: str, host: str = "127.0.0.1") -> list[str]:
    """The command line of a process that listens on ``port``."""
    return [sys.executable, "-Sc", LISTENER, host, str(port), *words]


@pytest.fixture
def listener_argv() -> Callable[..., list[str]]:
    """The command line of a process that listens; its arguments say where."""
    return listener


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Run]:
    """An open run with its ledger in a directory of this test alone."""
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    async with open_run(evidence=open_evidence(tmp_path / "evidence")) as opened:
        yield opened


@pytest.fixture
def serve() -> Callable[..., AbstractAsyncContextManager[int]]:
    """Serve TCP with a handler in the test's own loop; yields the port."""

    @asynccontextmanager
    async def open_server(
        handler: Callable[[trio.SocketStream], Awaitable[None]], *, host: str = "127.0.0.1"
    ) -> AsyncIterator[int]:
        async def handle(stream: trio.SocketStream) -> None:
            async with stream:
                await handler(stream)

        async with trio.open_nursery() as nursery:
            (listening,) = await trio.open_tcp_listeners(0, host=host)
            nursery.start_soon(trio.serve_listeners, handle, [listening])
            yield listening.socket.getsockname()[1]
            nursery.cancel_scope.cancel()

    return open_server
