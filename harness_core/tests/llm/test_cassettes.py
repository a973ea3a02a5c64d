"""Record and replay over real HTTP: the same answers with the provider gone, and no guessing."""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trio

from harness_core.errors import BadInput
from harness_core.evidence import Redactor, open_evidence
from harness_core.llm import Fault, GatewayClient, open_gateway
from harness_core.llm._backend import Backend
from harness_core.llm._cli import main
from harness_core.llm._live import LiveBackend
from harness_core.llm._record import RecordBackend
from harness_core.llm._replay import ReplayBackend
from harness_core.llm._serve import Settings, serve
from harness_core.llm.rehearsed import RehearsedBackend
from harness_core.process import open_run
from harness_core.scenario import new_token
from harness_core.turns import Rehearsal, say, use
from harness_core.wait import deadline

HAIKU = "claude-haiku-4-5-20251001"
TOOL = {
    "name": "pain_log",
    "description": "Log a pain.",
    "input_schema": {
        "type": "object",
        "properties": {"notes": {"type": "string"}},
        "required": ["notes"],
    },
}


#: What a provider's model does: it logs what it is told to log, and repeats anything else.
REHEARSED = (
    Rehearsal(message="{words}", turns=(say("Understood: {words}"),)),
    Rehearsal(message="log {words}", turns=(use("pain_log", notes="log {words}"),)),
)


def request(text: str, **changes) -> dict:
    """A request as a client would send it."""
    return {
        "model": HAIKU,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        **changes,
    }


@dataclass(frozen=True)
class Served:
    """A gateway in this process."""

    url: str
    api_key: str
    client: GatewayClient


@asynccontextmanager
async def served(backend: Backend, redactor: Redactor | None = None) -> AsyncIterator[Served]:
    """A gateway in this process with that backend."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    key, token = (prefix + secrets.token_hex(12) for prefix in ("sk-ant-harness-", "hgt-"))
    settings = Settings(
        backend=backend,
        api_key=key,
        control_token=token,
        budget_usd=1.0,
        descriptor=listener.detach(),
        announce=False,
        redactor=redactor or Redactor(),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, settings)
        with deadline("serve a gateway", seconds=20):
            yield Served(url, key, GatewayClient(url, token))
        nursery.cancel_scope.cancel()


def model() -> RehearsedBackend:
    """A provider's model."""
    backend = RehearsedBackend()
    for each in REHEARSED:
        backend.stage.load(each)
    return backend


@asynccontextmanager
async def recording(
    tmp_path: Path, provider: Backend | None = None
) -> AsyncIterator[tuple[Served, Served]]:
    """A gateway that records what a second one, the provider, answers."""
    async with served(provider or model()) as upstream:
        redactor = Redactor()
        redactor.add(upstream.api_key)
        live = LiveBackend(upstream.url, key=upstream.api_key)
        backend = RecordBackend(live, cassette=tmp_path / "cassette", redactor=redactor)
        async with served(backend, redactor) as opened:
            yield opened, upstream
        await live.aclose()


def replaying(tmp_path: Path):
    """A gateway that replays what :func:`recording` kept."""
    redactor = Redactor()
    return served(ReplayBackend(tmp_path / "cassette", redactor=redactor), redactor)


async def ask(opened: Served, body: dict, *, path: str = "/v1/messages") -> httpx.Response:
    """One call."""
    async with httpx.AsyncClient(
        base_url=opened.url, headers={"x-api-key": opened.api_key}, trust_env=False, timeout=20
    ) as http:
        return await http.post(path, json=body)


def told(response: httpx.Response) -> list[dict]:
    """What a response says, streamed or not, without ids."""
    assert 200 == response.status_code, response.text
    if not response.headers["content-type"].startswith("text/event-stream"):
        return [{**part, "id": ""} for part in response.json()["content"]]
    parts: list[dict] = []
    for data in re.findall(r"^data: (.*)$", response.text, re.MULTILINE):
        event = json.loads(data)
        if event["type"] == "content_block_start":
            parts.append({**event["content_block"], "id": ""})
        for key, inner in event.get("delta", {}).items():
            if key in ("text", "thinking", "signature"):
                parts[-1][key] = parts[-1].get(key, "") + inner
            elif key == "partial_json":
                parts[-1]["json"] = parts[-1].get("json", "") + inner
    for part in parts:
        if "json" in part:
            part["input"] = json.loads(part.pop("json"))
    return parts


