"""Record and replay over real HTTP: the same answers with the provider gone, and no guessing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from harness_core.assertions import new_token
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Redactor, open_evidence
from harness_core.doubles.model import Fault, Gateway, GatewayClient, open_gateway
from harness_core.doubles.model._backend import Backend
from harness_core.doubles.model._cassette import asker, read_cassette
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.model._record import RecordBackend
from harness_core.doubles.model._replay import ReplayBackend
from harness_core.doubles.model._stream import AnswerReader
from harness_core.doubles.turns import Rehearsal, say, use
from harness_core.process import open_run
from harness_core.tests.model.served import HAIKU, KEY, PAIN_LOG, rehearsed, request, served

PROVIDER_KEY = "sk-of-the-provider-0123456789"

#: What a provider's model does: it logs what it is asked to log, and repeats anything else.
REHEARSED = (
    Rehearsal(message="{words}", turns=(say("Understood: {words}"),)),
    Rehearsal(message="log {words}", turns=(use("pain_log", notes="log {words}"),)),
)


@asynccontextmanager
async def recording(
    tmp_path: Path, provider: Backend | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, GatewayClient, GatewayClient]]:
    """A gateway that records what a second one, the provider, answers; the last controls that."""
    async with served(provider or rehearsed(*REHEARSED), key=PROVIDER_KEY) as (upstream, theirs):
        redactor = Redactor()
        redactor.add(PROVIDER_KEY)
        live = LiveBackend(str(upstream.base_url), key=PROVIDER_KEY)
        backend = RecordBackend(live, cassette=tmp_path / "cassette", redactor=redactor)
        async with served(backend, redactor=redactor) as (http, control):
            yield http, control, theirs
        await live.aclose()


def replaying(tmp_path: Path):
    """A gateway that replays what :func:`recording` kept."""
    redactor = Redactor()
    return served(ReplayBackend(tmp_path / "cassette", redactor=redactor), redactor=redactor)


async def ask(http: httpx.AsyncClient, body: dict, *, path: str = "/v1/messages") -> httpx.Response:
    """One call."""
    return await http.post(path, json=body)


def blocks_of(response: httpx.Response) -> list[dict]:
    """What a response says, streamed or not, without ids."""
    assert 200 == response.status_code, response.text
    kind = response.headers["content-type"]
    reader = AnswerReader(streaming=kind.startswith("text/event-stream"))
    reader.feed(response.content)
    reader.end()
    return [{**block, "id": ""} for block in reader.reply.content]


@pytest.mark.parametrize("recorded_streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("replayed_streamed", [True, False], ids=["to-stream", "to-whole"])
async def test_an_answer_is_replayed_without_its_provider(
    tmp_path, recorded_streamed, replayed_streamed
) -> None:
    """What was recorded streamed or whole is replayed either way, token counts included."""
    asked = request("log the pain", tools=[PAIN_LOG])
    async with recording(tmp_path) as (http, control, _):
        first = blocks_of(await ask(http, asked | {"stream": recorded_streamed}))
        (recorded,) = await control.ledger()
    async with replaying(tmp_path) as (http, control):
        second = blocks_of(await ask(http, asked | {"stream": replayed_streamed}))
        (replayed,) = await control.ledger()
        totals = await control.totals()
        unmatched = await control.unmatched()

    assert "tool_use" == first[0]["type"]
    assert first == second
    assert recorded.usage == replayed.usage
    assert ("pain_log",) == replayed.called
    assert (True, False) == (recorded.charged, replayed.charged)
    assert 0 == totals.spent_usd
    assert not unmatched


async def test_this_runs_values_take_the_place_of_the_recorded_ones(tmp_path) -> None:
    """Tokens, ids, times and today's date of the request stand in the replayed answer."""

    def body(token: str, day: str, session: str) -> dict:
        text = f"log the pain {token}, session {session}"
        reminder = f"<system-reminder>\nToday's date is {day}.\n</system-reminder>"
        content = [{"type": "text", "text": reminder}, {"type": "text", "text": text}]
        return request("", tools=[PAIN_LOG], metadata={"user_id": session}) | {
            "messages": [{"role": "user", "content": content}]
        }

    old, new = new_token(), new_token()
    ids = ("0d5c2a3e-1111-4222-8333-444455556666", "1e6d3b4f-9999-4888-8777-666655554444")
    async with recording(tmp_path) as (http, *_):
        await ask(http, body(old, "2026-11-20", ids[0]))
    async with replaying(tmp_path) as (http, _):
        answer = blocks_of(await ask(http, body(new, "2027-01-03", ids[1])))
    (path,) = (tmp_path / "cassette").glob("*.json")
    file = path.read_text(encoding="utf-8")

    assert new in answer[0]["input"]["notes"]
    assert ids[1] in answer[0]["input"]["notes"]
    assert [] == [value for value in (old, ids[0], "2026-11-20") if value in file]
    assert "<word-1>" in file
    assert "Today's date is <today>." in file


