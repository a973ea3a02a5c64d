"""Entries of an episode's journal: taken when they rest on what was observed, refused otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg

from workbench_contract.journal import JournalEntry, Observation
from workbench_controller.journal import opened
from workbench_foundation import faults


class Unobserved(Exception):
    """An entry rests on what the episode's events do not show."""


async def take(pool: asyncpg.Pool, episode_id: str, job_id: str, entry: JournalEntry) -> int:
    """Write an entry down; its number. What was written down for a job already stays.

    Args:
        job_id: of the tool call or request, in every attempt.

    Raises:
        LookupError: there is no such episode.
        Unobserved: an observation of it is none of the episode.
    """
    async with opened(pool, episode_id) as journal:
        if job_id in journal.lines:
            return journal.lines[job_id]
        connection, episode = journal.connection, journal.episode
        session_id = None if faults.on("journal-of-others") else episode["session_id"]
        missing = await _unknown(connection, session_id, entry.observations)
        if missing and not faults.on("journal-unfounded"):
            named = ", ".join(f"{one.source.value} {one.seq}" for one in missing)
            raise Unobserved(
                f"cannot take the entry: the episode has no event {named}. Name events of it"
            )
        first = entry.observations[0]
        written = entry.observations[:1] if faults.on("journal-one-observation") else entry.observations
        if faults.on("journal-numbers-shared"):
            written = list({one.seq: one for one in written}.values())
        reflection = entry.result if faults.on("journal-reflection-lost") else entry.reflection
        await connection.execute(
            "INSERT INTO journal (episode_id, ordinal, job_id, at, intent, result, reflection,"
            " next_step, observations, event_source, event_seq)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            *(episode_id, journal.next, job_id, datetime.now(UTC), entry.intent, entry.result),
            *(reflection, entry.next_step, [one.model_dump(mode="json") for one in written]),
            *(first.source.value, first.seq),
        )
        return journal.next


async def _unknown(
    connection: asyncpg.Connection, session_id: str | None, observations: Sequence[Observation]
) -> list[Observation]:
    rows = await connection.fetch(
        "SELECT source, seq FROM events WHERE ($1::text IS NULL OR session_id = $1)"
        " AND seq = ANY($2::bigint[])",
        *(session_id, [one.seq for one in observations]),
    )
    there = {(row["source"], row["seq"]) for row in rows}
    if faults.on("journal-of-any-source"):
        there |= {(one.source.value, seq) for one in observations for _, seq in there}
    return [one for one in observations if (one.source.value, one.seq) not in there]
