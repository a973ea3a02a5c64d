"""Planted trouble: which calls it meets, what it does to them, and how it ends."""

from __future__ import annotations

import httpx
import pytest
import trio

from harness_core.base.errors import BadInput
from harness_core.base.wait import until
from harness_core.doubles.model import Fault
from harness_core.tests.model.served import HAIKU, HI, TOKEN, left, request, served

LOOK = {"name": "mcp__health__symptom_log", "input_schema": {"type": "object"}}


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


@pytest.mark.parametrize(("text", "said"), [("", "planted by the harness"), ("a\0 日", "a\0 日")])
async def test_a_planted_status_says_what_it_is_given(text: str, said: str) -> None:
    """A provider's refusal is in any words; in the harness's own when it is given none."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="status", status=400, text=text))
        answer = await http.post("/v1/messages", json=HI)

    assert said == answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("match", "met"),
    [
        ({"contains": "hi"}, True),
        ({"contains": "bye"}, False),
        ({"contains": "hi", "also": "hi"}, True),
        ({"contains": "hi", "also": "bye"}, False),
        ({"model": HAIKU}, True),
        ({"model": "other"}, False),
        ({"without_tools": True}, True),
        ({"offers": ["symptom_log"]}, False),
    ],
)
async def test_a_fault_meets_what_it_matches(match, met) -> None:
    """Text, model and tools decide which calls a fault meets."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="status", status=418, **match))
        answer = await http.post("/v1/messages", json=HI)
        offering = await http.post("/v1/messages", json={**HI, "tools": [LOOK]})

    assert met == (418 == answer.status_code)
    assert "without_tools" not in match or 200 == offering.status_code
    assert "offers" not in match or 418 == offering.status_code


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


async def test_an_answer_may_be_of_any_shape() -> None:
    """The body is the one that was planted, with status and content type of a message."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="malformed", body='{"content": "ü"}'))
        answer = await http.post("/v1/messages", json=HI)

    assert 200 == answer.status_code
    assert {"content": "ü"} == answer.json()


async def test_a_hanging_call_ends_with_its_client() -> None:
    """It has met its fault when it arrives, and is written down when its client has left."""
    async with served() as (http, control):
        number = await control.add_fault(Fault(kind="hang"))
        before = await control.fault_met(number)
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/v1/messages", json=HI, timeout=0.3)
        entry = await left(control)

        assert [0, 1] == [before, await control.fault_met(number)]
        assert not await control.withdraw_fault(number)  # spent: no calls of it were left
        assert 0 == await control.fault_met(number)
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
        entry = await left(control)

    assert 200 == answer.status_code
    assert ("endless", 499) == (entry.fault, entry.status)


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
    assert [True, False] == ["As you wish." in answer.text for answer in (first, second)]
    assert ("answer of 12 characters", "") == (planted.fault, usual.fault)
    assert planted.output_tokens > 0
    assert planted.usd > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_a_planted_answer_may_have_read_and_written_the_cache(stream) -> None:
    """Such tokens are told beside the input, and each kind is paid at its own price."""
    async with served() as (http, control):
        for cached in ({}, {"cache_read_tokens": 9_000}, {"cache_write_tokens": 3_000}):
            await control.add_fault(Fault(kind="answer", text="Noted.", **cached))
            answer = await http.post("/v1/messages", json={**HI, "stream": stream})
        plain, read, written = await control.ledger()

    assert '"cache_creation_input_tokens":3000' in answer.text.replace(": ", ":")
    assert (0, 9_000, 0) == (
        plain.cache_read_tokens,
        read.cache_read_tokens,
        written.cache_read_tokens,
    )
    assert [plain.input_tokens] * 2 == [read.input_tokens, written.input_tokens]
    assert 9_000 * 0.1e-6 == pytest.approx(read.usd - plain.usd)
    assert 3_000 * 1.25e-6 == pytest.approx(written.usd - plain.usd)


async def test_a_planted_answer_may_call_a_tool() -> None:
    """A model that misbehaves calls what was planted, by the full name of the tool on offer."""
    async with served() as (http, control):
        await control.add_fault(Fault(kind="answer", tool="symptom_log", input={"severity": 99}))
        answer = (await http.post("/v1/messages", json={**HI, "tools": [LOOK]})).json()
        (entry,) = await control.ledger()

    (block,) = answer["content"]
    assert ("tool_use", "tool_use") == (answer["stop_reason"], block["type"])
    assert (LOOK["name"], {"severity": 99}) == (block["name"], block["input"])
    assert (LOOK["name"],) == entry.called


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
            waiting = await control.waiting_faults()
        after = await http.post("/v1/messages", json=HI)
        others = await http.post("/v1/messages", json=request("hi, others"))

    assert [529, 200, 418] == [during.status_code, after.status_code, others.status_code]
    assert ("status 418, 1 left", "status 529, 4 left") == waiting


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    [
        ({"kind": "hang", "tims": 2}, "tims", "one of kind, times, "),
        ({"kind": "melt"}, "kind", "one of latency, hold, "),
        ({"times": 1}, "kind", "one of latency, hold, "),
        ({"kind": "hang", "share": 0}, "share", "a part above 0"),
        ({"kind": "hang", "times": "2"}, "times", "a whole number"),
        ({"kind": "hang", "times": 0}, "times", "a whole number from 1 on"),
        ({"kind": "status", "status": 200}, "status", "an HTTP status from 400 to 599"),
        ([], "", "an object with kind"),
    ],
)
async def test_a_fault_that_means_nothing_is_refused(body, key, expected) -> None:
    """A misspelt kind or key is an error at planting, not a fault that never comes."""
    async with served() as (http, control):
        headers = {"authorization": f"Bearer {TOKEN}"}
        answer = await http.post("/_gateway/faults", json=body, headers=headers)

        assert (400, "fault", key) == (
            answer.status_code,
            answer.json()["where"],
            answer.json()["key"],
        )
        assert answer.json()["expected"].startswith(expected)
        assert () == await control.waiting_faults()
        with pytest.raises(BadInput):
            await control.add_fault(Fault(kind="melt"))
