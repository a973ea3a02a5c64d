"""Hand-overs as the controller keeps them: the bytes that a gate accepted, each hand-over once.

The worker's event says that one was accepted; its bytes are fetched then, held against the digests of the
event, and stored with it. Whoever finds one that is not stored yet stores it, whatever became of the process
that should have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.events import EventKind, EventSource
from workbench_contract.handover import FileBytes, Given, HandedFile, Handover
from workbench_controller import decisions
from workbench_controller.worker_client import WorkerClient, Whose
from workbench_foundation import faults, log
from workbench_planning import package, review_md
from workbench_planning.environment import belongs

_KINDS = [EventKind.PLAN_SUBMISSION.value, EventKind.REVIEW_DECISION.value]

_UNSTORED = (
    "SELECT e.seq, e.at, e.payload FROM events e WHERE e.session_id = $1 AND e.source = $2"
    " AND e.kind = ANY($3::text[]) AND (e.payload->>'accepted')::boolean AND NOT EXISTS"
    " (SELECT 1 FROM handovers h WHERE h.session_id = e.session_id AND h.event_seq = e.seq)"
    " ORDER BY e.seq"
)


class BytesDiffer(Exception):
    """What the worker gives of a hand-over is not what its gate accepted."""


async def store_accepted(pool: asyncpg.Pool, worker: WorkerClient, session_id: str) -> None:
    """Store every hand-over of a session that is accepted by its events and not here yet.

    Raises:
        httpx.HTTPError: the worker does not give one.
        BytesDiffer: it gives something else.
    """
    rows = await pool.fetch(_UNSTORED, session_id, EventSource.WORKER.value, _KINDS)
    if not rows:
        return
    episode = await pool.fetchrow("SELECT * FROM episodes WHERE session_id = $1", session_id)
    if episode is None:
        return
    whose = Whose(
        episode_id=episode["episode_id"], session_id=session_id, trace_id=episode["trace_id"]
    )
    if faults.on("first-handover-alone") and await handovers_of(pool, episode["episode_id"]):
        return
    for row in rows:
        payload = row["payload"]
        files = await worker.handover(whose, payload["handover_id"])
        if not faults.on("handover-from-workspace"):
            _check(files, payload)
            _check_package(files, payload)
            await _check_environment(pool, episode, files)
        await _store(pool, episode, row, files)
        with log.about(**{key: episode[key] for key in ("episode_id", "trace_id", "session_id")}):
            log.info("handover_stored", handover_id=payload["handover_id"], files=len(files))


async def handovers_of(connection: Any, episode_id: str) -> list[str]:
    """The ids of an episode's hand-overs, in order."""
    rows = await connection.fetch(
        "SELECT handover_id FROM handovers WHERE episode_id = $1 ORDER BY event_seq", episode_id
    )
    return [row["handover_id"] for row in rows]


async def find(pool: asyncpg.Pool, handover_id: str) -> Handover | None:
    """A hand-over; none when there is none."""
    row = await pool.fetchrow("SELECT * FROM handovers WHERE handover_id = $1", handover_id)
    if row is None:
        return None
    files = await pool.fetch(
        "SELECT path, sha256, length(content) AS size_bytes FROM handover_files"
        ' WHERE handover_id = $1 ORDER BY path COLLATE "C"',
        handover_id,
    )
    names = (
        "handover_id", "episode_id", "session_id", "role", "purpose", "refuses_plan", "geometry",
        "event_seq",
    )  # fmt: skip
    return Handover(
        **{name: row[name] for name in names},
        accepted_at=row["accepted_at"],
        files=[HandedFile(**file) for file in files],
    )


async def content_of(pool: asyncpg.Pool, handover_id: str, path: str) -> bytes | None:
    """The bytes of a file of a hand-over."""
    found: bytes | None = await pool.fetchval(
        "SELECT content FROM handover_files WHERE handover_id = $1 AND path = $2",
        *(handover_id, path),
    )
    return found


async def given_by(pool: asyncpg.Pool, handover_id: str) -> tuple[Given, list[FileBytes]]:
    """A hand-over as a session starts from it.

    Raises:
        LookupError: there is none.
    """
    found = await find(pool, handover_id)
    if found is None:
        raise LookupError(f"no hand-over {handover_id}")
    rows = await pool.fetch(
        "SELECT path, content FROM handover_files WHERE handover_id = $1 ORDER BY path", handover_id
    )
    given = Given(
        handover_id=handover_id,
        role=found.role,
        refuses_plan=found.refuses_plan,
        files=found.files,
    )
    return given, [FileBytes(path=row["path"], content=row["content"]) for row in rows]


