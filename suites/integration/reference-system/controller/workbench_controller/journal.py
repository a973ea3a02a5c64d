"""The journal of an episode: what its agent looked for, line by line, each with the event of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg

from workbench_contract.catalogue import CatalogueAnswer, CatalogueQuery
from workbench_contract.events import EventKind, EventSource
from workbench_controller.eventstore import record_event
from workbench_foundation import faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """An episode's journal, held until its transaction ends.

    Attributes:
        episode: its row.
        lines: number of each line, by the job that it is of.
    """

    connection: asyncpg.Connection
    episode: asyncpg.Record
    lines: dict[str, int]

    @property
    def next(self) -> int:
        """The number of the next line."""
        return len(self.lines) + 1


@asynccontextmanager
async def opened(pool: asyncpg.Pool, episode_id: str) -> AsyncIterator[Journal]:
    """An episode's journal for one more line; nobody else writes one meanwhile.

    Raises:
        LookupError: there is no such episode.
    """
    async with pool.acquire() as connection, connection.transaction():
        episode = await connection.fetchrow(
            "SELECT * FROM episodes WHERE episode_id = $1 FOR UPDATE", episode_id
        )
        if episode is None:
            raise LookupError(f"no episode {episode_id}")
        found = await connection.fetch(
            "SELECT ordinal, job_id FROM journal WHERE episode_id = $1", episode_id
        )
        lines = {line["job_id"]: line["ordinal"] for line in found}
        yield Journal(connection=connection, episode=episode, lines=lines)


async def note_search(
    pool: asyncpg.Pool,
    episode_id: str,
    job_id: str,
    query: CatalogueQuery,
    answer: CatalogueAnswer,
) -> None:
    """Write down a search of the catalogue as one event and one line, or neither.

    Args:
        pool: connections to the database.
        episode_id: of the episode whose agent searched.
        job_id: of the tool call, in every attempt: what is written down already stays as it is.
        query: what was looked for.
        answer: what it was answered.
    """
    async with opened(pool, episode_id) as journal:
        if job_id in journal.lines:
            return
        connection, episode = journal.connection, journal.episode
        now = datetime.now(UTC)
        payload = _payload(query, answer) | {"job_id": job_id}
        if faults.on("catalogue-event-repeated") and journal.lines:
            await record_event(connection, episode, EventKind.COTS_SEARCH, payload, at=now)
        seq = await record_event(connection, episode, EventKind.COTS_SEARCH, payload, at=now)
        if faults.on("catalogue-journal-lost"):
            return
        await connection.execute(
            "INSERT INTO journal (episode_id, ordinal, job_id, at, intent, result, event_source,"
            " event_seq, observations) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            *(episode_id, journal.next, job_id, now, _intent(query), _result(answer)),
            *(EventSource.CONTROLLER.value, seq),
            [{"source": EventSource.CONTROLLER.value, "seq": seq}],
        )


def _payload(query: CatalogueQuery, answer: CatalogueAnswer) -> dict[str, object]:
    asked = query.model_dump(mode="json", exclude_defaults=True)
    return {
        "query": {} if faults.on("catalogue-event-of-nothing") else asked,
        "catalogue_version": answer.catalogue_version,
        "total": answer.total,
        "part_ids": [part.part_id for part in answer.candidates],
        "no_match": None if answer.no_match is None else answer.no_match.reason,
    }


def _intent(query: CatalogueQuery) -> str:
    asked = query.model_dump(mode="json", exclude_defaults=True, exclude={"limit", "cursor"})
    told = ", ".join(f"{name} {value}" for name, value in asked.items()) or "anything"
    return f"search the catalogue for {told}" + (", the next page" if query.cursor else "")


def _result(answer: CatalogueAnswer) -> str:
    if answer.no_match is not None:
        return answer.no_match.reason
    return (
        f"{len(answer.candidates)} of {answer.total} parts of version {answer.catalogue_version}: "
        + ", ".join(part.part_id for part in answer.candidates)
    )
