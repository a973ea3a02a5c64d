"""The API key: asked for before a request is looked at in any other way."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from workbench_foundation import faults, log

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = "X-API-Key"

#: What may be asked without a key.
OPEN = frozenset({"/health", "/openapi.json"})


class KeyRequired:
    """Answers 401 to whoever does not present the key; nothing behind it sees such a request.

    Args:
        app: what is protected.
        key: the key.
    """

    def __init__(self, app: App, *, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(HEADER.lower().encode(), b"")
        if self._fits(given):
            await self._app(scope, receive, send)
            return
        if faults.on("key-checked-late"):
            await self._app(scope, receive, _nowhere)
        problem = "missing" if not given else "wrong"
        log.warning("refused", path=scope["path"], reason=f"{HEADER} is {problem}")
        await refuse(send, 401, f"cannot serve this request: {HEADER} is {problem}. Send the key")

    def _fits(self, given: bytes) -> bool:
        if faults.on("wrong-key-accepted"):
            return bool(given)
        if faults.on("key-prefix-accepted"):
            return bool(given) and self._key.startswith(given)
        if faults.on("key-of-letters-breaks"):
            return hmac.compare_digest(given.decode("latin-1"), self._key.decode())
        return hmac.compare_digest(given, self._key)


async def refuse(send: Send, status: int, detail: str) -> None:
    """Answer with a sentence that says why."""
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _nowhere(message: MutableMapping[str, Any]) -> None:
    """Takes an answer that is withheld."""
