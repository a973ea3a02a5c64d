"""A load report that lies is worse than none: percentiles and the account of every message."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.e2e.load.account import (
    Found,
    Sending,
    Step,
    Timings,
    knee,
    percentile,
    settle,
    timings_table,
)

pytestmark = pytest.mark.aside("the account of the suite")

SAMPLES = st.lists(st.floats(0, 1e6), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("share", "expected"), [(50, 10), (90, 18), (95, 19), (99, 20), (100, 20), (5, 1), (5.1, 2)]
)
def test_percentiles_are_by_nearest_rank(share, expected) -> None:
    """Of 20 samples the 95th percentile is the 19th, neither rounded up nor interpolated."""
    assert expected == percentile([float(n) for n in range(20, 0, -1)], share)


@given(SAMPLES, st.sampled_from([1, 50, 90, 95, 99, 99.9, 100]))
def test_a_percentile_is_a_sample_that_enough_others_do_not_exceed(samples, share) -> None:
    """It was measured; its share of samples lies at or below it, and no smaller sample does that."""
    value = percentile(samples, share)
    below = sum(sample <= value for sample in samples)
    strictly = sum(sample < value for sample in samples)

    assert value in samples
    assert below * 100 >= share * len(samples) - 1e-6
    assert strictly * 100 < share * len(samples) + 1e-6


@given(SAMPLES)
def test_percentiles_never_fall_and_end_at_the_slowest(samples) -> None:
    """p50 ≤ p90 ≤ p95 ≤ p99 ≤ max, and the median is next to the textbook's."""
    values = [percentile(samples, share) for share in (50, 90, 95, 99, 100)]

    assert sorted(values) == values
    assert max(samples) == values[-1]
    assert statistics.median_low(samples) == values[0]


@pytest.mark.parametrize(
    ("samples", "share"), [([], 50), ([1.0], 0), ([1.0], 101), ([math.nan, 1.0], 50)]
)
def test_what_cannot_be_ranked_is_refused(samples, share) -> None:
    """No samples, no such share, no number: an error, not a zero."""
    with pytest.raises(ValueError, match="cannot"):
        percentile(samples, share)


def test_a_report_counts_every_sample() -> None:
    """The one slow call of a hundred is in p100 and p99 shows what it must."""
    of = Timings(samples_ms=(*[10.0] * 98, 20.0, 5000.0))

    assert {
        "count": 100,
        "p50_ms": 10.0,
        "p90_ms": 10.0,
        "p95_ms": 10.0,
        "p99_ms": 20.0,
        "max_ms": 5000.0,
    } == of.as_json()
    assert "5000" in timings_table({"ingest": of, "none": Timings(samples_ms=())})
    assert {"count": 0} == Timings(samples_ms=()).as_json()


def sent(event="e1", request="r1", **changes) -> Sending:
    """A sending that was accepted."""
    return Sending(event=event, request=request, **changes)


def good(**changes) -> Found:
    """A message that ended well."""
    return Found(**({"states": ("completed",), "wanted": 1, "done": 1} | changes))


def test_all_well_is_no_problem() -> None:
    """Two messages, one of them sent twice: both accepted, both done once."""
    sendings = [sent(), sent(duplicate=True), sent("e2", "r2")]
    account = settle(sendings, {"r1": good(), "r2": good(wanted=2, done=2)})

    assert () == account.problems
    assert (2, 2, 1) == (account.sent, account.accepted, account.resent)


@pytest.mark.parametrize(
    ("sendings", "found", "words"),
    [
        ([sent()], {}, "e1: lost, request r1 was accepted and is nowhere"),
        ([sent()], {"r1": good(states=())}, "lost"),
        ([sent()], {"r1": good(states=("planned",))}, "ended as 'planned', not 'completed'"),
        ([sent()], {"r1": good(states=("errored",))}, "ended as 'errored'"),
        ([sent()], {"r1": good(states=("completed", "completed"))}, "has 2 rows"),
        ([sent()], {"r1": good(done=2)}, "has 1 parts, 2 were done"),
        ([sent()], {"r1": good(wanted=2)}, "has 2 parts, 1 were done"),
        ([sent()], {"r1": good(wanted=0, done=0)}, "has 0 parts"),
        ([sent()], {"r1": good(trouble="a session is open")}, "a session is open"),
        ([sent(), sent(request="r2")], {"r1": good(), "r2": good()}, "was given 2 ids"),
        ([sent(), sent()], {"r1": good()}, "accepted as new 2 times"),
        ([sent(duplicate=True)], {"r1": good()}, "accepted as new 0 times"),
        ([sent(), sent("e2")], {"r1": good()}, "shares request r1 with e1"),
        ([sent(error="refused")], {}, "e1: refused"),
        ([sent()], {"r1": good(), "r9": good()}, "messages that were not sent: r9"),
    ],
)
def test_each_way_to_lose_or_repeat_a_message_is_reported(sendings, found, words) -> None:
    """One problem, and it names the message."""
    problems = settle(sendings, found).problems

    assert [] != [problem for problem in problems if words in problem], problems


def test_a_message_without_an_answer_may_be_there() -> None:
    """Who got no answer cannot know; what was stored for it is not called a stranger's."""
    problems = settle([sent(request="", error="timed out")], {"r1": good()}).problems

    assert ("e1: timed out",) == problems


def step(rate: float, *, sent: int, finished: int) -> Step:
    """A step of which nothing else matters."""
    none = Timings(samples_ms=())
    return Step(
        rate_per_s=rate, sent=sent, finished=finished, backlog=sent - finished, late_ms=0.0,
        ingest=none, whole=none,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("finished", "expected"),
    [
        pytest.param((10, 20, 40), "not reached at 4 messages/s, the last rate", id="none"),
        pytest.param((9, 18, 36), "not reached at 4 messages/s, the last rate", id="just-kept-up"),
        pytest.param((8, 8, 8), "below 1 messages/s, the first rate", id="at-once"),
        pytest.param((10, 17, 40), "between 1 and 2 messages/s", id="a-later-one-kept-up"),
        pytest.param((10, 20, 22), "between 2 and 4 messages/s (at most 2.20", id="in-between"),
    ],
)
def test_the_knee_is_before_the_first_rate_that_was_not_kept_up_with(finished, expected) -> None:
    """Nine of ten messages finished in the time of a step are enough; one step that falls behind is not."""
    rates = zip((1.0, 2.0, 4.0), (10, 20, 40), finished, strict=True)
    found = knee([step(rate, sent=sent, finished=done) for rate, sent, done in rates])

    assert found.startswith(expected), f"the knee is {expected}, found {found}"


def test_no_steps_have_no_knee() -> None:
    """A ramp that was not run says so."""
    assert knee([]) == "no step was run", "a ramp without steps has no knee"
