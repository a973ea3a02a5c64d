"""What a new version of the skills changed is a difference of two shares with its interval, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import pytest
from workbench_contract.metrics import Effectiveness, Rate

from harness_core.doubles.http import Response
from harness_core.doubles.turns import Turn, fail, use
from suites.integration.batching import ended_batch
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.messages import answered
from suites.integration.refusals import expect_refused
from suites.integration.skilling import Skills, skill

pytestmark = [
    pytest.mark.covers("INT-052"),
    pytest.mark.integration_p2,
    pytest.mark.not_in_containers(
        "makes the repository of skills in the folder of the worker, which is in a volume"
    ),
]

#: Two-sided, 95 %.
_Z: Final = NormalDist().inv_cdf(0.975)

_NO_RUN: Final = "5" * 40

_READ: Final = use("fs_read", path="skills/bolting/SKILL.md")
_OTHER: Final = use("execute", command="cat skills/welding/SKILL.md")
_FAILS: Final = fail(400)


async def test_int_052_delta_of_two_versions(episodes: Episodes, skills: Skills) -> None:
    """Runs that succeed once in six with one version and always with the next differ by that.

    Whatever their roles; runs of a version between and of none count for neither. Turned round there is a loss,
    and beside itself nothing. The model provider is a stand-in: the gateway does the turns.
    """
    before = await _runs(episodes, skills, "one", [[], *[[_FAILS]] * 5])
    between = await _runs(episodes, skills, "two", [[], []])
    with skills.away():
        await ended_batch(episodes, [({}, []), ({}, [_FAILS])])
    after = await _runs(episodes, skills, "three", [[]] * 6)

    found = await _delta(episodes, before, after)
    _is(found, (1, 6), (6, 6))
    assert found.improves, f"six of six beside one of six is an improvement: found {found}"
    turned = await _delta(episodes, after, before)
    _is(turned, (6, 6), (1, 6))
    assert not turned.improves, f"a loss is no improvement: found {turned}"
    _is(await _delta(episodes, between, after), (2, 2), (6, 6))
    itself = await _delta(episodes, after, after)
    _is(itself, (6, 6), (6, 6))
    assert not itself.improves, f"a version does not improve on itself: found {itself}"

    more = await _runs(episodes, skills, "three", [[_FAILS]], commit=after)
    expect_same(after, more, what="the version of one more run")
    _is(await _delta(episodes, before, after), (1, 6), (6, 7))


async def test_int_052_runs_that_read_a_skill(episodes: Episodes, skills: Skills) -> None:
    """Of one skill those runs count that read it, by the file API or by code, whatever others did.

    The model provider is a stand-in.
    """
    before = await _runs(
        episodes, skills, "one", [[_READ, _FAILS], [_READ], [_OTHER], [_OTHER], [_FAILS]]
    )
    after = await _runs(
        episodes, skills, "two", [[_READ], [_READ], [_READ, _OTHER], [_OTHER, _FAILS], [_FAILS]]
    )
    _is(await _delta(episodes, before, after), (3, 5), (3, 5))
    _is(await _delta(episodes, before, after, skill="bolting"), (1, 2), (3, 3))
    _is(await _delta(episodes, before, after, skill="welding"), (2, 2), (1, 2))
    none = await _delta(episodes, before, after, skill="casting")
    _is_nothing(none, missing=[before, after])


async def test_int_052_chance_and_nothing(episodes: Episodes, skills: Skills) -> None:
    """One run beside one proves nothing; without a run of a version there is no delta, and it is said of which.

    What is no commit is refused. The model provider is a stand-in.
    """
    before = await _runs(episodes, skills, "one", [[_FAILS]])
    unused = await skills.commit(_files("nobody's"))
    after = await _runs(episodes, skills, "two", [[]])

    found = await _delta(episodes, before, after)
    _is(found, (0, 1), (1, 1))
    assert not found.improves, f"one beside none, of one each, may be chance: found {found}"
    _is_nothing(await _delta(episodes, before, unused), missing=[unused])
    _is_nothing(await _delta(episodes, unused, after), missing=[unused])
    _is_nothing(await _delta(episodes, unused, _NO_RUN), missing=[unused, _NO_RUN])
    for wrong in ("HEAD", "main", "' or 1=1 --", before[:7], ""):
        for pair in ((wrong, after), (before, wrong)):
            expect_refused(await _ask(episodes, *pair), 400, 404, 422)


async def test_int_052_it_is_computed_from_what_is_stored(
    breakable: Episodes, skills: Skills
) -> None:
    """With the repository and the worker gone and the controller killed, the delta is what it was.

    A run that is under way does not count before its end, and one that was interrupted not at all. The model
    provider is a stand-in.
    """
    before = await _runs(breakable, skills, "one", [[_FAILS], [_READ]])
    after = await _runs(breakable, skills, "two", [[_READ], [_READ], [_READ]])
    token = new_token()
    await breakable.rehearse(token, _READ, breakable.waiting(), _FAILS)
    accepted = await breakable.submit(token)
    await breakable.begun(accepted["session_id"])
    found = await _delta(breakable, before, after, skill="bolting")
    _is(found, (1, 1), (3, 3))
    with skills.away():
        async with breakable.stack.outage("controller", "kill"):
            pass
        expect_same(
            found,
            await _delta(breakable, before, after, skill="bolting"),
            what="the delta after the controller was killed",
        )
    await breakable.release(accepted["session_id"])
    await breakable.until(accepted["episode_id"], "failed")
    _is(await _delta(breakable, before, after, skill="bolting"), (1, 1), (3, 4))
    token = new_token()
    await breakable.rehearse(token, _READ, breakable.waiting())
    accepted = await breakable.submit(token)
    await breakable.begun(accepted["session_id"])
    answer = await breakable.interrupt(accepted["episode_id"])
    assert 202 == answer.status, f"expected the interruption accepted, found {answer}"
    await breakable.until(accepted["episode_id"], "interrupted")
    _is(await _delta(breakable, before, after, skill="bolting"), (1, 1), (3, 4))


def _files(words: str) -> dict[str, str]:
    return {f"{name}/SKILL.md": skill(name, words) for name in ("bolting", "welding")}


async def _runs(
    episodes: Episodes,
    skills: Skills,
    words: str,
    runs: Sequence[Sequence[Turn]],
    *,
    commit: str = "",
) -> str:
    """Runs with a version of the skills, a new one unless it is given; its commit."""
    commit = commit or await skills.commit(_files(f"{words} {new_token()}"))
    members = [({"role": _role(number, turns)}, turns) for number, turns in enumerate(runs)]
    _, ended, _ = await ended_batch(episodes, members)
    versions = {each["skills"]["commit"] for each in ended}
    expect_same({commit}, versions, what="versions on record of the runs")
    done = [each["status"] == "completed" for each in ended]
    expect_same([_FAILS not in turns for turns in runs], done, what="how the runs ended")
    return commit


def _role(number: int, turns: Sequence[Turn]) -> str:
    """Skills are there for every role; who plans runs no command."""
    role = ("planner", "reviewer", "coder")[number % 3]
    return "coder" if role == "planner" and _OTHER in turns else role


async def _ask(episodes: Episodes, before: str, after: str, **more: str) -> Response:
    params = {"before": before, "after": after, **more}
    return await episodes.controller.get("/metrics/skills", params=params)


async def _delta(episodes: Episodes, before: str, after: str, **more: str) -> Effectiveness:
    answer = await _ask(episodes, before, after, **more)

    assert 200 == answer.status, f"expected one version beside another, found {answer}"
    return answered(answer, Effectiveness)


def _is_nothing(found: Effectiveness, *, missing: Sequence[str]) -> None:
    """Nothing is made of nothing."""
    assert found.delta is None, f"without a run there is no delta: found {found}"
    assert found.interval is None, f"and no interval: found {found}"
    assert not found.improves, f"and no improvement: found {found}"
    for commit in missing:
        assert commit in found.missing, f"it is said that no run had {commit}: found {found}"


def _is(found: Effectiveness, before: tuple[int, int], after: tuple[int, int]) -> None:
    """Both shares, their difference and its interval, by a calculation of our own."""
    counted = [(each.succeeded, each.ended) for each in (found.before_rate, found.after_rate)]
    expect_same([before, after], counted, what="runs before and after")
    shares: list[tuple[Rate, float]] = [
        (found.before_rate, before[0] / before[1]),
        (found.after_rate, after[0] / after[1]),
    ]
    for rate, share in shares:
        assert rate.value == pytest.approx(share), f"expected a share of {share}, found {found}"
    q, p = (share for _, share in shares)
    assert found.delta == pytest.approx(p - q, abs=1e-9), f"expected {p - q}, found {found}"
    (low_b, high_b), (low, high) = _wilson(*before), _wilson(*after)
    interval = (p - q - math.hypot(p - low, high_b - q), p - q + math.hypot(high - p, q - low_b))
    assert found.interval is not None, f"a delta has its interval: found {found}"
    seen = (found.interval.low, found.interval.high)
    assert seen == pytest.approx(interval, abs=1e-6), f"expected {interval}, found {found}"
    expect_same("", found.missing, what="what is missing where there is a delta")


def _wilson(hits: int, n: int) -> tuple[float, float]:
    """The two p that lie z deviations of p from the share: (p - hits/n)^2 = z^2 p (1 - p) / n."""
    a, b, c = 1 + _Z**2 / n, -(2 * hits / n + _Z**2 / n), (hits / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
