"""Tasks that are made and changed by tools: their cron lines and names, and what is refused."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from suites.e2e.contracts.tasks import (
    LINES,
    NO_CRON,
    armed_for,
    database_now,
    expect_armed,
    expect_listed,
    expect_unchanged,
    id_argument,
    rows_named,
    scheduled,
)
from suites.e2e.ecosystem.conversation import open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.schedules import (
    put_off,
    schedule_row,
)
from suites.e2e.worlds.zones import zone_of_environment

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]


async def test_an_update_changes_what_it_is_given(ecosystem: Ecosystem, token: str) -> None:
    """Of cron line, prompt and ``enabled`` each can be changed alone; the answer is the new row."""
    general = ecosystem["general"]
    own = await id_argument(general)
    async with (
        open_conversation(general) as client,
        scheduled(general, f"{token}n", client=client) as neighbour,
        scheduled(general, token, client=client) as name,
    ):
        beside = await schedule_row(general, neighbour)
        # With a time of its own, which no cron line gave it.
        await put_off(general, name)
        for changes in (
            {"prompt": f"another {token} 茶"},
            {"enabled": False},
            {"prompt": f"a third {token}"},
            {"enabled": True},
            {"cron": "41 5 * * *"},
            {"cron": "0 0 29 2 *", "prompt": f"a fourth {token}", "enabled": False},
        ):
            before = await schedule_row(general, name)
            asked = await database_now(general)
            await client.call("schedule_update", **{own: str(before["id"])}, **changes)
            after = await schedule_row(general, name)
            given = f"an update of {' and '.join(changes)}"

            expect_columns(f"{given} is kept", after, **changes)
            armed = ("next_run_at",) if "cron" in changes else ()
            expect_unchanged(given, before, after, but=(*changes, *armed))
            if armed:
                expect_armed(general, after, asked)
            await expect_listed(general, name, after)

        expect_unchanged(
            "an update of another task", beside, await schedule_row(general, neighbour)
        )


@pytest.mark.parametrize("name", ["general", "health"])
async def test_a_cron_line_says_when_it_is_due(ecosystem: Ecosystem, token: str, name: str) -> None:
    """A task is armed for the first time its line names; by one clock, the world's or the place's.

    Two butlers, in two zones, one of which has clocks that change.
    """
    butler = ecosystem[name]
    zone = zone_of_environment(butler.environment)
    clocks = {"UTC": set(LINES), zone.key: set(LINES)}
    async with (
        open_conversation(butler) as client,
        scheduled(butler, token, client=client) as task,
    ):
        own_id = {await id_argument(butler): str((await schedule_row(butler, task))["id"])}
        for kind, line in LINES.items():
            asked = await database_now(butler)
            await client.call("schedule_update", **own_id, cron=line)
            row = await schedule_row(butler, task)
            expect_armed(butler, row, asked)
            for key, kinds in clocks.items():
                if row["next_run_at"] not in armed_for(line, asked, zone=ZoneInfo(key)):
                    kinds.discard(kind)

    assert set(LINES) in clocks.values(), (
        "all lines are read by one clock; by the world's are due only "
        f"{sorted(clocks['UTC'])}, by that of {zone.key} only {sorted(clocks[zone.key])}"
    )


async def test_what_does_not_exist_is_refused(ecosystem: Ecosystem, token: str) -> None:
    """An id that names no task, or one that was deleted, is refused; no other task is touched."""
    general = ecosystem["general"]
    own = await id_argument(general)
    async with open_conversation(general) as client:
        async with scheduled(general, f"{token}x", client=client) as gone:
            old = str((await schedule_row(general, gone))["id"])
        async with scheduled(general, token, client=client) as name:
            before = await schedule_row(general, name)
            for number in (old, "00000000-0000-4000-8000-000000000000", "x", ""):
                for tool, changes in (
                    ("schedule_update", {"enabled": False}),
                    ("schedule_delete", {}),
                ):
                    answer = await client.try_call(tool, **{own: number}, **changes)

                    assert answer.is_error, (
                        f"{tool} of a task that does not exist is refused; {number!r} was answered "
                        f"with {answer.text}"
                    )
            expect_unchanged(
                "a refused call for another task", before, await schedule_row(general, name)
            )


@pytest.mark.parametrize("line", NO_CRON.values(), ids=NO_CRON)
async def test_what_is_no_cron_line_is_refused(ecosystem: Ecosystem, token: str, line: str) -> None:
    """Such a task is not made, and a task that stands is not changed to it."""
    general = ecosystem["general"]
    async with (
        open_conversation(general) as client,
        scheduled(general, token, client=client) as name,
    ):
        made = await client.try_call(
            "schedule_create", name=f"none-{token}", cron=line, prompt="tea"
        )

        assert made.is_error, f"{line!r} is no cron line, and a task was made: {made.text}"
        left = await rows_named(general, f"none-{token}")

        assert not left, f"what was refused leaves nothing; found {left}"
        before = await schedule_row(general, name)
        own_id = {await id_argument(general): str(before["id"])}
        changed = await client.try_call("schedule_update", **own_id, cron=line, prompt="coffee")

        assert changed.is_error, f"{line!r} is no cron line, and a task was changed: {changed.text}"
        expect_unchanged("a refused update", before, await schedule_row(general, name))


async def test_a_name_is_taken_once(ecosystem: Ecosystem, token: str) -> None:
    """A second task of the same name is refused, and the first one stands as it was.

    A name that people read alike is another one.
    """
    general = ecosystem["general"]
    async with scheduled(general, token) as name, open_conversation(general) as client:
        before = await schedule_row(general, name)
        again = await client.try_call(
            "schedule_create", name=name, cron="0 0 1 1 *", prompt="another"
        )

        assert again.is_error, f"a name is taken once; a second task was made: {again.text}"
        expect_unchanged("a refused second task", before, await schedule_row(general, name))
        alike = [name.upper(), f"{name} ", f" {name}", name.replace("ï", "i\u0308"), name[:-1]]
        expected = {}
        for other in alike:
            made = await client.try_call(
                "schedule_create", name=other, cron="0 0 1 1 *", prompt="another"
            )
            # A name with blanks around it may be refused, in words; it is no other name.
            expected[other] = 0 if made.is_error and other.strip() != other else 1
        found = {other: len(await rows_named(general, other)) for other in alike}
        own = await id_argument(general)
        for other in alike:
            for task in await rows_named(general, other):
                await client.call("schedule_delete", **{own: str(task["id"])})

        expect_same("names are compared letter by letter", expected=expected, found=found)
        expect_unchanged("tasks of other names", before, await schedule_row(general, name))
