"""A gateway that serves: modes, ledger, budget, faults and the control API over real HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from harness_core.errors import BadInput, HarnessError, Unavailable
from harness_core.evidence import open_evidence
from harness_core.llm import Fault, GatewayClient, open_gateway
from harness_core.llm._backend import Backend
from harness_core.llm._budget import Budget
from harness_core.llm._cli import main
from harness_core.llm._desk import Desk
from harness_core.llm._dialect import MESSAGES
from harness_core.llm._ledger import Ledger
from harness_core.llm._live import LiveBackend
from harness_core.llm._serve import Settings, serve
from harness_core.llm.rehearsed import RehearsedBackend
from harness_core.process import open_run
from harness_core.tests.llm.served import HAIKU, HI, KEY, TOKEN, rehearsed, served
from harness_core.turns import Rehearsal, say, use
from harness_core.wait import until

UPSTREAM_KEY = "sk-ant-real-0123456789abcdef"
LOG = {
    **HI,
    "messages": [{"role": "user", "content": "log the pain zx9f3k21"}],
    "tools": [
        {
            "name": "pain_log",
            "description": "Log a pain.",
            "input_schema": {
                "type": "object",
                "properties": {"notes": {"type": "string"}},
                "required": ["notes"],
            },
        }
    ],
}
PAIN_LOG = Rehearsal(
    message="log the pain {token:word}", turns=(use("pain_log", notes="log the pain {token}"),)
)


def test_an_entry_is_there_as_soon_as_the_answer_is() -> None:
    """Whoever asks the ledger right after an answer finds the call, whole or streamed."""

    async def run() -> None:
        async with served() as (http, control):
            for number, stream in enumerate((False, True, False, True), start=1):
                answer = await http.post("/v1/messages", json={**HI, "stream": stream})
                assert 200 == answer.status_code
                entries = await control.ledger()
                assert number == len(entries)
            assert [False, True, False, True] == [entry.stream for entry in entries]
            assert all(entry.usd for entry in entries)

    trio.run(run)


@pytest.mark.parametrize("stream", [True, False])
async def test_the_entry_comes_before_the_end_of_the_answer(stream) -> None:
    """When the last byte that a client needs leaves, the call is already in the ledger."""
    desk = Desk(backend=rehearsed(), ledger=Ledger(), budget=Budget(1.0), api_key=KEY)
    body = json.dumps({**HI, "stream": stream}).encode()
    seen: list[tuple[bytes, int]] = []

    async def receive() -> dict:
        if seen or not unread:
            await trio.sleep_forever()
        return {"type": "http.request", "body": unread.pop(), "more_body": False}

    async def send(message: dict) -> None:
        seen.append((message.get("body", b""), len(desk.ledger.since(0))))

    unread = [body]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/messages",
        "query_string": b"",
        "headers": [(b"x-api-key", KEY.encode())],
    }
    await desk.serve(MESSAGES, scope, receive, send)

    telling = b"message_stop" if stream else b"stop_reason"
    (last,) = [entries for chunk, entries in seen if telling in chunk]
    assert 1 == last


async def test_a_call_is_written_down_in_full(tmp_path) -> None:
    """Session, trace, scope, tools, tokens, price and prompt are in the entry and in the file."""
    path = tmp_path / "ledger.jsonl"
    headers = {"x-claude-code-session-id": "s-1", "traceparent": "00-abc-def-01"}
    async with served(rehearsed(PAIN_LOG), ledger=path) as (http, control):
        await control.set_scope("test_a")
        await http.post("/v1/messages?beta=true", json=LOG, headers=headers)
        (entry,) = await control.ledger()

    assert ("test_a", "s-1", "00-abc-def-01") == (entry.test, entry.session, entry.traceparent)
    assert ("rehearsed", "messages", HAIKU, 200) == (
        entry.mode,
        entry.kind,
        entry.model,
        entry.status,
    )
    assert (("pain_log",), ("pain_log",)) == (entry.tools, entry.called)
    assert "tool_use" == entry.stop_reason
    assert entry.input_tokens > 0 < entry.output_tokens
    assert not entry.charged
    assert "log the pain zx9f3k21" == entry.prompt
    assert 1 == json.loads(path.read_text())["sequence"]


async def test_the_session_is_found_in_the_metadata() -> None:
    """Claude Code names its session in metadata.user_id as well."""
    user = json.dumps({"device_id": "d", "session_id": "s-2"})
    async with served() as (http, control):
        await http.post("/v1/messages", json={**HI, "metadata": {"user_id": user}})
        await http.post("/v1/messages", json={**HI, "metadata": {"user_id": "u_session_s-3"}})

        assert ["s-2", "s-3"] == [entry.session for entry in await control.ledger()]


async def test_secrets_do_not_reach_the_ledger() -> None:
    """A key in a prompt is redacted before the prompt is cut and written."""
    said = {**HI, "messages": [{"role": "user", "content": f"my key is {KEY}"}]}
    async with served() as (http, control):
        await http.post("/v1/messages", json=said)
        (entry,) = await control.ledger()

    assert KEY not in entry.prompt
    assert "redacted" in entry.prompt


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "wrong"}, {"x-api-key": ""}, {"authorization": "Bearer wrong"}]
)
async def test_only_the_key_of_the_run_is_served(headers) -> None:
    """Any other key is refused as the provider would, and the call is in the ledger."""
    async with served() as (http, control):
        given = {"x-api-key": ""} | headers
        answer = await http.post("/v1/messages", json=HI, headers=given)
        (entry,) = await control.ledger()

    assert 401 == answer.status_code
    assert "authentication_error" == answer.json()["error"]["type"]
    assert (401, 0) == (entry.status, entry.output_tokens)


async def test_a_bearer_token_is_a_key_too() -> None:
    """Clients that send the key as a bearer token are served."""
    async with served() as (http, _):
        headers = {"x-api-key": "", "authorization": f"Bearer {KEY}"}

        assert 200 == (await http.post("/v1/messages", json=HI, headers=headers)).status_code


async def test_the_system_under_test_cannot_steer() -> None:
    """The control API refuses the key that callers hold."""
    async with served() as (http, _):
        for path in ("totals", "ledger", "faults", "unmatched"):
            answer = await http.get(f"/_gateway/{path}", headers={"authorization": f"Bearer {KEY}"})
            assert 401 == answer.status_code


async def test_what_is_not_served_says_so() -> None:
    """Another path is a 404 in the provider's words; the CLI's look at its base URL is answered."""
    async with served() as (http, _):
        unknown = await http.get("/v1/files")

        assert (404, "not_found_error") == (unknown.status_code, unknown.json()["error"]["type"])
        assert 200 == (await http.head("/api/hello")).status_code
        assert 200 == (await http.head("/")).status_code


async def test_counting_tokens_is_free() -> None:
    """count_tokens needs no max_tokens, costs nothing and is written down as what it is."""
    counted = {"model": HAIKU, "messages": HI["messages"]}
    async with served() as (http, control):
        answer = await http.post("/v1/messages/count_tokens", json=counted)
        (entry,) = await control.ledger()
        totals = await control.totals()

    assert answer.json()["input_tokens"] == entry.input_tokens > 0
    assert ("count_tokens", 0.0) == (entry.kind, entry.usd)
    assert 0 == totals.overall.calls


async def test_an_unknown_model_is_unpriced() -> None:
    """A model without a price is named in the totals instead of counting as free."""
    async with served() as (http, control):
        await http.post("/v1/messages", json={**HI, "model": "no-such-model-9"})
        (entry,) = await control.ledger()

        assert entry.usd is None
        assert 1 == (await control.totals()).overall.unpriced


async def test_a_body_beyond_the_limit_is_refused(monkeypatch) -> None:
    """Reading is bounded; a larger body is a 413."""
    monkeypatch.setattr("harness_core.limits.HTTP_BODY_BYTES", 1000)
    async with served() as (http, _):
        answer = await http.post("/v1/messages", content=b"x" * 2000)

    assert (413, "request_too_large") == (answer.status_code, answer.json()["error"]["type"])


async def test_chat_completions_are_served() -> None:
    """The second dialect passes the same desk: one entry, its own kind and error body."""
    async with served() as (http, control):
        answer = await http.post("/v1/chat/completions", json=HI)
        refused = await http.post("/v1/chat/completions", json={"model": HAIKU})
        kinds = [entry.kind for entry in await control.ledger()]

    assert "Understood: hi" == answer.json()["choices"][0]["message"]["content"]
    assert "invalid_request_error" == refused.json()["error"]["type"]
    assert ["chat_completions", "chat_completions"] == kinds


async def test_a_planted_status_is_answered_and_counted_down() -> None:
    """A fault meets as many calls as it says, then the gateway is well again."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="status", status=429, retry_after_s=3, times=2))
        answers = [await http.post("/v1/messages", json=HI) for _ in range(3)]
        entries = await control.ledger()

    assert [429, 429, 200] == [answer.status_code for answer in answers]
    assert "3" == answers[0].headers["retry-after"]
    assert "rate_limit_error" == answers[0].json()["error"]["type"]
    assert ["status 429", "status 429", ""] == [entry.fault for entry in entries]
    assert [0.0, 0.0] == [entry.usd for entry in entries[:2]]


