"""What calls cost, what a run may spend, and what is written down about both."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from harness_core.doubles.model import LedgerEntry
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._ledger import Ledger, Sum, Totals
from harness_core.doubles.model._prices import price_usd
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Usage
from harness_core.tests.model.served import HAIKU, entry


def test_prices_come_from_the_table() -> None:
    """Haiku costs what the price table says, cache tokens at their own price."""
    million = 1_000_000

    assert price_usd(HAIKU, Usage(input_tokens=million)) == pytest.approx(1.0)
    assert price_usd(HAIKU, Usage(output_tokens=million)) == pytest.approx(5.0)
    assert price_usd(HAIKU, Usage(cache_read_tokens=million)) == pytest.approx(0.1)
    assert price_usd(HAIKU, Usage(cache_write_tokens=million)) == pytest.approx(1.25)


def test_an_unknown_model_has_no_price() -> None:
    """A model the table does not know is unpriced, never free."""
    assert price_usd("no-such-model-9", Usage(input_tokens=10)) is None


async def test_a_call_that_cannot_fit_is_refused_with_the_sums() -> None:
    """The refusal is a 402, which Claude Code does not retry, and names every sum."""
    budget = Budget(0.10)
    await budget.reserve(0.09)
    budget.settle(0.09, 0.08)

    with pytest.raises(Refusal) as caught:
        await budget.reserve(0.03)

    assert 402 == caught.value.status
    assert "budget_exceeded" == caught.value.reason
    for part in ("0.0800", "0.1000", "0.0300"):
        assert part in caught.value.message
    assert 1 == budget.refused


async def test_a_call_waits_for_those_in_flight() -> None:
    """What only calls in flight stand in the way of waits for them instead of failing."""
    budget = Budget(0.10)
    await budget.reserve(0.08)
    order: list[str] = []

    async def second() -> None:
        await budget.reserve(0.08)
        budget.settle(0.08, 0.01)
        order.append("second")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        order.append("first")
        budget.settle(0.08, 0.01)

    assert ["first", "second"] == order
    assert budget.spent_usd == pytest.approx(0.02)


@given(
    calls=st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 1), st.integers(0, 5)), max_size=25),
    limit=st.floats(0, 1),
)
def test_concurrent_calls_never_pass_the_limit(calls, limit) -> None:
    """Whatever calls do at once, spending stays within the limit and equals what was settled."""

    async def main() -> None:
        budget = Budget(limit)
        settled: list[float] = []

        async def call(worst: float, share: float, yields: int) -> None:
            try:
                await budget.reserve(worst)
            except Refusal:
                return
            assert budget.spent_usd + budget.reserved_usd <= limit + 1e-6
            for _ in range(yields):
                await trio.lowlevel.checkpoint()
            budget.settle(worst, worst * share)
            settled.append(worst * share)

        async with trio.open_nursery() as nursery:
            for worst, share, yields in calls:
                nursery.start_soon(call, worst, share, yields)

        assert budget.spent_usd == pytest.approx(sum(settled), abs=1e-6)
        assert budget.spent_usd <= limit + 1e-6
        assert budget.reserved_usd == pytest.approx(0, abs=1e-6)

    trio.run(main)


@pytest.mark.parametrize("limit", [-0.01, float("nan"), float("inf")])
def test_a_budget_is_a_sum_of_money(limit) -> None:
    """A limit that limits nothing is refused."""
    with pytest.raises(ValueError, match="budget"):
        Budget(limit)


def test_the_ledger_adds_up_by_test(tmp_path) -> None:
    """Each call counts once, for its test; count_tokens is free and unknown models are named."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    rows = [
        entry(1, test="a", session="s1", usd=0.01, input_tokens=10, output_tokens=1, charged=True),
        entry(2, test="a", session="s2", usd=0.02, cache_read_tokens=5),
        entry(3, test="b", session="s2", usd=None, model="new", status=200, input_tokens=7),
        entry(4, test="b", usd=0.0, status=529),
        entry(5, test="b", kind="count_tokens", usd=0.0, input_tokens=1000),
    ]
    for row in rows:
        ledger.add(row)

    ledger.close()
    totals = ledger.totals()

    assert 4 == totals.overall.calls
    assert (22, 1) == (totals.overall.input_tokens, totals.overall.output_tokens)
    assert totals.overall.usd == pytest.approx(0.03)
    assert totals.overall.charged_usd == pytest.approx(0.01)
    assert (1, 1) == (totals.overall.unpriced, totals.overall.failed)
    assert {"a": 2, "b": 2} == {test: part.calls for test, part in totals.by_test.items()}
    written = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert rows == [msgspec.json.decode(line, type=LedgerEntry) for line in written]
    assert rows[2:] == ledger.since(2)
    assert 5 == ledger.last_sequence


def test_totals_of_gateways_add_up() -> None:
    """Workers of one run have a gateway and a share of the budget each; sums of a test are joined."""
    first = Totals(
        overall=Sum(calls=2, usd=0.1, charged_usd=0.1),
        by_test={"a": Sum(calls=1, usd=0.04), "": Sum(calls=1, usd=0.06)},
        mode="live",
        budget_usd=0.5,
        spent_usd=0.1,
    )
    second = Totals(
        overall=Sum(calls=1, failed=1),
        by_test={"b": Sum(), "": Sum(calls=1, failed=1)},
        mode="live",
        budget_usd=0.5,
        budget_exceeded=True,
    )

    assert Totals() == Totals.sum(())
    assert first == Totals.sum((first,))
    assert Totals(
        overall=Sum(calls=3, usd=0.1, charged_usd=0.1, failed=1),
        by_test={
            "a": Sum(calls=1, usd=0.04),
            "b": Sum(),
            "": Sum(calls=2, usd=0.06, failed=1),
        },
        mode="live",
        budget_usd=1.0,
        spent_usd=0.1,
        budget_exceeded=True,
    ) == Totals.sum((first, second))
