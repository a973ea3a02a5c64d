"""Mode ``live``: calls pass through to a provider, are paid, and stop at the budget."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from harness_core.doubles.model import Fault
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.turns import Rehearsal, use
from harness_core.tests.model.served import HAIKU, HI, PAIN_LOG, left, rehearsed, request, served

UPSTREAM_KEY = "sk-ant-real-0123456789abcdef"


@asynccontextmanager
async def live(**settings):
    """A live gateway whose upstream is another gateway of this process."""
    model = rehearsed(Rehearsal(message="log {words}", turns=(use("pain_log", notes="{words}"),)))
    async with served(model, key=UPSTREAM_KEY) as (provider, provider_control):
        backend = LiveBackend(str(provider.base_url), key=UPSTREAM_KEY)
        async with served(backend, models=(HAIKU,), **settings) as (http, control):
            yield http, control, provider_control
        await backend.aclose()


@pytest.mark.parametrize("stream", [True, False])
async def test_live_calls_pass_through_and_are_paid(stream) -> None:
    """The answer comes from the upstream with the real key; its usage is priced and charged."""
    async with live() as (http, control, provider):
        body = request("log the pain", tools=[PAIN_LOG], stream=stream)
        answer = await http.post("/v1/messages?beta=true", json=body)
        (entry,) = await control.ledger()
        (upstream,) = await provider.ledger()
        totals = await control.totals()

    assert 200 == answer.status_code
    assert "pain_log" in answer.text
    assert UPSTREAM_KEY not in answer.text
    assert upstream.usage == entry.usage
    assert ("tool_use", ("pain_log",), True) == (entry.stop_reason, entry.called, entry.charged)
    assert totals.spent_usd == pytest.approx(entry.usd)
    assert totals.spent_usd == pytest.approx(totals.overall.charged_usd)
    assert 0 == totals.reserved_usd


async def test_the_budget_stops_a_live_run() -> None:
    """Calls that no longer fit never reach the provider; the summary says the budget is gone."""
    async with live(budget_usd=0.0011) as (http, control, provider):
        statuses = [(await http.post("/v1/messages", json=HI)).status_code for _ in range(30)]
        refused = (await http.post("/v1/messages", json=HI)).json()["error"]
        totals = await control.totals()
        reached = len(await provider.ledger())

    assert (200, 402) == (statuses[0], statuses[-1])
    assert statuses.count(200) == reached
    assert "billing_error" == refused["type"]
    assert "0.0011 USD" in refused["message"]
    assert totals.budget_exceeded
    assert totals.spent_usd <= 0.0011


async def test_concurrent_live_calls_keep_the_books() -> None:
    """Entries, the budget and the provider agree on what was spent, calls in flight included."""
    async with live(budget_usd=0.004) as (http, control, provider):
        async with trio.open_nursery() as nursery:
            for number in range(40):
                body = {**HI, "stream": bool(number % 2)}
                nursery.start_soon(lambda sent=body: http.post("/v1/messages", json=sent))
        totals = await control.totals()
        paid = [entry.usd for entry in await control.ledger() if entry.charged]
        reached = len(await provider.ledger())

    assert reached == len(paid)
    assert totals.spent_usd == pytest.approx(sum(paid))
    assert totals.spent_usd <= 0.004
    assert 40 == totals.overall.calls
    assert 0 == pytest.approx(totals.reserved_usd, abs=1e-9)


async def test_an_upstream_error_is_passed_on_and_costs_nothing() -> None:
    """The client sees the provider's status and retries by itself; each attempt is one entry."""
    async with live() as (http, control, provider):
        await provider.add_fault(Fault(kind="status", status=529, retry_after_s=1))
        first = await http.post("/v1/messages", json=HI)
        second = await http.post("/v1/messages", json=HI)
        entries = await control.ledger()

    assert (529, 200) == (first.status_code, second.status_code)
    assert "1" == first.headers["retry-after"]
    assert [("overloaded_error", 0.0), ("", entries[1].usd)] == [
        (entry.error, entry.usd) for entry in entries
    ]


async def test_an_upstream_that_breaks_off_is_paid_for_what_was_seen() -> None:
    """A stream that ends early reaches the client as an error and is not booked as free."""
    async with live() as (http, control, provider):
        await provider.add_fault(Fault(kind="cut", after_events=4))
        answer = await http.post("/v1/messages", json={**HI, "stream": True})
        (entry,) = await control.ledger()

    assert "event: error" in answer.text
    assert "message_stop" not in answer.text
    assert entry.usd > 0
    assert "api_error" == entry.error


async def test_a_live_call_whose_client_left_is_booked_at_its_worst() -> None:
    """The provider may bill what its client did not stay to read: the whole reservation is taken as spent."""
    async with live() as (http, control, provider):
        await provider.add_fault(Fault(kind="hang"))
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/v1/messages", json=HI, timeout=0.3)
        entry = await left(control)
        totals = await control.totals()

    assert 499 == entry.status
    assert totals.spent_usd == pytest.approx(entry.usd)
    assert entry.usd > 100 * 5e-6  # max_tokens of output


async def test_an_upstream_that_is_not_there_is_a_502() -> None:
    """The message names the upstream; nothing is charged."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    backend = LiveBackend(url, key=UPSTREAM_KEY)
    async with served(backend) as (http, control):
        answer = await http.post("/v1/messages", json=HI)
        totals = await control.totals()
    await backend.aclose()

    assert 502 == answer.status_code
    assert url in answer.json()["error"]["message"]
    assert 0 == totals.spent_usd


@pytest.mark.parametrize(
    ("path", "model", "error"),
    [
        ("/v1/messages", "claude-opus-4-1", "model_not_allowed"),
        ("/v1/chat/completions", HAIKU, "not_served_live"),
    ],
)
async def test_what_is_not_served_live_is_refused(path, model, error) -> None:
    """Another model, and what the budget cannot measure, are refused before they cost anything."""
    async with live() as (http, control, provider):
        answer = await http.post(path, json={**HI, "model": model})
        (entry,) = await control.ledger()

        assert (403, error) == (answer.status_code, entry.error)
        assert () == await provider.ledger()
