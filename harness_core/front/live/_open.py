"""Starting the page as a process beside what is held."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from harness_core.base.evidence import Evidence
from harness_core.front.live._spans import spans_written
from harness_core.process import Child, Run

__all__ = ["TOKEN_VARIABLE", "open_page"]

#: How the page is told its token: no command line, which every user of the machine can read.
TOKEN_VARIABLE: Final = "HARNESS_PAGE_TOKEN"  # noqa: S105 - a name, no secret

_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 128

#: The kernel gives up a client that reads nothing for so long; a browser reads also in the background.
_UNREAD_MS: Final = 10_000

#: What the kernel keeps for a client that is slow.
_SEND_BYTES: Final = 131_072


@asynccontextmanager
async def open_page(
    run: Run,
    socket: Path,
    *,
    title: str,
    evidence: Evidence,
    say: Callable[[str], None],
) -> AsyncIterator[str]:
    """Serve the page for the block, on a free port of 127.0.0.1, and say where it is; yields that line.

    Args:
        run: that holds something.
        socket: its control socket.
        title: the name of the suite.
        evidence: what its processes write; the page's own log goes there too.
        say: gets a line with the address; the token in it opens the page to whoever has it.
    """
    token = secrets.token_urlsafe(32)
    evidence.redactor.add(token)
    command = [sys.executable, "-m", "harness_core.front.live", str(socket), str(os.getpid())]
    with _listening() as listener, spans_written(evidence):
        port = listener.getsockname()[1]
        async with (
            run.child(
                [*command, str(evidence.path), title],
                name="page",
                env={**os.environ, TOKEN_VARIABLE: token},
                evidence=evidence,
                listen=[listener],
            ) as page,
            trio.open_nursery() as nursery,
        ):
            where = f"page: http://{_LOOPBACK}:{port}/?token={token}"
            say(where)
            nursery.start_soon(_watch, page, say)
            yield where
            nursery.cancel_scope.cancel()


async def _watch(page: Child, say: Callable[[str], None]) -> None:
    """A page that has ended is said once, and changes nothing else."""
    status = await page.wait()
    say(f"the page has ended with {status}; all else goes on ({page.log})")


def _listening() -> socket.socket:
    listener = socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG)
    # Connections inherit both.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    return listener
