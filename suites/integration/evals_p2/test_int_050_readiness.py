"""A finished episode is ready for a data set, or says which mark it lacks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pytest
from workbench_contract.readiness import Mark, Readiness

from harness_core.doubles.turns import Use, fail, use
from harness_core.system.subject import Subject
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.messages import answered
from suites.integration.observed import all_but, away, refusing
from suites.integration.patience import SOON_S, eventually
from suites.integration.planners import Planner, expect_accepted, planner_at_work
from suites.integration.refusals import expect_refused
from suites.integration.stack import layout_of

pytestmark = [pytest.mark.covers("INT-050"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000050"


async def test_int_050_one_that_has_all_is_ready_until_it_has_not(
    breakable: Episodes, subject: Subject
) -> None:
    """A planner that handed over, kept a journal and left assets is ready once Langfuse knows its run.

    It is not before it has ended, nor while Langfuse is away or refuses one of its calls, nor when one object of
    several is gone: each mark is looked at anew. The model provider and Langfuse are stand-ins.
    """
    recorder, word = layout_of(subject).recorder, new_token()
    turns = (_asset("kept"), _asset("beside"), use("fs_read", path=f"{word}.md"), _entry())
    with refusing(breakable.stack, recorder, word):
        with away(breakable.stack, recorder):
            async with planner_at_work(breakable, *turns, number=1) as planner:
                await _hands_over(planner)
                early = await _readiness(breakable, planner.episode_id)
                assert not early.ready, f"an episode that runs is not ready: found {early}"
                assert Mark.COMPLETED in _missing(early), f"it has not ended: found {early}"
            await breakable.until(planner.episode_id, "completed")
            await _is(breakable, planner.episode_id, {Mark.LANGFUSE}, why="unknown to Langfuse")
        await all_but(breakable, planner.episode_id, word)
        traces = (await breakable.get(planner.episode_id))["traces"]
        # Who tells Langfuse nothing of what is read has nothing refused.
        lacking = {Mark.LANGFUSE} if any(word in str(each["detail"]) for each in traces) else set()
        partly = _missing(await _readiness(breakable, planner.episode_id))
        expect_same(lacking, partly, what="marks that lack while Langfuse refuses a call")
    await _is(breakable, planner.episode_id, set(), why="that has all, to be ready")
    [row] = [
        each
        for each in (await breakable.get(planner.episode_id))["assets"]
        if each["path"] == "kept.md"
    ]
    await breakable.stack.remove_object(row["key"], bucket=row["bucket"])
    await _is(breakable, planner.episode_id, {Mark.ASSETS}, why="whose object is gone")


async def test_int_050_one_that_lacks_something_is_not_ready(episodes: Episodes) -> None:
    """Without a journal, a hand-over, assets, a tool call or an end of its own: each is told, and nothing else.

    What a search of the catalogue leaves in a journal is nothing that its agent has written. The model provider is a stand-in.
    """
    search = use("search_catalogue", q="bearing")
    async with planner_at_work(episodes, _asset("a"), search, number=2) as silent:
        await _hands_over(silent)
    async with planner_at_work(episodes, _asset("b"), _entry(), number=3) as idle:
        pass
    async with planner_at_work(episodes, _entry(), number=4) as bare:
        await _hands_over(bare)
    async with planner_at_work(episodes, number=5) as toolless:
        await _hands_over(toolless)
    token = new_token()
    await episodes.rehearse(token, _asset("c"), _entry(), fail(400))
    accepted = await episodes.submit(token)
    for each in (silent, idle, bare, toolless):
        await episodes.until(each.episode_id, "completed")
    await episodes.until(accepted["episode_id"], "failed")
    await _is(episodes, silent.episode_id, {Mark.JOURNAL}, why="without a journal")
    await _is(episodes, idle.episode_id, {Mark.HANDOVER}, why="without a hand-over")
    await _is(episodes, bare.episode_id, {Mark.ASSETS}, why="without assets")
    none = {Mark.TOOL_CALLS, Mark.JOURNAL, Mark.ASSETS}
    await _is(episodes, toolless.episode_id, none, why="whose agent called no tool")
    broken = {Mark.COMPLETED, Mark.HANDOVER}
    found = await _settled(episodes, accepted["episode_id"])
    assert broken <= _missing(found), f"one that failed lacks {broken} at least: found {found}"
    expect_refused(await episodes.controller.get(f"/episodes/{_UNKNOWN}/readiness"), 404)


def _asset(name: str) -> Use:
    return use("fs_write", path=f"assets/{name}.md", content=f"what is kept of {name}")


def _entry() -> Use:
    """An entry of the journal that rests on the first event of the session."""
    return use(
        "write_journal",
        intent="to plan",
        result="a plan",
        reflection="it may hold",
        next_step="to hand it over",
        observations=[{"source": "worker", "seq": 1}],
    )


async def _hands_over(planner: Planner) -> None:
    expect_accepted(await planner.judged(planner.sound()), "a sound plan")


async def _readiness(episodes: Episodes, episode_id: str) -> Readiness:
    answer = await episodes.controller.get(f"/episodes/{episode_id}/readiness")

    assert 200 == answer.status, f"expected the marks of the episode, found {answer}"
    found = answered(answer, Readiness)
    marks = [each.mark for each in found.marks]
    assert sorted(Mark) == sorted(marks), f"each mark is told once: found {marks}"
    missing = _missing(found)
    assert found.ready is not bool(missing), f"ready is without a missing mark: found {found}"
    return found


def _missing(found: Readiness) -> set[Mark]:
    return {each.mark for each in found.marks if not each.present}


async def _settled(episodes: Episodes, episode_id: str) -> Readiness:
    """The marks when Langfuse knows the run."""
    last: list[Any] = []

    async def there() -> Readiness | None:
        last[:] = [await _readiness(episodes, episode_id)]
        return last[0] if Mark.LANGFUSE not in _missing(last[0]) else None

    found: Readiness = await eventually(
        there, seconds=SOON_S, expected=f"{episode_id} known to Langfuse", seen=lambda: last
    )
    return found


async def _is(episodes: Episodes, episode_id: str, missing: Collection[Mark], *, why: str) -> None:
    """An episode comes to lack exactly these marks."""
    last: list[Any] = []

    async def there() -> bool:
        last[:] = [await _readiness(episodes, episode_id)]
        return _missing(last[0]) == set(missing)

    wanted = ", ".join(sorted(missing)) or "nothing"
    expected = f"an episode {why}: lacking {wanted}"
    await eventually(there, seconds=SOON_S, expected=expected, seen=lambda: last)