@pytest.mark.parametrize(
    ("match", "met"),
    [
        ({"contains": "hi"}, True),
        ({"contains": "bye"}, False),
        ({"contains": "hi", "also": "hi"}, True),
        ({"contains": "hi", "also": "bye"}, False),
        ({"model": HAIKU}, True),
        ({"model": "other"}, False),
        ({"test": "test_a"}, True),
        ({"test": "test_b"}, False),
        ({"without_tools": True}, True),
    ],
)
async def test_a_fault_meets_what_it_matches(match, met) -> None:
    """Text, model and test scope decide which calls a fault meets."""
    async with served() as (http, control):
        await control.set_scope("test_a")
        await control.add_fault(Fault(kind="status", status=529, **match))
        answer = await http.post("/v1/messages", json=HI)

    assert met == (529 == answer.status_code)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_breaks_off(stream) -> None:
    """The connection closes before the message is whole, which a client must notice."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="cut", after_events=3))
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post("/v1/messages", json={**HI, "stream": stream})
        (entry,) = await control.ledger()

    assert "cut after 3 events" == entry.fault


async def test_a_malformed_answer_is_no_json() -> None:
    """The body is not what its content type says."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="malformed"))
        answer = await http.post("/v1/messages", json=HI)

    assert "application/json" == answer.headers["content-type"]
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        answer.json()


