"""An application on a socket that listens, by hypercorn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.types import ASGIApp

__all__ = ["serve_http"]

#: When it stops, connections still open (a hanging call, an idle client) get this long.
_DRAIN_S: Final = 0.2

#: A client that keeps its connection through a slow test must not find it closed.
_KEEP_ALIVE_S: Final = 600


async def serve_http(
    app: ASGIApp, descriptor: int, *, until: Callable[[], Awaitable[None]]
) -> None:
    """Serve until ``until`` returns; no request is logged.

    Args:
        app: what answers.
        descriptor: of a listening socket; taken over.
        until: waits for the end.
    """
    config = Config()
    config.bind = [f"fd://{descriptor}"]
    config.graceful_timeout = _DRAIN_S
    config.keep_alive_timeout = _KEEP_ALIVE_S
    config.loglevel = "WARNING"
    # hypercorn types ASGI by its own names.
    await serve(cast("Any", app), config, shutdown_trigger=until)
