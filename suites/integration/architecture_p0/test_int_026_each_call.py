"""INT-026: the event of a tool call says how the call has ended."""

from __future__ import annotations

from typing import Any, Final

import pytest

from harness_core.base.slowness import patience
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.planners import planner_at_work

#: An operation that builds or simulates.
_WORK_S: Final = 60.0

#: Operations that are refused, by what they name; and some that are not.
_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("/fs/read", {"path": "none.txt"}),
    ("/fs/read", {"path": "todo.md"}),
    ("/fs/view", {"path": "none.png"}),
    ("/fs/write", {"path": "../none.txt", "content": "x"}),
    ("/fs/edit", {"path": "todo.md", "old": "nowhere in it", "new": "x"}),
    ("/fs/delete", {"path": "none.txt"}),
    ("/fs/ls", {"path": "none"}),
    ("/fs/grep", {"pattern": "x", "path": "none"}),
    ("/git/commit", {"message": "nothing is kept yet"}),
    ("/lint", {"path": "none.py"}),
    ("/runtime/execute", {"command": "exit 3"}),
    ("/benchmark/validate_costing_and_price", {}),
    ("/benchmark/validate_and_price", {"model": "part.py"}),
    ("/benchmark/analyze", {"model": "none.py"}),
    ("/benchmark/analyze", {"model": "broken.py"}),
    ("/benchmark/validate", {"model": "none.py"}),
    ("/benchmark/simulate", {"model": "none.py"}),
    ("/benchmark/simulate", {"model": "broken.py", "duration_s": 0.1}),
    ("/benchmark/simulate", {"model": "part.py", "duration_s": 0.1}),
    ("/benchmark/simulate", {"model": "part.py", "objectives": "none.yaml", "duration_s": 0.1}),
    ("/benchmark/export", {"model": "broken.py"}),
    ("/benchmark/preview", {"model": "broken.py"}),
    ("/benchmark/render", {"model": "none.py"}),
    ("/benchmark/video", {"simulation": "none"}),
    ("/benchmark/submit", {}),
)


def _tool_of(operation: str) -> str:
    """The tool by which an agent has an operation carried out."""
    group, name = operation.removeprefix("/").rpartition("/")[::2]
    return f"{group}_{name}" if group in {"fs", "git"} else name


@pytest.mark.covers("INT-026")
@pytest.mark.integration_p0
async def test_int_026_each_call_ended_as_its_event_says(episodes: Episodes) -> None:
    """Whichever operation is carried out or refused, it leaves one event of a tool call that says which, and of what.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=263) as planner:
        session = planner.session
        await session.write("broken.py", "raise ValueError('kaputt')\n")
        await session.write("part.py", "from build123d import Box\n\npart = Box(3, 4, 5)\n")
        kinds = set()
        for operation, fields in _CALLS:
            last = (await session.events())[-1]["seq"]
            answer = await session.post(operation, **fields, seconds=patience(_WORK_S))
            events = calls(await session.events(after=last), "tool_call")
            what = f"{operation} of {fields}"
            assert 1 == len(events), f"expected one event of {what}, found {events}"
            ended = events[0]["payload"]["ok"]
            payload = events[0]["payload"]
            expect_same(
                _tool_of(operation), payload["tool"], what=f"the tool in the event of {what}"
            )
            told = {key: payload["arguments"].get(key) for key in fields}
            expect_same(fields, told, what=f"what the event says that was asked of {operation}")
            expect_same(
                answer.status < 400, ended, what=f"whether {what} was carried out: {answer}"
            )
            kinds.add(ended)
        expect_same({True, False}, kinds, what="how calls ended here, some this way and some that")