async def test_a_hanging_call_ends_with_its_client() -> None:
    """A hang lasts until the client leaves, and is then written down as left by the client."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="hang"))
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/v1/messages", json=HI, timeout=0.3)

        async def left() -> bool:
            return bool(await control.ledger())

        await until(left)
        (entry,) = await control.ledger()

    assert ("hang", 499) == (entry.fault, entry.status)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_endless_answer_goes_on_until_its_client_leaves(stream) -> None:
    """Words keep coming, well-formed and without an end, and the ledger says who ended it."""
    words = 0
    async with served() as (http, control):
        await control.add_fault(Fault(kind="endless"))
        with trio.CancelScope() as reading:
            async with http.stream("POST", "/v1/messages", json={**HI, "stream": stream}) as answer:
                async for text in answer.aiter_text():
                    words += text.count("again")
                    if words >= 4:
                        reading.cancel()  # thrown into the client, which then hangs up

        async def left() -> bool:
            return bool(await control.ledger())

        await until(left)
        (entry,) = await control.ledger()

    assert 200 == answer.status_code
    assert ("endless", 499) == (entry.fault, entry.status)


async def test_a_fault_is_met_when_its_call_arrives() -> None:
    """A call that hangs has met its fault when it arrives, not when it ends."""
    async with served() as (http, control):
        number = await control.add_fault(Fault(kind="hang"))
        before = await control.fault_met(number)
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/v1/messages", json=HI, timeout=0.3)
        after = await control.fault_met(number)

        assert not await control.withdraw_fault(number)  # spent: no calls of it were left
        assert [0, 1, 0] == [before, after, await control.fault_met(number)]


@pytest.mark.parametrize("let_go", ["withdraw", "clear"])
async def test_a_held_call_is_answered_once_its_fault_is_withdrawn(let_go) -> None:
    """A held call waits for the harness, whole and unharmed; others pass by."""
    answers = []
    async with served() as (http, control), trio.open_nursery() as nursery:
        number = await control.add_fault(Fault(kind="hold"))

        async def ask() -> None:
            answers.append(await http.post("/v1/messages", json=HI))

        async def met() -> bool:
            return await control.fault_met(number) == 1

        nursery.start_soon(ask)
        await until(met)
        other = await http.post("/v1/messages", json=HI)
        answered_early = len(answers)
        await (control.withdraw_fault(number) if let_go == "withdraw" else control.clear())

    assert [200, 0] == [other.status_code, answered_early]
    assert [200] == [answer.status_code for answer in answers]


async def test_a_late_answer_is_late() -> None:
    """Latency is added before the answer and shows in the ledger."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="latency", latency_s=0.2))
        answer = await http.post("/v1/messages", json=HI)
        (entry,) = await control.ledger()

    assert 200 == answer.status_code
    assert entry.latency_ms >= 200