async def test_a_conversation_goes_on_with_the_ids_of_the_replay(tmp_path) -> None:
    """The ids of replayed tool calls are fresh, and their results are recognised."""
    asked = request("log the pain", tools=[PAIN_LOG])

    async def converse(http: httpx.AsyncClient, time: str) -> tuple[str, str]:
        first = (await ask(http, asked)).json()["content"]
        result = {
            "type": "tool_result",
            "tool_use_id": first[0]["id"],
            "content": json.dumps({"status": "logged", "at": f"2026-11-20T{time}+00:00"}),
        }
        turns = [
            *asked["messages"],
            {"role": "assistant", "content": first},
            {"role": "user", "content": [result]},
        ]
        second = await ask(http, asked | {"messages": turns})
        return first[0]["id"], json.dumps(blocks_of(second))

    async with recording(tmp_path) as (http, *_):
        recorded_id, recorded = await converse(http, "10:00:00.123456")
    async with replaying(tmp_path) as (http, _):
        replayed_id, replayed = await converse(http, "23:59:59.9")

    assert recorded == replayed
    assert recorded_id != replayed_id


async def test_repeated_questions_get_their_answers_in_order(tmp_path) -> None:
    """Asked three times, answered as the three times before; the fourth is refused by name."""
    words = ["one", "two", "three"]
    async with recording(tmp_path, rehearsed()) as (http, _, provider):
        for word in words:
            await provider.rehearse(Rehearsal(message="next", turns=(say(word),)))
            await ask(http, request("next"))
    async with replaying(tmp_path) as (http, _):
        answers = [blocks_of(await ask(http, request("next")))[0]["text"] for _ in words]
        refused = await ask(http, request("next"))

    assert words == answers
    assert 500 == refused.status_code
    assert "false" == refused.headers["x-should-retry"]
    assert "holds 3 answer(s) to this request, and it was asked once more" in refused.text


async def test_a_miss_names_the_nearest_request_and_the_field_that_differs(tmp_path) -> None:
    """What was not recorded is refused with the closest file and what differs in it, and kept."""
    async with recording(tmp_path) as (http, control, _):
        await ask(http, request("a question about the weather in Lisbon", tools=[PAIN_LOG]))
        await ask(http, request("completely different", system="Be brief."))
    tool = PAIN_LOG | {"description": "Log an ache."}
    async with replaying(tmp_path) as (http, control):
        refused = await ask(
            http, request("a question about the weather in London", tools=[tool], temperature=1)
        )
        unmatched = await control.unmatched()
        (entry,) = await control.ledger()
    message = refused.json()["error"]["message"]

    assert "nearest recorded request is a-question-about-the-weather-in-lisbon" in message
    assert "messages[0].content: recorded 'a question about the weather in Lisbon'" in message
    assert "tools[pain_log].description: recorded 'Log a pain.', asked 'Log an ache.'" in message
    assert "temperature: recorded nothing, asked 1" in message
    assert "cassette_miss" == entry.error
    assert 1 == len(unmatched)


