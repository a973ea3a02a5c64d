"""What the tools that schedule say, take at once and keep: each row as it stands, each name once.

A run that fails is one whose model refuses: the gateway is a stand-in for the model provider, which
does not refuse on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest
import trio

from harness_core.doubles.model import Fault
from suites.e2e.contracts.tasks import (
    DAILY,
    TICK_S,
    change_task,
    id_argument,
    listed_tasks,
    prompt_of,
    rows_named,
    scheduled,
    tick_butler,
)
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.journey import parts_of
from suites.e2e.observe.sentences import expect_moment, expect_same
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.held_tables import hold_table
from suites.e2e.worlds.schedules import (
    fall_due,
    hold_row,
    schedule_row,
    sessions_of,
    until_they_meet,
)

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]

#: Callers who want one name at the same moment.
AT_ONCE: Final = 8

#: A prompt longer than any line of a screen, shorter than what a message may be.
LONG: Final = " ".join(f"step {number}:" for number in range(300)) + " end"

TIMES: Final = ("next_run_at", "last_run_at")


async def test_an_answer_is_the_row(ecosystem: Ecosystem, token: str) -> None:
    """What ``schedule_create`` and ``schedule_update`` say of a task is what stands in its row then.

    However long its prompt is, it is kept to its last word.
    """
    general = ecosystem["general"]
    name = f"said {token}"
    own = await id_argument(general)
    async with open_conversation(general) as client:
        said = await client.call("schedule_create", name=name, cron=DAILY, prompt=LONG)
        row = await schedule_row(general, name)
        try:
            expect_same("a prompt is kept whole", expected=LONG, found=row["prompt"])
            _expect_said("schedule_create", said, row)
            for changes in (
                {"enabled": False},
                {"cron": "41 5 * * *"},
                {"prompt": f"{LONG} {token}", "enabled": True},
            ):
                said = await client.call("schedule_update", **{own: str(row["id"])}, **changes)
                _expect_said(
                    f"schedule_update of {' and '.join(changes)}",
                    said,
                    await schedule_row(general, name),
                )
        finally:
            await client.call("schedule_delete", **{own: str(row["id"])})


async def test_a_name_is_taken_once_also_at_once(ecosystem: Ecosystem, token: str) -> None:
    """Of several who want one name at a time one has it, as he was told, and the others are refused."""
    general = ecosystem["general"]
    name = f"once {token}"
    answers: dict[int, ToolResult] = {}
    own = await id_argument(general)

    async def create(client: Conversation, number: int) -> None:
        answers[number] = await client.try_call(
            "schedule_create", name=name, cron=DAILY, prompt=f"{number} of {token}"
        )

    async with AsyncExitStack() as open_ones:
        clients = [
            await open_ones.enter_async_context(open_conversation(general)) for _ in range(AT_ONCE)
        ]
        # Held until some of them wait to write, so that each has looked before another has written.
        async with trio.open_nursery() as nursery, hold_table(general, "scheduled_tasks"):
            for number, client in enumerate(clients):
                nursery.start_soon(create, client, number)
            await until_they_meet(general, answered=lambda: len(answers) == AT_ONCE)
        rows = await rows_named(general, name)
        for row in rows:
            await clients[0].call("schedule_delete", **{own: str(row["id"])})
    made = [number for number, answer in answers.items() if not answer.is_error]

    assert len(made) == 1, (
        f"a name is taken once: of {AT_ONCE} who wanted it at a time {len(made)} were told that they "
        f"have it: {[answer.text for answer in answers.values()]}"
    )
    expect_same(
        "the task is that of the one who was told so",
        expected=[f"{made[0]} of {token}"],
        found=[row["prompt"] for row in rows],
    )


async def test_changes_at_once_are_all_kept(ecosystem: Ecosystem, token: str) -> None:
    """One changes what a task asks, one when it is due, one switches it off: what was taken is so."""
    general = ecosystem["general"]
    changes: tuple[dict[str, Any], ...] = (
        {"prompt": f"{prompt_of(token)} at once"},
        {"cron": "41 5 * * *"},
        {"enabled": False},
    )
    answers: dict[str, ToolResult] = {}
    own = await id_argument(general)

    async def change(client: Conversation, task: str, asked: Mapping[str, Any]) -> None:
        answers[next(iter(asked))] = await client.try_call(
            "schedule_update", **{own: task}, **asked
        )

    async with AsyncExitStack() as open_ones, scheduled(general, token) as name:
        clients = [await open_ones.enter_async_context(open_conversation(general)) for _ in changes]
        before = await schedule_row(general, name)
        # Held until they wait to write, so that each has looked before another has written.
        async with trio.open_nursery() as nursery, hold_row(general, name):
            for client, asked in zip(clients, changes, strict=True):
                nursery.start_soon(change, client, str(before["id"]), asked)
            await until_they_meet(general, answered=lambda: len(answers) == len(changes))
        row = await schedule_row(general, name)
    # One that meets another may be refused, in words; what was taken is kept.
    taken = {
        key: value for asked in changes for key, value in asked.items() if not answers[key].is_error
    }

    assert taken, f"of changes at once none was taken: {[a.text for a in answers.values()]}"
    expect_same(
        "concurrent writers lose nothing: each change of a task that was acknowledged is kept",
        expected=taken,
        found={key: row[key] for key in taken},
    )


@pytest.mark.slow
async def test_a_failure_is_that_of_one_task(ecosystem: Ecosystem, token: str) -> None:
    """Of two tasks that are due one fails: the other is done at the same tick, as it now is.

    The list shows of each what became of it, and when.
    """
    general = ecosystem["general"]
    async with scheduled(general, f"{token}bad") as bad, scheduled(general, f"{token}good") as good:
        later = f'Put "coffee {token}good" on the shopping list'
        await change_task(general, good, "schedule_update", prompt=later)
        # The one that fails is due first.
        for name in (bad, good):
            await fall_due(general, name)
        refusal = Fault(kind="status", status=403, contains=f"{token}bad", times=20)
        async with ecosystem.gateway.client.fault(refusal):
            await tick_butler(general)
        ran = {name: await sessions_of(general, name) for name in (bad, good)}
        listed = await listed_tasks(general)
        rows = {name: await schedule_row(general, name) for name in (bad, good)}

        expect_same(
            "a failure is that of one task; what else is due is done at the same tick",
            expected={bad: [False], good: [True]},
            found={name: [row["success"] for row in found] for name, found in ran.items()},
        )
        assert later in ran[good][0]["prompt"], (
            f"a task that was changed is done as it now is, {later!r}; its session was asked "
            f"{ran[good][0]['prompt']!r}"
        )
        for name, row in rows.items():
            _expect_said("schedule_list", listed[name], row)
        expect_same(
            "each task has a result of its own",
            expected=2,
            found=len({str(row["last_result"]) for row in rows.values()}),
        )


@pytest.mark.slow
@pytest.mark.covers("E2E-SESSIONS")
async def test_what_runs_is_shown_as_running(ecosystem: Ecosystem, token: str) -> None:
    """A session that has not ended is listed, shown and counted, as neither a success nor a failure."""
    general = ecosystem["general"]
    client = ecosystem.gateway.client
    before = await general.call("sessions_summary")
    async with scheduled(general, token) as name:
        await fall_due(general, name)
        async with (
            trio.open_nursery() as nursery,
            client.fault(Fault(kind="hold", contains=token, times=20)) as number,
        ):

            async def held() -> bool:
                return await client.fault_met(number) > 0

            nursery.start_soon(tick_butler, general)
            await expect_soon("the session of the task asks its model", held, seconds=TICK_S)
            (row,) = await sessions_of(general, name)
            shown = await _shown(general, str(row["id"]))
            summary = await general.call("sessions_summary")
        ended = await general.call("sessions_summary")

    for where, entry in shown.items():
        found = {column: entry.get(column) for column in ("success", "completed_at", "error")}

        expect_same(
            f"{where} shows a session that runs as one that has not ended",
            expected=dict.fromkeys(found),
            found=found,
        )
        assert str(entry.get("prompt", prompt_of(token))).find(token) >= 0, (
            f"{where} shows what the session was asked; found {entry}"
        )
    counts = {"succeeded": 0, "failed": 0, "running": 1, "sessions": 1}
    expect_same(
        "the summary counts a session that runs as that",
        expected={key: count for key, count in counts.items() if key in summary},
        found={key: summary[key] - before[key] for key in counts if key in summary},
    )
    counts |= {"succeeded": 1, "running": 0}
    expect_same(
        "and as what it was when it has ended",
        expected={key: count for key, count in counts.items() if key in ended},
        found={key: ended[key] - before[key] for key in counts if key in ended},
    )


async def _shown(butler: Butler, session_id: str) -> dict[str, Mapping[str, Any]]:
    """A session by each tool that shows it."""
    properties = (await butler.tools())["sessions_get"]["properties"]
    argument = next(name for name in properties if name == "id" or name.endswith("_id"))
    listed = [
        part
        for part in parts_of(await butler.call("sessions_list"))
        if isinstance(part, Mapping) and str(part.get("id")) == session_id
    ]

    assert listed, f"sessions_list lists the session that runs, {session_id}; it does not"
    return {
        "sessions_list": listed[0],
        "sessions_get": await butler.call("sessions_get", **{argument: session_id}),
    }


def _expect_said(tool: str, said: Any, row: Mapping[str, Any]) -> None:
    """What an answer says of a task is what stands in its row; what it leaves out is its choice."""
    entry = next(
        (
            part
            for part in parts_of(said)
            if isinstance(part, Mapping) and part.get("name") == row["name"]
        ),
        {},
    )
    for column in ("cron", "prompt", "source", "enabled", "last_result"):
        if column in entry:
            expect_same(
                f"{tool} says what stands in the row ({column})",
                expected=row[column],
                found=entry[column],
            )
    for column in TIMES:
        if column in entry:
            found = entry[column] and expect_moment(f"{column} of {tool}", entry[column])
            expect_same(
                f"{tool} says what stands in the row ({column})",
                expected=row[column],
                found=found,
            )