@pytest.mark.parametrize("stream", [True, False])
async def test_a_planted_answer_is_a_message_like_any_other(stream) -> None:
    """A model that misbehaves says what was planted, calls nothing, and is counted as usual."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="answer", text="As you wish."))
        first = await http.post("/v1/messages", json={**HI, "stream": stream})
        second = await http.post("/v1/messages", json=HI)
        planted, usual = await control.ledger()

    assert 200 == first.status_code
    assert "As you wish." in first.text
    assert "As you wish." not in second.text
    assert ("answer of 12 characters", "") == (planted.fault, usual.fault)
    assert planted.output_tokens > 0
    assert planted.usd is not None
    assert planted.usd > 0


async def test_a_fault_for_calls_without_tools_leaves_the_others() -> None:
    """Who offers a tool is not met, so that one step of several can be misled."""
    tool = {"name": "look", "input_schema": {"type": "object"}}
    async with served() as (http, control):
        await control.add_fault(Fault(kind="status", status=418, without_tools=True))
        offering = await http.post("/v1/messages", json={**HI, "tools": [tool]})
        bare = await http.post("/v1/messages", json=HI)

    assert [200, 418] == [offering.status_code, bare.status_code]


async def test_a_planted_answer_may_call_a_tool() -> None:
    """A model that misbehaves calls what was planted, by the full name of the tool on offer."""
    tool = {"name": "mcp__health__symptom_log", "input_schema": {"type": "object"}}
    async with served() as (http, control):
        await control.add_fault(Fault(kind="answer", tool="symptom_log", input={"severity": 99}))
        answer = await http.post("/v1/messages", json={**HI, "tools": [tool]})
        (entry,) = await control.ledger()

    (block,) = answer.json()["content"]

    assert ("tool_use", "tool_use") == (answer.json()["stop_reason"], block["type"])
    assert ("mcp__health__symptom_log", {"severity": 99}) == (block["name"], block["input"])
    assert ("mcp__health__symptom_log",) == entry.called


async def test_a_share_of_the_calls_is_met_and_always_the_same_ones() -> None:
    """A fault with a share meets about that part of its calls, repeatably by its seed."""
    met: list[list[bool]] = []
    async with served() as (http, control):
        for seed in (1, 1, 2):
            fault = Fault(kind="status", status=500, share=0.3, seed=seed, times=1000)
            async with control.fault(fault):
                answers = [await http.post("/v1/messages", json=HI) for _ in range(60)]
            met.append([500 == answer.status_code for answer in answers])

    assert met[0] == met[1]
    assert met[0] != met[2]
    assert 8 <= sum(met[0]) <= 28


async def test_a_fault_is_withdrawn_without_those_of_others() -> None:
    """After its block a fault is gone, also unspent; another one goes on."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="status", status=418, contains="others"))
        async with control.fault(Fault(kind="status", status=529, times=5)):
            during = await http.post("/v1/messages", json=HI)
        after = await http.post("/v1/messages", json=HI)
        hello = {"messages": [{"role": "user", "content": "hi, others"}]}
        others = await http.post("/v1/messages", json={**HI, **hello})

    assert [529, 200, 418] == [during.status_code, after.status_code, others.status_code]


