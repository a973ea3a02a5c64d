"""Decisions of reviewers as the controller keeps them: typed, with evidence that its events show as read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import asyncpg

from workbench_contract.events import EventKind, EventSource
from workbench_contract.flows import Decision, DecisionEvidence
from workbench_foundation import faults
from workbench_planning import review_md

_KINDS = ("images_viewed", "videos_viewed", "files_checked")

#: For the planted fault `decision-evidence-of-first` alone.
_first: list[dict[str, Any]] = []


class Unfounded(Exception):
    """A review that was accepted rests on what the stored events do not show."""


async def keep(
    connection: asyncpg.Connection,
    episode: Mapping[str, Any],
    row: Mapping[str, Any],
    review: bytes,
) -> None:
    """Write a decision down; within the transaction of its hand-over.

    Args:
        row: of the event that says that the review was accepted.
        review: its bytes.

    Raises:
        Unfounded: it is no review, or its evidence was not read.
    """
    found, findings = review_md.read_review(review)
    if found is None or episode["handover_id"] is None:
        raise Unfounded(f"cannot keep a decision: {findings[0].found if findings else 'of nothing'}")
    if faults.on("decision-of-last-round-alone"):
        await connection.execute(
            "DELETE FROM decisions WHERE episode_id = $1", episode["episode_id"]
        )
    read = await _read_by(connection, episode["session_id"], before=row["seq"])
    evidence: dict[str, list[dict[str, Any]]] = {}
    for kind in _KINDS:
        evidence[kind] = [
            {"path": seen.path, "sha256": seen.sha256, "event_seq": _seq(read, seen)}
            for seen in getattr(found.evidence, kind)
        ]
    if faults.on("decision-without-images"):
        evidence["images_viewed"] = []
    if faults.on("decision-evidence-of-first"):
        _first[:] = _first or [evidence]
        evidence = _first[0]
    await connection.execute(
        "INSERT INTO decisions (decision_id, flow_id, episode_id, session_id, reviewed_id, decision,"
        " evidence, comments, optimal, event_seq, decided_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        *(row["payload"]["handover_id"], episode["flow_id"], episode["episode_id"]),
        *(episode["session_id"], episode["handover_id"], found.decision.value, evidence),
        *(found.comments, found.optimal, row["seq"], row["at"]),
    )


async def page(
    connection: asyncpg.Pool | asyncpg.Connection,
    *,
    flow_id: str | None = None,
    episode_id: str | None = None,
    handover_id: str | None = None,
    limit: int = 500,
    offset: int = 0,
) -> tuple[list[Decision], int]:
    """Decisions of a flow, of an episode, about a hand-over; and how many there are in all."""
    condition = (
        "($1::text IS NULL OR flow_id = $1) AND ($2::text IS NULL OR episode_id = $2)"
        " AND ($3::text IS NULL OR reviewed_id = $3)"
    )
    wanted = (flow_id, episode_id, handover_id)
    rows = await connection.fetch(
        f"SELECT * FROM decisions WHERE {condition} ORDER BY decided_at, decision_id"
        " LIMIT $4 OFFSET $5",
        *(*wanted, limit, offset),
    )
    total = await connection.fetchval(f"SELECT count(*) FROM decisions WHERE {condition}", *wanted)
    return [_decision(row) for row in rows], total


def _decision(row: Mapping[str, Any]) -> Decision:
    names = (
        "decision_id", "flow_id", "episode_id", "session_id", "reviewed_id", "decision", "comments",
        "optimal", "event_seq", "decided_at",
    )  # fmt: skip
    evidence = DecisionEvidence.model_validate(row["evidence"], strict=False)
    return Decision(evidence=evidence, **{name: row[name] for name in names})


def _seq(read: Mapping[tuple[str, str], int], seen: Any) -> int:
    seq = read.get((seen.path, seen.sha256))
    if seq is not None:
        return seq
    if faults.on("evidence-unread") or faults.on("evidence-read-by-others"):
        return 0
    detail = f"cannot keep a decision: no event shows {seen.path} as read"
    raise Unfounded(f"{detail}. Look at the worker's gate")


async def _read_by(
    connection: asyncpg.Connection, session_id: str, *, before: int
) -> dict[tuple[str, str], int]:
    """Path and sha256 of what a session has read → the first event that says so."""
    rows = await connection.fetch(
        "SELECT seq, payload FROM events WHERE session_id = $1 AND source = $2 AND kind = $3"
        " AND seq < $4 AND payload->>'tool' IN ('fs_read', 'fs_view')"
        " AND (payload->>'ok')::boolean ORDER BY seq DESC",
        *(session_id, EventSource.WORKER.value, EventKind.TOOL_CALL.value, before),
    )
    return {
        (os.path.normpath(row["payload"]["arguments"]["path"]), row["payload"]["sha256"]): row["seq"]
        for row in rows
    }