@pytest.mark.parametrize("recorded_streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("replayed_streamed", [True, False], ids=["to-stream", "to-whole"])
async def test_an_answer_is_replayed_without_its_provider(
    tmp_path, recorded_streamed, replayed_streamed
) -> None:
    """What was recorded streamed or whole is replayed either way, token counts included."""
    asked = request("log the pain", tools=[TOOL])
    async with recording(tmp_path) as (opened, _):
        first = told(await ask(opened, asked | {"stream": recorded_streamed}))
        (recorded,) = await opened.client.ledger()
    async with replaying(tmp_path) as opened:
        second = told(await ask(opened, asked | {"stream": replayed_streamed}))
        (replayed,) = await opened.client.ledger()
        totals = await opened.client.totals()
        unmatched = await opened.client.unmatched()

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
        return request("", tools=[TOOL], metadata={"user_id": session}) | {
            "messages": [{"role": "user", "content": content}]
        }

    old, new = new_token(), new_token()
    ids = ("0d5c2a3e-1111-4222-8333-444455556666", "1e6d3b4f-9999-4888-8777-666655554444")
    async with recording(tmp_path) as (opened, _):
        await ask(opened, body(old, "2026-11-20", ids[0]))
    async with replaying(tmp_path) as opened:
        answer = told(await ask(opened, body(new, "2027-01-03", ids[1])))
    (path,) = (tmp_path / "cassette").glob("*.json")
    file = path.read_text(encoding="utf-8")

    assert new in answer[0]["input"]["notes"]
    assert ids[1] in answer[0]["input"]["notes"]
    assert [] == [value for value in (old, ids[0], "2026-11-20") if value in file]
    assert "<word-1>" in file
    assert "Today's date is <today>." in file


async def test_a_conversation_goes_on_with_the_ids_of_the_replay(tmp_path) -> None:
    """The ids of replayed tool calls are fresh, and their results are recognised."""
    asked = request("log the pain", tools=[TOOL])

    async def converse(opened: Served, time: str) -> tuple[str, str]:
        first = (await ask(opened, asked)).json()["content"]
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
        second = await ask(opened, asked | {"messages": turns})
        return first[0]["id"], json.dumps(told(second))

    async with recording(tmp_path) as (opened, _):
        recorded_id, recorded = await converse(opened, "10:00:00.123456")
    async with replaying(tmp_path) as opened:
        replayed_id, replayed = await converse(opened, "23:59:59.9")

    assert recorded == replayed
    assert recorded_id != replayed_id


async def test_repeated_questions_get_their_answers_in_order(tmp_path) -> None:
    """Asked three times, answered as the three times before; the fourth is refused by name."""
    words = ["one", "two", "three"]
    async with recording(tmp_path, RehearsedBackend()) as (opened, provider):
        for word in words:
            await provider.client.rehearse(Rehearsal(message="next", turns=(say(word),)))
            await ask(opened, request("next"))
    async with replaying(tmp_path) as opened:
        answers = [told(await ask(opened, request("next")))[0]["text"] for _ in words]
        refused = await ask(opened, request("next"))

    assert words == answers
    assert 500 == refused.status_code
    assert "false" == refused.headers["x-should-retry"]
    assert "holds 3 answer(s) to this request, and it was asked once more" in refused.text


async def test_a_miss_names_the_nearest_request_and_the_field_that_differs(tmp_path) -> None:
    """What was not recorded is refused with the closest file and what differs in it, and kept."""
    async with recording(tmp_path) as (opened, _):
        await ask(opened, request("a question about the weather in Lisbon", tools=[TOOL]))
        await ask(opened, request("completely different", system="Be brief."))
    tool = TOOL | {"description": "Log an ache."}
    async with replaying(tmp_path) as opened:
        refused = await ask(
            opened, request("a question about the weather in London", tools=[tool], temperature=1)
        )
        unmatched = await opened.client.unmatched()
        (entry,) = await opened.client.ledger()
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
    async with recording(tmp_path) as (opened, provider):
        text = f"log {provider.api_key} and {opened.api_key} and {other}"
        told(await ask(opened, request(text, tools=[TOOL], metadata={"user_id": "mallory"})))
        keys = (provider.api_key, opened.api_key, other, "mallory")
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "cassette").iterdir()]

    assert 1 == len(files)
    assert [] == [key for key in keys if key in files[0]]
    assert "[redacted]" in files[0]