async def test_a_fault_that_means_nothing_is_refused() -> None:
    """A misspelt kind or key is an error at planting, not a fault that never comes."""
    with pytest.raises(BadInput):
        Fault(kind="melt")
    async with served() as (http, _):
        answer = await http.post(
            "/_gateway/faults",
            json={"kind": "hang", "tims": 2},
            headers={"authorization": f"Bearer {TOKEN}"},
        )

    assert (400, "tims") == (answer.status_code, answer.json()["key"])


async def test_clearing_forgets_all_but_the_ledger() -> None:
    """Faults and scopes go; what was called stays on record, and what was rehearsed is played."""
    async with served() as (http, control):
        await control.rehearse(Rehearsal(message="hi", turns=(say("hello"),)))
        await control.set_scope("a")
        await control.add_fault(Fault(kind="status"))
        await control.clear()
        await http.post("/v1/messages", json=HI)
        (entry,) = await control.ledger()

    assert ("", "", "hello") == (entry.test, entry.fault, entry.answer)


@asynccontextmanager
async def live(upstream: Backend | None = None, **settings):
    """A live gateway whose upstream is another gateway of this process."""
    provider_model = upstream or rehearsed(PAIN_LOG)
    async with served(provider_model, key=UPSTREAM_KEY) as (provider, provider_control):
        backend = LiveBackend(str(provider.base_url), key=UPSTREAM_KEY)
        async with served(backend, models=(HAIKU,), **settings) as (http, control):
            yield http, control, provider_control
        await backend.aclose()


@pytest.mark.parametrize("stream", [True, False])
async def test_live_calls_pass_through_and_are_paid(stream) -> None:
    """The answer comes from the upstream with the real key; its usage is priced and charged."""
    async with live() as (http, control, provider):
        answer = await http.post("/v1/messages?beta=true", json={**LOG, "stream": stream})
        (entry,) = await control.ledger()
        (upstream,) = await provider.ledger()
        totals = await control.totals()

    assert 200 == answer.status_code
    assert "pain_log" in answer.text
    assert UPSTREAM_KEY not in answer.text
    assert (upstream.input_tokens, upstream.output_tokens) == (
        entry.input_tokens,
        entry.output_tokens,
    )
    assert ("tool_use", ("pain_log",)) == (entry.stop_reason, entry.called)
    assert entry.charged
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

    assert 200 == statuses[0]
    assert 402 == statuses[-1]
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
    """The provider may bill what nobody stayed to read: the whole reservation is taken as spent."""
    async with live() as (http, control, provider):
        await provider.add_fault(Fault(kind="hang"))
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/v1/messages", json=HI, timeout=0.3)

        async def left() -> bool:
            return bool(await control.ledger())

        await until(left)
        (entry,) = await control.ledger()
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


async def test_live_models_are_limited() -> None:
    """Another model is refused before it costs anything, and names those that are allowed."""
    other = {**HI, "model": "claude-opus-4-1"}
    async with live() as (http, control, _):
        refused = await http.post("/v1/messages", json=other)
        (entry,) = await control.ledger()

    assert (403, "model_not_allowed") == (refused.status_code, entry.error)


