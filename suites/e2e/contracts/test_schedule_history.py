"""Whatever is done to schedules, in whatever order: each task is what a small model says it is.

The model knows for each task its line, prompt, switch and whether it is due, and how often it must have
run. A run is one whose model refuses at once: the gateway is a stand-in for the model provider, which
does not refuse on request. Run: nox -s explore -- e2e
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any, Final

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from harness_core.assertions import new_token
from harness_core.assertions.exploring import Explore, Machine
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from suites.e2e.contracts.tasks import (
    LINES,
    NO_CRON,
    TICK_S,
    UTC_ZONE,
    armed_for,
    id_argument,
    values_inside,
)
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.journey import Row
from suites.e2e.worlds.schedules import fall_due, oversleep, put_off
from suites.e2e.worlds.zones import zone_of_environment

pytestmark = [
    pytest.mark.covers("E2E-SCHEDULES"),
    pytest.mark.capability("schedules"),
    pytest.mark.explore,
    pytest.mark.disturbs,
]

#: Names that meet, and are like one another.
_NAMES: Final = ("a", "A", "á", "a\u0301", "a%", "a b", "a:b")

#: What an example may last: no task of it comes due by itself in this time.
_EXAMPLE: Final = dt.timedelta(hours=1)

_SELDOM: Final = tuple(line for name, line in LINES.items() if name not in {"each-minute", "steps"})

_PROMPTS: Final = st.sampled_from(
    ["look", "look again", "Ünï 茶 'q' \"d\" %s $1 \\", "long " * 2000]
)


@dataclasses.dataclass(kw_only=True)
class Task:
    """What a task must be.

    Attributes:
        due: its time has come.
        armed: moments it may be armed for; empty when a test moved its time.
        ran: how often it must have run.
    """

    cron: str
    prompt: str
    enabled: bool = True
    due: bool = False
    armed: frozenset[dt.datetime] = frozenset()
    ran: int = 0


class ScheduleMachine(Machine):
    """One butler's schedules beside a model of ours.

    Args:
        ecosystem: where the butler is.
        butler: whose schedules.
    """

    def __init__(self, ecosystem: Ecosystem, butler: Butler) -> None:
        super().__init__()
        self._butler = butler
        self._client = ecosystem.gateway.client
        self._token = new_token()
        self._tasks: dict[str, Task] = {}
        self._gone: dict[str, int] = {}
        self._restarted = False
        refusal = Fault(kind="status", status=403, contains=self._token, times=10_000)
        self._refusal = self.wait_for(self._client.add_fault, refusal)

    @rule(ending=st.sampled_from(_NAMES), line=st.sampled_from(_SELDOM), prompt=_PROMPTS)
    def create(self, ending: str, line: str, prompt: str) -> None:
        """A task is made; a name that is taken is refused."""
        name, prompt = self._name(ending), f"{prompt} {self._token}"
        asked = self._now()
        if self._is_soon(line, asked):
            return
        answer = self._call("schedule_create", name=name, cron=line, prompt=prompt)
        if name in self._tasks:
            assert answer.is_error, f"a name is taken once, and {name!r} was made: {answer.text}"
            return
        assert not answer.is_error, f"a new task {name!r} of {line!r} was refused: {answer.text}"
        self._tasks[name] = Task(
            cron=line, prompt=prompt, armed=self._armed(line, asked), ran=self._gone.get(name, 0)
        )

    @rule(ending=st.sampled_from(_NAMES), line=st.sampled_from(sorted(NO_CRON.values())))
    def create_wrongly(self, ending: str, line: str) -> None:
        """What is no cron line is refused."""
        answer = self._call("schedule_create", name=self._name(ending), cron=line, prompt="x")

        assert answer.is_error, f"{line!r} is no cron line, and a task was made: {answer.text}"

    @precondition(lambda self: self._tasks)
    @rule(
        data=st.data(),
        line=st.none() | st.sampled_from(_SELDOM),
        prompt=st.none() | _PROMPTS,
        enabled=st.none() | st.booleans(),
    )
    def update(
        self,
        data: st.DataObject,
        line: str | None,
        prompt: str | None,
        enabled: bool | None,  # noqa: FBT001 - drawn by its name
    ) -> None:
        """What is given is changed, and nothing else."""
        name = self._any(data)
        task = self._tasks[name]
        changes: dict[str, Any] = {}
        if line is not None:
            changes["cron"] = line
        if prompt is not None:
            changes["prompt"] = f"{prompt} {self._token}"
        if enabled is not None:
            changes["enabled"] = enabled
        asked = self._now()
        if not changes or (line is not None and self._is_soon(line, asked)):
            return
        answer = self._call("schedule_update", **self._id(name), **changes)

        assert not answer.is_error, f"an update of {name!r} to {changes} was refused: {answer.text}"
        same_line = changes.get("cron") == task.cron
        for column, value in changes.items():
            setattr(task, column, value)
        if "cron" in changes:
            fresh = self._armed(task.cron, asked)
            # The same line again may leave its time as it was.
            task.armed = fresh | task.armed if same_line and task.armed else fresh
            if same_line and (task.due or not task.armed):
                self._read_again(name, fresh)
            else:
                task.due = False

    @precondition(lambda self: self._tasks)
    @rule(data=st.data(), line=st.sampled_from(sorted(NO_CRON.values())))
    def update_wrongly(self, data: st.DataObject, line: str) -> None:
        """A task is not changed to what is no cron line, in no part of it."""
        answer = self._call(
            "schedule_update", **self._id(self._any(data)), cron=line, prompt="x", enabled=False
        )

        assert answer.is_error, f"{line!r} is no cron line, and a task was changed: {answer.text}"

    @precondition(lambda self: self._tasks)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A task is gone; a second time there is nothing to delete."""
        name = self._any(data)
        own_id = self._id(name)
        answer = self._call("schedule_delete", **own_id)

        assert not answer.is_error, f"{name!r} could not be deleted: {answer.text}"
        self._gone[name] = self._tasks.pop(name).ran
        again = self._call("schedule_delete", **own_id)

        assert again.is_error, f"a task that is gone was deleted again: {again.text}"

    @precondition(lambda self: self._tasks)
    @rule(data=st.data(), way=st.sampled_from([fall_due, oversleep]))
    def comes_due(self, data: st.DataObject, way: Any) -> None:
        """The time of a task comes, or came long ago."""
        name = self._any(data)
        self.wait_for(way, self._butler, name)
        self._tasks[name].due, self._tasks[name].armed = True, frozenset()

    @precondition(lambda self: self._tasks)
    @rule(data=st.data())
    def is_put_off(self, data: st.DataObject) -> None:
        """The time of a task is far away again."""
        name = self._any(data)
        self.wait_for(put_off, self._butler, name)
        self._tasks[name].due, self._tasks[name].armed = False, frozenset()

    @rule(times=st.sampled_from([1, 1, 3]))
    def tick(self, times: int) -> None:
        """What is due and enabled runs once, and is armed again."""
        asked = self._now()
        self.wait_for(self._tick, times)
        for task in self._tasks.values():
            if task.due and task.enabled:
                task.due, task.ran = False, task.ran + 1
                task.armed = self._armed(task.cron, asked)
        for name, task in self._tasks.items():
            if task.due and not task.enabled:
                # Whether it stays due or waits for its next time is the product's choice.
                self._read_again(name, self._armed(task.cron, asked))

    @precondition(lambda self: not self._restarted and not self._butler.shared)
    @rule()
    def restart(self) -> None:
        """A restart changes nothing."""
        self._restarted = True
        self.wait_for(self._butler.restart)

    @invariant()
    def the_rows_are_the_model(self) -> None:
        """Every task stands in its row, and in the list, as it must be; no other does."""
        rows = {row["name"]: row for row in self.wait_for(self._rows)}
        listed = {
            entry["name"]: entry
            for entry in values_inside(self._call("schedule_list").value)
            if self._token in str(entry.get("name"))
        }
        for where, found in (("the table", rows), ("the list", listed)):
            assert found.keys() == self._tasks.keys(), (
                f"made and not deleted are {sorted(self._tasks)}, {where} has {sorted(found)}"
            )
        now = self._now()
        for name, task in self._tasks.items():
            row = rows[name]
            for column in ("cron", "prompt", "enabled"):
                expected = getattr(task, column)
                for where, found in (("row", row), ("list", listed[name])):
                    assert found.get(column, expected) == expected, (
                        f"{column} of {name!r} is {expected!r}; its {where} has {found[column]!r}"
                    )
            assert row["source"] == "db", f"{name!r} was made at run time: source {row['source']!r}"
            assert (row["next_run_at"] <= now) == task.due, (
                f"{name!r} is {'' if task.due else 'not '}due; its row says {row['next_run_at']}, "
                f"and it is {now}"
            )
            assert not task.armed or row["next_run_at"] in task.armed, (
                f"{name!r} ({task.cron!r}) is armed for {row['next_run_at']}, expected "
                f"{' or '.join(sorted(map(str, task.armed)))}"
            )
        self._expect_runs()

    def teardown(self) -> None:
        """Its tasks are deleted, and the model refuses no more."""
        for name in list(self._tasks):
            self._call("schedule_delete", **self._id(name))
        self.wait_for(self._client.withdraw_fault, self._refusal)

    def _expect_runs(self) -> None:
        owed = {f"schedule:{name}": task.ran for name, task in self._tasks.items() if task.ran}
        owed |= {f"schedule:{name}": ran for name, ran in self._gone.items() if ran} | owed
        found: dict[str, int] = {}
        for row in self.wait_for(self._sessions):
            found[row["trigger_source"]] = row["sessions"]

        assert found == owed, f"each run is one session: owed are {owed}, there are {found}"

    def _read_again(self, name: str, fresh: frozenset[dt.datetime]) -> None:
        """Whether the same line armed a task anew is the product's choice: as its row says."""
        row = next(row for row in self.wait_for(self._rows) if row["name"] == name)
        task = self._tasks[name]
        task.due = row["next_run_at"] <= self._now()
        task.armed = fresh if row["next_run_at"] in fresh else frozenset()

    def _armed(self, line: str, asked: dt.datetime) -> frozenset[dt.datetime]:
        zone = zone_of_environment(self._butler.environment)
        return frozenset(armed_for(line, asked, zone=UTC_ZONE) | armed_for(line, asked, zone=zone))

    def _is_soon(self, line: str, asked: dt.datetime) -> bool:
        """Whether a line comes due by itself while an example runs: such a task is not made."""
        return min(self._armed(line, asked)) < asked + _EXAMPLE

    def _any(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self._tasks)))

    def _name(self, ending: str) -> str:
        return f"{self._token} {ending}"

    def _id(self, name: str) -> dict[str, str]:
        rows = {row["name"]: row["id"] for row in self.wait_for(self._rows)}

        assert name in rows, f"{name!r} was made and not deleted, and has no row"
        return {self.wait_for(id_argument, self._butler): str(rows[name])}

    def _now(self) -> dt.datetime:
        async def read() -> Any:
            return (await self._butler.database.one("SELECT clock_timestamp() AS now"))["now"]

        return self.wait_for(read)

    def _call(self, tool: str, **arguments: Any) -> ToolResult:
        async def call() -> ToolResult:
            return await self._butler.try_call(tool, arguments)

        return self.wait_for(call)

    async def _rows(self) -> list[Row]:
        rows = await self._butler.database.rows(
            "SELECT * FROM scheduled_tasks WHERE starts_with(name, %s)", (self._token,)
        )
        return list(rows)

    async def _sessions(self) -> list[Row]:
        rows = await self._butler.database.rows(
            "SELECT trigger_source, count(*) AS sessions FROM sessions"
            " WHERE starts_with(trigger_source, %s) GROUP BY trigger_source",
            (f"schedule:{self._token}",),
        )
        return list(rows)

    async def _tick(self, times: int) -> None:
        async def tick() -> None:
            await self._butler.call("tick", seconds=TICK_S)

        async with trio.open_nursery() as nursery:
            for _ in range(times):
                nursery.start_soon(tick)

        async def settled() -> bool:
            rows = await self._butler.database.rows(
                "SELECT id FROM sessions WHERE completed_at IS NULL"
                " AND starts_with(trigger_source, 'schedule:')"
            )
            return not rows

        with deadline("see the scheduled sessions end", seconds=TICK_S):
            await until(settled)


async def test_schedules_keep_their_history(explore: Explore, ecosystem: Ecosystem) -> None:
    """Made, changed, due, missed, ticked at once and restarted: each task is what it must be."""
    await explore(lambda: ScheduleMachine(ecosystem, ecosystem["general"]), steps=12)
