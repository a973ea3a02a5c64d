"""The sequential test keeps the error rates it promises, and stops early."""

from __future__ import annotations

import pytest

from harness_core.assertions import SequentialPlan, SequentialTest
from harness_core.assertions._sequential import FALSE_ALARM, MISSED, MOST_TRIALS
from harness_core.base.errors import BadInput


def fates(plan: SequentialPlan, rate: float) -> tuple[float, float, float]:
    """Exactly, by following every path: chance of "good", of "bad", and trials on average."""
    open_paths = {(0, 0): 1.0}
    good = bad = trials = 0.0
    while open_paths:
        onward: dict[tuple[int, int], float] = {}
        for (passed, failed), chance in open_paths.items():
            for success, share in ((True, rate), (False, 1 - rate)):
                test = SequentialTest(plan)
                test.passed, test.failed = passed, failed
                test.record(success=success)
                weight = chance * share
                if test.decision is None:
                    key = (test.passed, test.failed)
                    onward[key] = onward.get(key, 0.0) + weight
                    continue
                good += weight * (test.decision is True)
                bad += weight * (test.decision is False)
                trials += weight * (test.passed + test.failed)
        open_paths = onward
    return good, bad, trials


@pytest.mark.parametrize("rate", [0.95, 0.9, 0.8, 0.6])
def test_errors_are_as_rare_as_promised(rate: float) -> None:
    """Good is called bad, and bad good, no more often than planned, over all possible runs."""
    plan = SequentialPlan.for_rate(rate)
    good_at_good, bad_at_good, _ = fates(plan, plan.good)
    good_at_bad, bad_at_bad, _ = fates(plan, plan.bad)

    assert 1 == pytest.approx(good_at_good + bad_at_good)
    assert 1 == pytest.approx(good_at_bad + bad_at_bad)
    # Wald: the sum of both is below the sum of what was asked for, each below a / (1 - b).
    assert bad_at_good + good_at_bad <= FALSE_ALARM + MISSED + 0.02
    assert bad_at_good <= FALSE_ALARM / (1 - MISSED) + 0.02
    assert good_at_bad <= MISSED / (1 - FALSE_ALARM) + 0.02


def test_it_stops_early_either_way() -> None:
    """What never fails is good soon, what never succeeds is bad sooner, long before the limit."""
    plan = SequentialPlan.for_rate(0.9)
    lengths = {}
    for success in (True, False):
        test = SequentialTest(plan)
        while test.decision is None:
            test.record(success=success)

        assert success is test.decision
        lengths[success] = test.passed + test.failed

    assert {True: 6, False: 2} == lengths
    assert fates(plan, 0.9)[2] < MOST_TRIALS / 3
    assert fates(plan, 0.6)[2] < MOST_TRIALS / 3


def test_it_ends_at_its_limit() -> None:
    """A rate between the two might go on for ever; the limit decides for the nearer one."""
    test = SequentialTest(SequentialPlan.for_rate(0.9))
    while test.decision is None:
        test.record(success=test.evidence > 0)

    assert MOST_TRIALS == test.passed + test.failed
    assert test.decision is False
    assert "23 of 30 trials passed: not good enough for a rate of 0.9" in test.text()
    with pytest.raises(BadInput):
        test.record(success=True)


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.0, -1, 7])
def test_a_rate_without_room_below_it_is_refused(rate: float) -> None:
    """A pass rate of 1 is what a row without one says; one near 0 could not be missed."""
    with pytest.raises(BadInput):
        SequentialPlan.for_rate(rate)