async def test_chat_completions_are_not_served_live() -> None:
    """What the budget cannot measure is not passed on."""
    async with live() as (http, _, provider):
        answer = await http.post("/v1/chat/completions", json=HI)

        assert 403 == answer.status_code
        assert () == await provider.ledger()


async def test_a_client_without_a_gateway_says_where_it_looked() -> None:
    """A gateway that is gone is an error of the harness with the address."""
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await GatewayClient("http://127.0.0.1:1", TOKEN).totals()


async def test_a_gateway_is_a_child_of_a_run(tmp_path) -> None:
    """It is reachable when the block begins, keeps its ledger as evidence, and ends with it."""
    evidence = open_evidence(tmp_path / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_gateway(run, evidence=evidence.child("gateway")) as gateway,
    ):
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(
                f"{gateway.url}/v1/messages", json=HI, headers={"x-api-key": gateway.api_key}
            )
        entries = await gateway.client.ledger()
        child = gateway.child

    assert 200 == answer.status_code
    assert 1 == len(entries)
    assert 1 == len(gateway.ledger.read_text().splitlines())
    assert 0 == child.returncode
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(gateway.url.rsplit(":", 1)[1])))


async def test_bad_ways_to_open_a_gateway(tmp_path, monkeypatch) -> None:
    """An unknown mode and a live mode without a key are told before anything starts."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run:
        with pytest.raises(BadInput, match="rehearsed or live"):
            async with open_gateway(run, mode="psychic", evidence=evidence):
                pass
        with pytest.raises(Unavailable, match="ANTHROPIC_API_KEY is not set"):
            async with open_gateway(run, mode="live", evidence=evidence):
                pass


def test_the_process_announces_itself_and_stops_promptly() -> None:
    """One JSON line says where it is; SIGTERM ends it at once, also with a call that hangs."""
    argv = [sys.executable, "-m", "harness_core.llm"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        line = json.loads(process.stdout.readline())
        control = {"authorization": f"Bearer {line['control_token']}"}
        httpx.post(f"{line['url']}/_gateway/faults", json={"kind": "hang"}, headers=control)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{line['url']}/v1/messages",
                json=HI,
                headers={"x-api-key": line["api_key"]},
                timeout=0.2,
            )
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=5)

    assert 0 == status
    assert {"url", "api_key", "control_token", "mode", "pid"} == line.keys()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--budget-usd", "-1"], "--budget-usd"),
        (["--port", "70000"], "--port"),
        (["--mode", "live", "--upstream", "ftp://x"], "--upstream"),
        (["--ledger", "/nowhere/at/all"], "--ledger"),
    ],
)
def test_bad_options_are_told(argv, expected, capsys, monkeypatch) -> None:
    """A bad option ends with one line that names it, and status 2."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", UPSTREAM_KEY)

    assert 2 == main(argv)
    assert expected in capsys.readouterr().err


def test_a_taken_port_is_told(capsys) -> None:
    """A busy port ends with one line that names it, and status 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert 1 == main(["--port", str(port)])
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_live_without_a_key_is_told(capsys, monkeypatch) -> None:
    """Without a key the live mode says which variable it wants."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    assert 1 == main(["--mode", "live"])
    assert "ANTHROPIC_API_KEY is not set" in capsys.readouterr().err


async def test_only_the_loopback_is_served() -> None:
    """An inherited socket on another address is refused: a key-holding proxy stays at home."""
    listener = socket.create_server(("0.0.0.0", 0))
    settings = Settings(
        backend=RehearsedBackend(),
        api_key=KEY,
        control_token=TOKEN,
        budget_usd=0,
        descriptor=os.dup(listener.fileno()),
    )
    listener.close()

    with pytest.raises(HarnessError, match=r"127\.0\.0\.1 only"):
        await serve(settings)
