"""Whose request it is, and one log line for each."""

from __future__ import annotations

import time

from workbench_foundation import log
from workbench_foundation.keys import App, Receive, Scope, Send

SESSION = "X-Session-ID"
EPISODE = "X-Episode-ID"
TRACE = "X-Trace-ID"

#: Longer values of such headers are no ids; they are cut in the log.
_ID_CHARS = 100


class Logged:
    """Logs every request but those for health, and its ids with it.

    Args:
        app: what answers.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        status, started = 0, time.monotonic()

        async def watched(message: Scope) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        def of(name: str) -> str:
            return headers.get(name.lower(), b"").decode("latin-1")[:_ID_CHARS]

        with log.about(episode_id=of(EPISODE), trace_id=of(TRACE), session_id=of(SESSION)):
            try:
                await self._app(scope, receive, watched)
            finally:
                took_ms = round((time.monotonic() - started) * 1000, 1)
                at = {"method": scope["method"], "path": scope["path"]}
                log.info("request", **at, status=status, took_ms=took_ms)
