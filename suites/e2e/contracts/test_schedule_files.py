"""Tasks of ``butler.toml``: the file rules its own, through restarts, and no others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.contracts.tasks import (
    DAILY,
    all_rows,
    change_task,
    database_now,
    expect_armed,
    expect_daily,
    expect_unchanged,
    id_argument,
    prompt_of,
    rows_named,
    scheduled,
    tick_butler,
)
from suites.e2e.ecosystem.boot import link_butlers, open_ecosystem
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.schedules import (
    fall_due,
    schedule_row,
    sessions_of,
)

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]


ALMANAC: Final = """
[butler]
name = "almanac"
port = 8178
description = "Almanac: keeps an eye on the calendar."
capabilities = ["almanac"]

{schedules}
"""


FIRST: Final = """
[[butler.schedule]]
name = "{token}-daily"
cron = "17 3 * * *"
prompt = "look at the day {token}"

[[butler.schedule]]
name = "{token}-weekly"
cron = "23 4 * * 1"
prompt = "look at the week {token}"
{kept}"""


KEPT: Final = """
[[butler.schedule]]
name = "{token}-yearly"
cron = "0 0 29 2 *"
prompt = 'Put "cake {token}" on the shopping list'
"""


TAKEN: Final = """
[[butler.schedule]]
name = "{token}-taken"
cron = "7 7 7 7 *"
prompt = "take the name {token}"
"""


LATER: Final = """
[[butler.schedule]]
name = "{token}-daily"
cron = "41 5 * * *"
prompt = "look at the new day {token}"
{kept}"""


@pytest.mark.corpus
def test_the_file_rules_its_own_tasks_alone(
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    tmp_path: Path,
    token: str,
    progress: Callable[[str], None],
) -> None:
    """At a start the tasks of ``butler.toml`` are made, changed and removed; the others stay.

    One that the file left as it was keeps its time: what fell due meanwhile runs, once. A task that
    was made at run time stays as it was acknowledged, also when the file has its name: such a file
    is refused, or does without that task.
    """
    roster = tmp_path / "roster"
    link_butlers(subject, roster, ["switchboard"])
    file = roster / "almanac" / "butler.toml"
    file.parent.mkdir()
    kept = KEPT.format(token=token)
    file.write_text(
        ALMANAC.format(schedules=FIRST.format(token=token, kept=kept)), encoding="utf-8"
    )
    manager = open_ecosystem(harness_run, subject, evidence=evidence, roster=roster, say=progress)

    yearly = f"{token}-yearly"

    async def judge(ecosystem: Ecosystem) -> None:
        almanac = ecosystem["almanac"]
        async with scheduled(almanac, token) as own:
            first = await all_rows(almanac)

            expect_same(
                "the tasks are those of the file and those made at run time",
                expected={
                    f"{token}-yearly": ("toml", "0 0 29 2 *", True),
                    f"{token}-daily": ("toml", "17 3 * * *", True),
                    f"{token}-weekly": ("toml", "23 4 * * 1", True),
                    own: ("db", DAILY, True),
                },
                found={
                    name: (row["source"], row["cron"], row["enabled"])
                    for name, row in first.items()
                },
            )
            expect_daily(almanac, first[f"{token}-daily"]["next_run_at"])
            # What an operator switched off stays off: the file says nothing about it.
            await change_task(almanac, f"{token}-daily", "schedule_update", enabled=False)
            schedules = LATER.format(token=token, kept=kept)
            file.write_text(ALMANAC.format(schedules=schedules), encoding="utf-8")
            await almanac.stop()
            await fall_due(almanac, yearly)
            await almanac.start()
            later = await all_rows(almanac)

            expect_same(
                "a task that is no more in the file is gone, others are not",
                expected={yearly, f"{token}-daily", own},
                found=set(later),
            )
            expect_unchanged("a file that does not name it", first[own], later[own])
            daily = later[f"{token}-daily"]

            expect_columns(
                "a task of the file follows the file, and stays the one it was", daily,
                cron="41 5 * * *", prompt=f"look at the new day {token}", source="toml",
                enabled=False, id=first[f"{token}-daily"]["id"],
            )  # fmt: skip
            expect_armed(almanac, daily, await database_now(almanac))
            await tick_butler(almanac)
            ran = await sessions_of(almanac, yearly)

            assert 1 == len(ran), f"due while it was down, and lost: it ran {len(ran)} times"
            await expect_answers_kept(almanac, yearly, f"{token}-daily")
            settled = await all_rows(almanac)
            await almanac.restart()
            await tick_butler(almanac)
            again = await all_rows(almanac)

            expect_same(
                "a second start changes no set of tasks", expected=set(settled), found=set(again)
            )
            for name, row in settled.items():
                expect_unchanged("a second start with the same file", row, again[name])
            ran = await sessions_of(almanac, yearly)

            assert 1 == len(ran), (
                f"after a second start it has run {len(ran)} times instead of once"
            )
            await expect_name_kept(almanac, file, token, schedules=schedules)
            file.write_text(ALMANAC.format(schedules=""), encoding="utf-8")
            await almanac.restart()

            expect_same(
                "a file without any task leaves those that were made at run time, and no other",
                expected=[own],
                found=sorted(await all_rows(almanac)),
            )

    with harness_loop.hold(manager) as ecosystem:
        harness_loop.run(lambda: judge(ecosystem))


async def expect_answers_kept(almanac: Butler, changed: str, deleted: str) -> None:
    """Whether a file's task may be changed at run time is the product's affair; its answer holds.

    What it refused has changed nothing. What it acknowledged is so now; that it is so after a restart
    is asked by who compares the rows of both.
    """
    own = await id_argument(almanac)
    for name, tool, asked in (
        (changed, "schedule_update", {"cron": "5 6 28 2 *"}),
        (changed, "schedule_update", {"prompt": "look at another year"}),
        (deleted, "schedule_delete", {}),
    ):
        before = await schedule_row(almanac, name)
        async with open_conversation(almanac) as client:
            answer = await client.try_call(tool, **{own: str(before["id"])}, **asked)
        found = await rows_named(almanac, name)
        what = f"{tool} of a task of the file with {asked}"
        if answer.is_error:
            assert 1 == len(found), f"{what} was refused; expected the task once, found {found}"
            expect_unchanged(f"{what}, refused,", before, found[0])
        elif not asked:
            assert not found, f"{what} was acknowledged; expected no such task, found {found}"
        else:
            expect_columns(f"{what} was acknowledged", found[0], **asked)


async def expect_name_kept(almanac: Butler, file: Path, token: str, *, schedules: str) -> None:
    """A task that was made at run time keeps its name, whatever the file says and said.

    Args:
        almanac: a butler.
        file: its ``butler.toml``.
        token: of the test.
        schedules: the schedules of the file, to which one is added and taken away again.
    """
    name = f"{token}-taken"
    await almanac.call("schedule_create", name=name, cron=DAILY, prompt=prompt_of(token))
    made = await schedule_row(almanac, name)
    for more in (TAKEN.format(token=token), ""):
        file.write_text(ALMANAC.format(schedules=schedules + more), encoding="utf-8")
        await almanac.stop()
        # A butler that refuses the file says why, and starts without it.
        with suppress(HarnessError):
            await almanac.start()
        found = await rows_named(almanac, name)

        assert 1 == len(found), (
            f"acknowledged means kept: a task that was made at run time is gone when the file "
            f"{'has' if more else 'had'} one of its name; expected it once, found {found}"
        )
        expect_unchanged("a file with a task of its name", made, found[0])
    await change_task(almanac, name, "schedule_delete")
