"""A gateway that serves in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import trio

from harness_core.base.wait import deadline, until
from harness_core.doubles.model import GatewayClient, LedgerEntry
from harness_core.doubles.model._backend import Backend
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._ledger import Ledger
from harness_core.doubles.model._serve import listen, serve
from harness_core.doubles.model.rehearsed import RehearsedBackend
from harness_core.doubles.turns import Rehearsal, say

HAIKU: Final = "claude-haiku-4-5-20251001"
KEY: Final = "sk-ant-harness-0123456789abcdef"
TOKEN: Final = "hgt-0123456789abcdef"
HI: Final[dict[str, Any]] = {
    "model": HAIKU,
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}
PAIN_LOG: Final[dict[str, Any]] = {
    "name": "pain_log",
    "description": "Log a pain.",
    "input_schema": {"type": "object", "properties": {"notes": {"type": "string"}}},
}


def request(text: str, **more: Any) -> dict[str, Any]:
    """A request of the Messages API."""
    return {**HI, "messages": [{"role": "user", "content": text}], **more}


def rehearsed(*rehearsals: Rehearsal) -> RehearsedBackend:
    """A model that answers :data:`HI`, and does what else is given."""
    backend = RehearsedBackend()
    for each in (Rehearsal(message="hi", turns=(say("Understood: hi"),)), *rehearsals):
        backend.stage.load(each)
    return backend


@asynccontextmanager
async def served(
    backend: Backend | None = None,
    *,
    key: str = KEY,
    ledger: Path | None = None,
    budget_usd: float = 1.0,
    hosts: Sequence[str] = (),
    **options,
) -> AsyncIterator[tuple[httpx.AsyncClient, GatewayClient]]:
    """A gateway in this process: a client that holds its key, and its control API.

    Without a backend its model is :func:`rehearsed`.
    """
    listener = listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with trio.open_nursery() as nursery:
        with closing(Ledger(ledger)) as book, deadline("serve a gateway", seconds=20):
            desk = Desk(
                backend=backend or rehearsed(),
                ledger=book,
                budget=Budget(budget_usd),
                api_key=key,
                **options,
            )
            nursery.start_soon(partial(serve, desk, listener, control_token=TOKEN, hosts=hosts))
            async with httpx.AsyncClient(
                base_url=url, headers={"x-api-key": key}, timeout=20, trust_env=False
            ) as http:
                yield http, GatewayClient(url, TOKEN)
            nursery.cancel_scope.cancel()


async def left(control: GatewayClient) -> LedgerEntry:
    """The entry of the only call, once its client has left and it has ended."""

    async def ended() -> bool:
        return bool(await control.ledger())

    await until(ended)
    (entry,) = await control.ledger()
    return entry


def entry(sequence: int, **more) -> LedgerEntry:
    """A ledger entry with what a test does not care about filled in."""
    given = {"arrived_at": "2026-11-20T10:00:00+00:00", "mode": "rehearsed", "kind": "messages",
             "model": HAIKU, "status": 200, **more}  # fmt: skip
    return LedgerEntry(sequence=sequence, **given)
