"""Pulling events from the worker, over and over; who pulls twice stores once."""

from __future__ import annotations

import asyncio

import asyncpg
import httpx

from workbench_contract.events import EventPage
from workbench_controller.database import each_row
from workbench_controller.eventstore import last_pulled, store_pulled
from workbench_controller.handovers import BytesDiffer, store_accepted
from workbench_controller.worker_client import WorkerClient
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

#: Sessions that are read from the database at once.
_SESSIONS = 200


class GapError(Exception):
    """The worker's events do not follow those that are here."""


async def pull(pool: asyncpg.Pool, worker: WorkerClient, session_id: str) -> int:
    """Store what the worker has of a session and we have not; the number of its last event.

    Raises:
        httpx.HTTPError: the worker does not answer.
        GapError: events are missing in what it answers.
    """
    while True:
        after = await last_pulled(pool, session_id)
        page = await worker.events(session_id, after=after)
        if not page.events:
            return page.last_seq
        if not faults.on("event-unwritten"):
            _has_no_gap(page, after)
        await store_pulled(pool, page.events)
        if page.events[-1].seq >= page.last_seq or faults.on("pull-ends-at-a-page"):
            return page.last_seq


def _has_no_gap(page: EventPage, after: int) -> None:
    for before, event in enumerate(page.events, start=after):
        if event.seq != before + 1:
            raise GapError(f"event {event.seq} of {event.session_id} follows {before}")


async def pull_and_store(pool: asyncpg.Pool, worker: WorkerClient, session_id: str) -> None:
    """Pull, and store the hand-overs that are accepted by what was pulled.

    Raises:
        httpx.HTTPError, GapError, BytesDiffer: some of it is still to be stored.
    """
    await pull(pool, worker, session_id)
    await store_accepted(pool, worker, session_id)


async def pull_for_ever(pool: asyncpg.Pool, worker: WorkerClient, *, pull_s: float) -> None:
    """Pull for every episode that may still have events, until cancelled."""
    behind: set[str] = set()
    while True:
        try:
            await _round(pool, worker, behind)
        # The edge of a task that must not end: trouble of one round is logged, the next follows.
        except Exception as error:
            log.warning("pull_failed", reason=describe(error))
        await asyncio.sleep(pull_s)


async def _round(pool: asyncpg.Pool, worker: WorkerClient, behind: set[str]) -> None:
    """One look at every session; an episode that is over is looked at once more, then left.

    ``settled`` says that nothing works for the episode any more, the worker included.
    """
    waiting = each_row(pool, "episodes", "NOT drained", key="episode_id", at_once=_SESSIONS)
    async for row in waiting:
        ids = {name: row[name] for name in ("episode_id", "session_id", "trace_id")}
        with log.about(**ids):
            try:
                await pull_and_store(pool, worker, row["session_id"])
            except (httpx.HTTPError, GapError, BytesDiffer) as error:
                if row["session_id"] not in behind:
                    log.warning("pull_failed", reason=describe(error))
                    behind.add(row["session_id"])
                if faults.on("pull-held-up"):
                    return
                continue
            behind.discard(row["session_id"])
            if row["settled"]:
                await pool.execute(
                    "UPDATE episodes SET drained = true WHERE episode_id = $1", row["episode_id"]
                )