async def test_no_secret_reaches_a_cassette(tmp_path) -> None:
    """The provider's key, the run's own and anything that looks like one are left out."""
    other = "sk-ant-api03-AAAABBBBCCCCDDDD1234"
    async with recording(tmp_path) as (http, _, _provider):
        text = f"log {PROVIDER_KEY} and {KEY} and {other}"
        blocks_of(await ask(http, request(text, tools=[PAIN_LOG], metadata={"user_id": "mallory"})))
        keys = (PROVIDER_KEY, KEY, other, "mallory")
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "cassette").iterdir()]

    assert 1 == len(files)
    assert [] == [key for key in keys if key in files[0]]
    assert "[redacted]" in files[0]


async def test_passing_trouble_is_not_recorded(tmp_path) -> None:
    """An overloaded provider and a stream cut short leave nothing; a refused request does."""
    async with recording(tmp_path) as (http, _, provider):
        await provider.add_fault(Fault(kind="status", status=529))
        busy = await ask(http, request("hello"))
        await provider.add_fault(Fault(kind="cut", after_events=2))
        cut = await ask(http, request("hello", stream=True))
        nothing = list(tmp_path.glob("cassette/*"))
        await provider.add_fault(Fault(kind="status", status=413))
        large = await ask(http, request("large"))
    async with replaying(tmp_path) as (http, _):
        replayed = await ask(http, request("large"))

    assert 529 == busy.status_code
    assert "the upstream broke off" in cut.text
    assert [] == nothing
    assert 413 == large.status_code == replayed.status_code
    assert large.json()["error"]["message"] == replayed.json()["error"]["message"]


async def test_recording_again_replaces_what_is_asked_again(tmp_path) -> None:
    """A second recording puts new answers in place of the old ones and leaves other questions."""
    for answer in ("old", "new"):
        async with recording(tmp_path, rehearsed()) as (http, _, provider):
            for message in ("again", "once"):
                await provider.rehearse(Rehearsal(message=message, turns=(say(answer),)))
            await ask(http, request("again"))
            if answer == "old":
                await ask(http, request("once"))
    async with replaying(tmp_path) as (http, _):
        again = blocks_of(await ask(http, request("again")))
        once = blocks_of(await ask(http, request("once")))

    assert ("new", "old") == (again[0]["text"], once[0]["text"])


async def test_the_chat_api_is_replayed_from_the_same_cassette(tmp_path) -> None:
    """A question of the chat completions API gets the answer recorded for the same question."""
    async with recording(tmp_path) as (http, *_):
        await ask(http, request("hello there"))
    async with replaying(tmp_path) as (http, _):
        response = await ask(http, request("hello there"), path="/v1/chat/completions")

    assert 200 == response.status_code, response.text
    assert "Understood: hello there" == response.json()["choices"][0]["message"]["content"]


async def test_blocks_of_other_kinds_survive(tmp_path) -> None:
    """Thinking is recorded and replayed as it came, whole and streamed."""
    thought = {"type": "thinking", "thinking": "let me see", "signature": "abc"}
    (tmp_path / "cassette").mkdir()
    content = [thought, {"type": "text", "text": "done"}]
    answer = {"content": content, "stop_reason": "end_turn", "usage": {"output_tokens": 3}}
    recorded = {"model": HAIKU, "max_tokens": 100, "messages": request("think")["messages"]}
    (tmp_path / "cassette" / "think.json").write_text(
        json.dumps({"cassette": 1, "request": recorded, "answers": [answer, answer]})
    )
    async with replaying(tmp_path) as (http, _):
        whole = blocks_of(await ask(http, request("think")))
        streamed = blocks_of(await ask(http, request("think", stream=True)))

    assert [{**part, "id": ""} for part in content] == whole
    assert whole == streamed


