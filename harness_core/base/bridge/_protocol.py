"""A process that is nothing but an asyncio protocol, for a library that knows no other loop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any


def serve_protocol(make: Callable[[Any], asyncio.BaseProtocol], *, descriptor: int) -> None:
    """Serve connections on an inherited listening socket until SIGTERM.

    For the main module of a child process; it takes over the thread and the signal.

    Args:
        make: called with the event loop for each connection.
        descriptor: of the listening socket.
    """
    asyncio.run(_serve(make, socket.socket(fileno=descriptor)))


async def _serve(make: Callable[[Any], asyncio.BaseProtocol], listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with await loop.create_server(lambda: make(loop), sock=listener):
        await stop.wait()