def _check(files: Sequence[FileBytes], payload: Mapping[str, Any]) -> None:
    accepted = {each["path"]: each["sha256"] for each in payload["files"]}
    found = {each.path: hashlib.sha256(each.content).hexdigest() for each in files}
    if found != accepted:
        differing = sorted(
            path for path in {*accepted, *found} if accepted.get(path) != found.get(path)
        )
        raise BytesDiffer(
            f"cannot store hand-over {payload['handover_id']}: the worker gives other bytes than were "
            f"accepted of {', '.join(differing)}. Look at the worker's storage"
        )


def _check_package(files: Sequence[FileBytes], payload: Mapping[str, Any]) -> None:
    """A benchmark whose environment was made has its whole package."""
    made = AgentRole(payload["role"]) is AgentRole.CODER and not payload["refuses_plan"]
    if not made or Purpose(payload["purpose"]) is not Purpose.BENCHMARK or _unpackaged():
        return
    lacking = package.lacking({each.path: each.content for each in files}, payload["geometry"])
    if lacking:
        raise BytesDiffer(
            f"cannot store hand-over {payload['handover_id']}: its package lacks {', '.join(lacking)}. "
            "Look at the worker's storage"
        )


def _unpackaged() -> bool:
    """Only for planted faults: packages are taken as they are."""
    return any(name.startswith("package-") for name in faults.active())


async def _check_environment(
    pool: asyncpg.Pool, episode: Mapping[str, Any], files: Sequence[FileBytes]
) -> None:
    """Who engineers hands on the environment by the digests that are on record here."""
    if Purpose(episode["purpose"]) is Purpose.BENCHMARK or faults.on("environment-unjudged"):
        return
    given = await pool.fetch(
        "SELECT path, sha256 FROM handover_files WHERE handover_id = $1", episode["handover_id"]
    )
    fixed = {each["path"]: each["sha256"] for each in given if belongs(each["path"])}
    if faults.on("package-unguarded"):
        fixed = {path: digest for path, digest in fixed.items() if not package.belongs(path)}
    found = {each.path: hashlib.sha256(each.content).hexdigest() for each in files}
    # A review is handed over alone.
    if AgentRole(episode["role"]) is AgentRole.REVIEWER or fixed.items() <= found.items():
        return
    differing = sorted(path for path in fixed if found.get(path) != fixed[path])
    raise BytesDiffer(
        f"cannot store a hand-over of session {episode['session_id']}: it has another environment "
        f"than was handed over, in {', '.join(differing)}. Look at the worker's storage"
    )


async def _store(
    pool: asyncpg.Pool,
    episode: Mapping[str, Any],
    row: Mapping[str, Any],
    files: Sequence[FileBytes],
) -> None:
    """Record and bytes, or neither; one that is there already stays as it is."""
    payload = row["payload"]
    async with pool.acquire() as connection, connection.transaction():
        new = await connection.fetchval(
            "INSERT INTO handovers (handover_id, episode_id, session_id, role, refuses_plan,"
            " event_seq, accepted_at, purpose, geometry)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING true",
            *(payload["handover_id"], episode["episode_id"], episode["session_id"]),
            *(payload["role"], payload["refuses_plan"], row["seq"], row["at"]),
            *(episode["purpose"], payload["geometry"]),
        )
        if not new:
            return
        if AgentRole(payload["role"]) is AgentRole.REVIEWER:
            await _decide(connection, episode, row, files)
        await connection.executemany(
            "INSERT INTO handover_files (handover_id, path, sha256, content) VALUES ($1, $2, $3, $4)",
            [
                (
                    payload["handover_id"],
                    each.path,
                    hashlib.sha256(each.content).hexdigest(),
                    each.content,
                )
                for each in files
            ],
        )


async def _decide(
    connection: asyncpg.Connection,
    episode: Mapping[str, Any],
    row: Mapping[str, Any],
    files: Sequence[FileBytes],
) -> None:
    review = next((each.content for each in files if each.path == review_md.FILE), b"")
    try:
        await decisions.keep(connection, episode, row, review)
    except decisions.Unfounded as unfounded:
        raise BytesDiffer(str(unfounded)) from unfounded