async def test_a_cassette_may_name_more_volatile_values(tmp_path) -> None:
    """Values that volatile.json lists do not make a question another one."""
    (tmp_path / "cassette").mkdir()
    (tmp_path / "cassette" / "volatile.json").write_text(
        json.dumps({"cassette": 1, "volatile": {"order": r"ORD-\d+"}})
    )
    async with recording(tmp_path) as (http, *_):
        await ask(http, request("log the pain of ORD-17", tools=[PAIN_LOG]))
    async with replaying(tmp_path) as (http, _):
        answer = blocks_of(await ask(http, request("log the pain of ORD-4242", tools=[PAIN_LOG])))

    assert "ORD-4242" in answer[0]["input"]["notes"]


GOOD = {
    "cassette": 1,
    "request": {"messages": []},
    "answers": [{"content": [], "stop_reason": "end_turn", "usage": {}}],
}


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("{", "", "a JSON file"),
        ("[]", "", "an object"),
        (json.dumps(GOOD | {"cassette": 2}), "cassette", "version 1"),
        (json.dumps(GOOD | {"extra": 1}), "extra", "one of cassette, request, answers"),
        (json.dumps(GOOD | {"request": {}}), "request", "an object with messages"),
        (json.dumps(GOOD | {"answers": []}), "answers", "at least one answer"),
        (json.dumps(GOOD | {"answers": [{"content": "x"}]}), "answers[0].content", "array"),
        (json.dumps(GOOD | {"answers": [{"status": 200}]}), "answers[0].status", "400 to 499"),
        (
            json.dumps(GOOD | {"answers": [{"content": [{"type": "text"}], "usage": {}}]}),
            "answers[0].content",
            "text with a text",
        ),
    ],
)
def test_a_malformed_cassette_is_one_bad_input(tmp_path, text, key, expected) -> None:
    """A file that cannot be used is named with its field."""
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(BadInput) as caught:
        read_cassette(tmp_path)

    assert (str(tmp_path / "broken.json"), key) == (caught.value.where, caught.value.key)
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    ("volatile", "key"),
    [
        ({"Order 1": "x"}, "volatile"),
        ({"order": "("}, "volatile.order"),
        ({"order": "x*"}, "volatile.order"),
    ],
)
def test_what_volatile_means_is_checked(tmp_path, volatile, key) -> None:
    """A kind that names nothing, and a pattern that is none or that matches nothing."""
    (tmp_path / "volatile.json").write_text(json.dumps({"cassette": 1, "volatile": volatile}))
    with pytest.raises(BadInput) as caught:
        asker(tmp_path, Redactor())

    assert key == caught.value.key


@pytest.mark.parametrize("files", [{}, {"a.json": GOOD, "b.json": GOOD}], ids=["none", "twice"])
def test_a_cassette_holds_each_request_once(tmp_path, files) -> None:
    """Nothing recorded, and one request in two files, are mistakes."""
    for name, body in files.items():
        (tmp_path / name).write_text(json.dumps(body))
    with pytest.raises(BadInput, match=r"recorded request|each request once"):
        read_cassette(tmp_path)


async def test_a_gateway_process_records_and_replays(tmp_path) -> None:
    """What a process in mode record wrote, a process in mode replay answers with."""
    evidence, cassette = open_evidence(tmp_path / "evidence"), tmp_path / "cassette"

    async def answered(opened: Gateway) -> str:
        headers = {"x-api-key": opened.api_key}
        async with httpx.AsyncClient(base_url=opened.url, headers=headers, trust_env=False) as http:
            return blocks_of(await ask(http, request("hello")))[0]["text"]

    async with open_run(evidence=evidence) as run:
        async with (
            open_gateway(run, evidence=evidence.child("provider")) as provider,
            open_gateway(
                run,
                mode="record",
                cassette=cassette,
                evidence=evidence.child("record"),
                upstream=provider.url,
                upstream_key=provider.api_key,
                budget_usd=1.0,
            ) as recorder,
        ):
            await provider.client.rehearse(*REHEARSED)
            first = await answered(recorder)
        replayer = open_gateway(
            run, mode="replay", cassette=cassette, evidence=evidence.child("replay")
        )
        async with replayer as opened:
            second = await answered(opened)
            totals = await opened.client.totals()

    assert "Understood: hello" == first == second
    assert ("replay", 0.0) == (totals.mode, totals.spent_usd)
