"""What a session begins with: its list, its templates, and what was handed over."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.handover import FileBytes, Given, OpenRequest
from workbench_contract.todo import IssuedEntry
from workbench_controller import rounds
from workbench_controller.handovers import given_by
from workbench_controller.run import Run
from workbench_foundation import faults
from workbench_planning import estimate, objectives, plan_md, todo_md
from workbench_planning.environment import belongs
from workbench_planning.templates import TEMPLATES
from workbench_planning.todo_md import Issued

#: What a planner starts from.
_TEMPLATES = (plan_md.FILE, objectives.FILE, estimate.FILE)
_OF_BENCHMARK = (plan_md.FILE, objectives.FILE)

#: The entries of a planner's list.
_ENTRIES = (
    "Read the task for seed {seed}, and what was handed over",
    "Choose each part: make it, or find it in the catalogue",
    "Estimate cost and weight, and stay below both caps",
    "Say in the plan how it is assembled and what may go wrong",
)
_ENTRIES_OF_BENCHMARK = (
    "Read the task for seed {seed}",
    "Choose goal, forbid and build zones, and what is to be moved",
    "Set caps that can be met, and no wider",
    "Say in the plan what the environment is made of",
)


def entries_for(run: Run) -> tuple[Issued, ...]:
    """The mandatory entries of an episode's list, with ids that no other episode has."""
    if run.role is not AgentRole.PLANNER:
        return ()
    entries = _ENTRIES_OF_BENCHMARK if run.purpose is Purpose.BENCHMARK else _ENTRIES
    texts = [text.format(seed=run.seed) for text in entries]
    return todo_md.issue(texts, of="" if faults.on("todo-ids-shared") else run.episode_id)


async def issue_to(connection: asyncpg.Connection, run: Run) -> None:
    """Write the list of a new episode down; within the caller's transaction.

    Who goes on with a plan goes on with its list, and may not delete of it either.
    """
    entries = entries_for(run)
    if run.role is AgentRole.CODER and run.handover_id is not None:
        await connection.execute(
            "INSERT INTO todo_entries (episode_id, ordinal, id, text)"
            " SELECT $1, ordinal, id, text FROM todo_entries WHERE episode_id ="
            " (SELECT episode_id FROM handovers WHERE handover_id = $2)",
            *(run.episode_id, run.handover_id),
        )
    await connection.executemany(
        "INSERT INTO todo_entries (episode_id, ordinal, id, text) VALUES ($1, $2, $3, $4)",
        [(run.episode_id, n, each.id, each.text) for n, each in enumerate(entries, start=1)],
    )


async def issued_to(connection: asyncpg.Pool, episode_id: str) -> list[IssuedEntry]:
    """The entries that were issued to an episode."""
    rows = await connection.fetch(
        "SELECT id, text FROM todo_entries WHERE episode_id = $1 ORDER BY ordinal", episode_id
    )
    return [IssuedEntry(id=row["id"], text=row["text"]) for row in rows]


async def opening_of(pool: asyncpg.Pool, run: Run) -> OpenRequest:
    """How the session of an episode is opened."""
    given: Given | None = None
    handed: list[FileBytes] = []
    issued = await issued_to(pool, run.episode_id)
    if run.handover_id is not None:
        given, handed = await given_by(pool, run.handover_id)
    if run.role is AgentRole.PLANNER:
        handed = _planners(run, handed, issued)
    context = await rounds.context_of(pool, run.context_ids)
    resumed: list[FileBytes] = []
    if run.resumed_id is not None:
        _, left = await given_by(pool, run.resumed_id)
        fixed = {each.path for each in given.files} if given else set()
        resumed = rounds.resumed(run.role, left, fixed=fixed)
    return OpenRequest(
        role=run.role,
        purpose=run.purpose,
        issued=issued,
        files=handed,
        given=given,
        resumed=resumed,
        context=context,
    )


def _planners(
    run: Run, handed: Sequence[FileBytes], issued: Sequence[IssuedEntry]
) -> list[FileBytes]:
    """The environment and the objectives that a planner was given, and templates of the rest."""
    listed = todo_md.rendered([Issued(id=each.id, text=each.text) for each in issued])
    names = _OF_BENCHMARK if run.purpose is Purpose.BENCHMARK else _TEMPLATES
    files = {name: TEMPLATES[name].encode() for name in names}
    files[todo_md.FILE] = listed.encode()
    files |= {
        each.path: each.content
        for each in handed
        if each.path == objectives.FILE or belongs(each.path)
    }
    return [FileBytes(path=path, content=content) for path, content in sorted(files.items())]
