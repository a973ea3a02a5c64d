"""What a ledger says to people: costs, keys that were refused, calls without a turn."""

import datetime as dt

import pytest

from harness_core.base.errors import HarnessError
from harness_core.doubles.model import Fault, cost_summary, expect_rehearsed, refused_keys
from harness_core.doubles.model._ledger import Ledger, Sum, Totals
from harness_core.tests.model.served import HI, entry, served

MINE, ANOTHERS = "suites/a/test_a.py::test_mine", "suites/a/test_a.py::test_anothers"


def test_the_summary_shows_tests_total_and_what_money_means() -> None:
    """A reader sees each test, the total and whether anything was really spent."""
    ledger = Ledger()
    ledger.add(entry(1, test="test_a", usd=0.01, input_tokens=10, output_tokens=2))
    ledger.add(entry(2, test="", usd=0.02, input_tokens=30, output_tokens=4))
    offline = cost_summary(ledger.totals())

    assert "test_a" in offline
    assert "(outside tests)" in offline
    total = next(line for line in offline.splitlines() if line.startswith("total"))
    assert ["total", "2", "40", "6", "0.03000"] == total.split()
    assert "nothing was spent" in offline

    exceeded = Totals(
        overall=Sum(calls=1, usd=0.1, charged_usd=0.1),
        mode="live",
        budget_usd=0.1,
        spent_usd=0.1,
        budget_exceeded=True,
    )
    assert "spent 0.1000 of 0.1000 USD" in cost_summary(exceeded)
    assert "BUDGET EXCEEDED" in cost_summary(exceeded)


async def test_what_was_refused_is_one_sentence() -> None:
    """Counted by what was wrong, since the test began; the calls of others and planted 401 apart."""
    async with served() as (http, control):
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "before"})
        began = dt.datetime.now(dt.UTC)
        await control.set_scope(ANOTHERS)
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "another's"})
        await control.set_scope(MINE)
        async with control.fault(Fault(kind="status", status=401)):
            await http.post("/v1/messages", json=HI)
        await http.post("/v1/messages", json=HI)
        silent = refused_keys(await control.ledger(), test=MINE, since=began)
        await http.post("/v1/messages", json=HI, headers={"x-api-key": "wrong"})
        await control.set_scope("")
        await http.post("/v1/messages/count_tokens", json=HI, headers={"x-api-key": "wrong"})
        await http.post("/v1/chat/completions", json=HI, headers={"x-api-key": ""})
        entries = await control.ledger()

    assert "" == silent
    assert (
        "the model gateway refused 3 requests while this test ran, with 401: 2 with a wrong "
        "x-api-key, 1 without a key; it expects the key given in MODEL_KEY"
    ) == refused_keys(entries, test=MINE, since=began, held_in=["MODEL_KEY"])
    assert refused_keys(entries, test="", since=began).endswith("it expects the key of this run")


def test_a_call_without_a_turn_is_shown():
    """The error holds the prompt, and where turns are written down."""
    calls = [
        entry(1),
        entry(2, unrehearsed="no turn was rehearsed for this prompt: 'Make a part.'"),
    ]
    with pytest.raises(
        HarnessError, match=r"cannot rehearse .*'Make a part\.'.*docs/how-to/gateway\.md"
    ):
        expect_rehearsed(calls)


def test_what_the_prompt_lacked_is_no_error_of_the_harness():
    """That is the product's failure, and no call is left without a turn for it."""
    expect_rehearsed([entry(1), entry(2, missing="the tool 'lint' was not offered")])