async def test_passing_trouble_is_not_recorded(tmp_path) -> None:
    """An overloaded provider and a stream cut short leave nothing; a refused request does."""
    async with recording(tmp_path) as (opened, provider):
        await provider.client.add_fault(Fault(kind="status", status=529))
        busy = await ask(opened, request("hello"))
        await provider.client.add_fault(Fault(kind="cut", after_events=2))
        cut = await ask(opened, request("hello", stream=True))
        nothing = list(tmp_path.glob("cassette/*"))
        await provider.client.add_fault(Fault(kind="status", status=413))
        large = await ask(opened, request("large"))
    async with replaying(tmp_path) as opened:
        replayed = await ask(opened, request("large"))

    assert 529 == busy.status_code
    assert "the upstream broke off" in cut.text
    assert [] == nothing
    assert 413 == large.status_code == replayed.status_code
    assert large.json()["error"]["message"] == replayed.json()["error"]["message"]


async def test_recording_again_replaces_what_is_asked_again(tmp_path) -> None:
    """A second recording puts new answers in place of the old ones and leaves other questions."""
    for answer in ("old", "new"):
        async with recording(tmp_path, RehearsedBackend()) as (opened, provider):
            for message in ("again", "once"):
                await provider.client.rehearse(Rehearsal(message=message, turns=(say(answer),)))
            await ask(opened, request("again"))
            if answer == "old":
                await ask(opened, request("once"))
    async with replaying(tmp_path) as opened:
        again = told(await ask(opened, request("again")))
        once = told(await ask(opened, request("once")))

    assert ("new", "old") == (again[0]["text"], once[0]["text"])


async def test_the_chat_api_is_replayed_from_the_same_cassette(tmp_path) -> None:
    """A question of the chat completions API gets the answer recorded for the same question."""
    async with recording(tmp_path) as (opened, _):
        await ask(opened, request("hello there"))
    async with replaying(tmp_path) as opened:
        response = await ask(opened, request("hello there"), path="/v1/chat/completions")

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
    async with replaying(tmp_path) as opened:
        whole = told(await ask(opened, request("think")))
        streamed = told(await ask(opened, request("think", stream=True)))

    assert [{**part, "id": ""} for part in content] == whole
    assert whole == streamed


async def test_a_cassette_may_name_more_volatile_values(tmp_path) -> None:
    """Values that volatile.json lists do not make a question another one."""
    (tmp_path / "cassette").mkdir()
    (tmp_path / "cassette" / "volatile.json").write_text(
        json.dumps({"cassette": 1, "volatile": {"order": r"ORD-\d+"}})
    )
    async with recording(tmp_path) as (opened, _):
        await ask(opened, request("log the pain of ORD-17", tools=[TOOL]))
    async with replaying(tmp_path) as opened:
        answer = told(await ask(opened, request("log the pain of ORD-4242", tools=[TOOL])))

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
async def test_a_malformed_cassette_is_one_bad_input(tmp_path, text, key, expected) -> None:
    """A file that cannot be used is named with its field, before any process is started."""
    directory = tmp_path / "cassette"
    directory.mkdir()
    (directory / "broken.json").write_text(text)
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run:
        opening = open_gateway(run, mode="replay", cassette=directory, evidence=evidence)
        with pytest.raises(BadInput) as caught:
            await opening.__aenter__()

    assert str(directory / "broken.json") == caught.value.where
    assert key == caught.value.key
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "replay"], "--cassette"),
        (["--mode", "record"], "--cassette"),
        (["--mode", "rehearsed", "--cassette", "x"], "only with those"),
        (["--mode", "replay", "--cassette", "/nowhere/x"], "no such directory"),
    ],
)
def test_the_command_line_says_what_is_missing(arguments, words, capsys) -> None:
    """A missing or needless cassette ends the command with status 2 and one sentence."""
    assert 2 == main(arguments)
    assert words in capsys.readouterr().err


async def test_a_gateway_process_records_and_replays(tmp_path) -> None:
    """What a process in mode record wrote, a process in mode replay answers with."""
    evidence, cassette = open_evidence(tmp_path / "evidence"), tmp_path / "cassette"
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
            ) as opened,
        ):
            await provider.client.rehearse(*REHEARSED)
            first = told(await ask(opened, request("hello")))
        replayer = open_gateway(
            run, mode="replay", cassette=cassette, evidence=evidence.child("replay")
        )
        async with replayer as opened:
            second = told(await ask(opened, request("hello")))
            totals = await opened.client.totals()

    assert "Understood: hello" == first[0]["text"]
    assert first == second
    assert ("replay", 0.0) == (totals.mode, totals.spent_usd)


async def test_a_file_is_whole_or_not_there(tmp_path) -> None:
    """Beside finished files a recording leaves nothing."""
    async with recording(tmp_path) as (opened, _):
        for number in range(3):
            await ask(opened, request(f"question {number}"))
    names = sorted(path.name for path in Path(tmp_path / "cassette").iterdir())

    assert 3 == len(names)
    assert [] == [name for name in names if not name.endswith(".json")]
