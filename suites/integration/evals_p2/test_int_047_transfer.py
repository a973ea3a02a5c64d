"""What solving related seeds brings is a difference of two rates with its interval, or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Final

import pytest
from workbench_contract.metrics import Transfer

from harness_core.doubles.http import Response
from harness_core.doubles.turns import fail
from suites.integration.batching import ended_batch, submitted_batch
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.messages import answered
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-047"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000047"

#: Two-sided, 95 %.
_Z: Final = NormalDist().inv_cdf(0.975)


async def test_int_047_uplift_over_the_seeds_that_both_have(episodes: Episodes) -> None:
    """A batch that succeeds in all of six seeds is held against one that succeeds in one of them.

    What only one of the two has does not count; turned round there is a loss, and beside itself nothing. The
    model provider is a stand-in: the gateway does the turns.
    """
    good = await _batch(episodes, {**dict.fromkeys(range(1, 7), True), 71: False, 72: False})
    poor = await _batch(
        episodes, {1: True, **dict.fromkeys(range(2, 7), False), 81: True, 82: True}
    )

    found = await _transfer(episodes, good, poor)
    expect_same([1, 2, 3, 4, 5, 6], found.seeds, what="seeds that both have")
    expect_same([71, 72, 81, 82], found.unpaired, what="seeds that one has alone")
    _is(found, (6, 6), (1, 6))
    assert found.improves, f"six of six beside one of six is an improvement: found {found}"

    turned = await _transfer(episodes, poor, good)
    _is(turned, (1, 6), (6, 6))
    assert not turned.improves, f"a loss is no improvement: found {turned}"
    itself = await _transfer(episodes, good, good)
    _is(itself, (6, 8), (6, 8))
    assert not itself.improves, f"a batch does not improve on itself: found {itself}"


async def test_int_047_each_run_of_a_seed_that_has_ended_counts(episodes: Episodes) -> None:
    """Of several runs of one seed all count; one that still runs is neither a success nor a failure.

    The model provider is a stand-in: the gateway does the turns.
    """
    often = await _batch(episodes, [(1, True), (1, False), (1, True), (2, True)])
    twice = await _batch(episodes, [(1, False), (1, False), (2, True)])
    _is(await _transfer(episodes, often, twice), (3, 4), (1, 3))

    running = [({"seed": 2}, (episodes.waiting(),)), ({"seed": 1}, ())]
    accepted, _ = await submitted_batch(episodes, running)
    [waits, ends] = accepted.episodes
    await episodes.begun(waits.session_id)
    await episodes.until(ends.episode_id, "completed")
    found = await _transfer(episodes, accepted.batch_id, often)
    expect_same([1], found.seeds, what="seeds of which both have an end")
    _is(found, (1, 1), (2, 3))
    await episodes.release(waits.session_id)
    await episodes.until(waits.episode_id, "completed")
    _is(await _transfer(episodes, accepted.batch_id, often), (2, 2), (3, 4))


async def test_int_047_chance_and_nothing(episodes: Episodes) -> None:
    """One seed, even if it is 0, proves nothing, and without a common one there is no uplift; unknown batches are refused.

    The model provider is a stand-in.
    """
    one, none = await _batch(episodes, {0: True}), await _batch(episodes, {0: False})
    found = await _transfer(episodes, one, none)
    expect_same(([0], []), (found.seeds, found.unpaired), what="seeds that both have, or one alone")
    _is(found, (1, 1), (0, 1))
    assert not found.improves, f"one beside none, of one each, may be chance: found {found}"
    far = await _batch(episodes, {6: True})
    apart = await _transfer(episodes, one, far)
    assert apart.uplift is None, f"without a common seed there is no uplift: found {apart}"
    assert apart.interval is None, f"and no interval: found {apart}"
    assert not apart.improves, f"and no improvement: found {apart}"
    assert apart.missing.strip(), f"what is missing is said: found {apart}"
    for pair in ((one, _UNKNOWN), (_UNKNOWN, one)):
        expect_refused(await _ask(episodes, *pair), 404, says=_UNKNOWN)


async def _batch(episodes: Episodes, runs: Mapping[int, bool] | Sequence[tuple[int, bool]]) -> str:
    """A batch whose episodes complete or fail, by their seeds."""
    pairs = list(runs.items()) if isinstance(runs, Mapping) else list(runs)
    members = [({"seed": seed}, () if done else (fail(400),)) for seed, done in pairs]
    batch_id, ended, _ = await ended_batch(episodes, members)
    statuses = [(each["seed"], each["status"] == "completed") for each in ended]
    expect_same(pairs, statuses, what="how the episodes of the batch ended")
    return batch_id


async def _ask(episodes: Episodes, batch_id: str, baseline_id: str) -> Response:
    params = {"batch_id": batch_id, "baseline_id": baseline_id}
    return await episodes.controller.get("/metrics/transfer", params=params)


async def _transfer(episodes: Episodes, batch_id: str, baseline_id: str) -> Transfer:
    answer = await _ask(episodes, batch_id, baseline_id)

    assert 200 == answer.status, f"expected the batch beside its baseline, found {answer}"
    return answered(answer, Transfer)


def _is(found: Transfer, rate: tuple[int, int], baseline: tuple[int, int]) -> None:
    """Both rates, their difference and its interval, by a calculation of our own."""
    for name, (succeeded, ended) in (("rate", rate), ("baseline", baseline)):
        each = getattr(found, name)
        expect_same((succeeded, ended), (each.succeeded, each.ended), what=f"{name} of the two")
    uplift = rate[0] / rate[1] - baseline[0] / baseline[1]
    assert found.uplift is not None, f"expected an uplift of {uplift}, found {found}"
    assert math.isclose(uplift, found.uplift, abs_tol=1e-9), f"expected {uplift}, found {found}"
    (low, high), (low_b, high_b) = _wilson(*rate), _wilson(*baseline)
    p, q = rate[0] / rate[1], baseline[0] / baseline[1]
    interval = (uplift - math.hypot(p - low, high_b - q), uplift + math.hypot(high - p, q - low_b))
    assert found.interval is not None, f"an uplift has its interval: found {found}"
    for expected, side in zip(interval, (found.interval.low, found.interval.high), strict=True):
        assert math.isclose(expected, side, abs_tol=1e-6), f"expected {interval}, found {found}"


def _wilson(hits: int, n: int) -> tuple[float, float]:
    """The two p that lie z deviations of p from the share: (p - hits/n)^2 = z^2 p (1 - p) / n."""
    a, b, c = 1 + _Z**2 / n, -(2 * hits / n + _Z**2 / n), (hits / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
