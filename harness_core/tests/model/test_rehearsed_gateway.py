"""A gateway whose model is rehearsed, over real HTTP: what it is given, what it answers, what it records."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx
import pytest

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Answer, Call
from harness_core.doubles.model._cli import main
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.turns import Rehearsal, ask, fail, say, use
from harness_core.tests.model.served import (
    HAIKU,
    HI,
    KEY,
    PAIN_LOG,
    TOKEN,
    rehearsed,
    request,
    served,
)

CONTROL = {"authorization": f"Bearer {TOKEN}"}
SECRET = "correct-horse-battery"
GOOD = {"message": "hello there", "turns": [{"say": "Good morning."}]}


# --- rehearsals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "key", "found", "expected"),
    [
        ("{", "", "{", "JSON"),
        (GOOD, "", GOOD, "a list"),
        ([GOOD | {"mesage": "m"}], "[0].mesage", "m", "one of message, turns, name"),
        (
            [GOOD | {"turns": [{"obey": [{"fail": 200}]}]}],
            "[0].turns[0].obey[0].fail",
            200,
            "a status, 400 to 599",
        ),
    ],
)
async def test_a_bad_rehearsal_is_refused_by_its_place(body, key, found, expected) -> None:
    """The mistake is named where it is written, and nothing that came with it is taken."""
    content = body if isinstance(body, str) else json.dumps(body)
    async with served() as (http, control):
        refused = await http.post("/_gateway/rehearsals", content=content, headers=CONTROL)
        await http.post("/v1/messages", json=request("hello there"))
        (entry,) = await control.ledger()

    shown = refused.json()
    assert 400 == refused.status_code
    assert ("rehearsals", key, found, expected) == tuple(
        shown[name] for name in ("where", "key", "found", "expected")
    )
    assert f"expected {expected}" in shown["error"]
    assert "hello there" in entry.unrehearsed


async def test_a_rehearsal_needs_the_mode() -> None:
    """In another mode it would never be played: it is refused."""
    elsewhere = LiveBackend("http://127.0.0.1:1", key=SECRET)
    async with served(elsewhere) as (_, control):
        with pytest.raises(BadInput) as caught:
            await control.rehearse(Rehearsal(message="x", turns=()))

    assert ("mode", "live") == (caught.value.key, caught.value.found)
    assert "a gateway started with --mode rehearsed" == caught.value.expected


TURNS = """
[[rehearsal]]
message = "My weight is {kg:number} kg"
turns = [{use = "measurement_log", with = {value = "{kg}"}}, {say = "Noted: {kg} kg."}]
"""
FORM = """
[subject]
name = "mine"

[model]
message = "### said\\n{message}\\n### end"
servers = ["health"]
"""


def test_a_process_reads_its_turns_and_its_form(tmp_path) -> None:
    """Files in place of calls: several of turns, and where in the prompts things stand."""
    files = {
        "turns.toml": TURNS,
        "more.toml": '[[rehearsal]]\nmessage = "thanks"\nturns = [{say = "Welcome."}]\n',
        "subject.toml": FORM,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    tools = [
        {"name": f"mcp__{server}__measurement_log", "input_schema": {"type": "object"}}
        for server in ("general", "health")
    ]
    bodies = (
        request("### said\nMy weight is 72.5 kg\n### end\nBe brief.", tools=tools),
        request("### said\nthanks\n### end\nBe brief."),
    )
    argv = [sys.executable, "-m", "harness_core.doubles.model", "--form", "subject.toml"]
    argv += ["--turns", "turns.toml", "--turns", "more.toml"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        line = json.loads(process.stdout.readline())
        try:
            headers = {"x-api-key": line["api_key"]}
            weight, thanks = (
                httpx.post(
                    f"{line['url']}/v1/messages", json=body, headers=headers, trust_env=False
                ).json()["content"]
                for body in bodies
            )
        finally:
            process.terminate()

    assert "rehearsed" == line["mode"]
    assert [("mcp__health__measurement_log", {"value": 72.5})] == [
        (block["name"], block["input"]) for block in weight
    ]
    assert ["Welcome."] == [block["text"] for block in thanks]


@pytest.mark.parametrize(
    ("option", "text", "shown"),
    [
        ("--turns", TURNS.replace("with = {value", "wiht = {value"), "rehearsal[0].turns[0].wiht"),
        ("--turns", None, "No such file"),
        ("--form", FORM.replace("message =", "mesage ="), "model.mesage: found"),
        ("--form", None, "No such file"),
    ],
)
def test_a_mistake_in_a_file_ends_the_process(tmp_path, option, text, shown, capsys) -> None:
    """With status 2 and one line that names file and key, before anything is served."""
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)

    assert 2 == main([option, str(path)])
    captured = capsys.readouterr()
    assert "" == captured.out
    (line,) = captured.err.splitlines()
    assert str(path) in line
    assert shown in line


# --- the ledger -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_the_ledger_says_what_was_answered_and_what_was_missing(tmp_path, stream) -> None:
    """In every entry, and in the file: what was said and called, whose fault it was if nothing."""
    path = tmp_path / "ledger.jsonl"
    model = rehearsed(
        Rehearsal(message="log it", turns=(use("pain_log", notes="ü"),)),
        Rehearsal(message="who is Bob", turns=(ask("Which Bob?"),)),
    )
    bodies = (
        request("log it", tools=[PAIN_LOG], stream=stream),
        request("who is Bob", stream=stream),
        request("log it", stream=stream),
        request("What is the weather like?", stream=stream),
    )
    async with served(model, ledger=path) as (http, control):
        statuses = [(await http.post("/v1/messages", json=body)).status_code for body in bodies]
        entries = await control.ledger()

    lost = "I am not sure what you would like me to do here."
    assert [200] * 4 == statuses
    silent = (
        "Nothing was rehearsed for this: I am no model. Say what I do (docs/how-to/gateway.md), or start"
        " with --llm live."
    )
    assert ['pain_log({"notes": "ü"})', "Which Bob?", lost, silent] == [e.answer for e in entries]
    assert [
        "",
        "",
        "the tool 'pain_log' was not offered; offered: none of the subject's",
        "",
    ] == [entry.missing for entry in entries]
    assert ["", "", ""] == [entry.unrehearsed for entry in entries[:3]]
    assert entries[3].unrehearsed.startswith("no turn was rehearsed for this prompt:")
    assert "What is the weather like?" in entries[3].unrehearsed
    written = [json.loads(line) for line in path.read_text().splitlines()]
    for name in ("answer", "missing", "unrehearsed"):
        assert [getattr(entry, name) for entry in entries] == [each[name] for each in written]


async def test_a_turn_that_fails_is_the_provider_failing() -> None:
    """As often as it is asked, in the words of the API; nothing is missing."""
    model = rehearsed(Rehearsal(message="hello", turns=(fail(529), say("never"))))
    async with served(model) as (http, control):
        answers = [await http.post("/v1/messages", json=request("hello")) for _ in range(2)]
        entries = await control.ledger()

    assert [529, 529] == [answer.status_code for answer in answers]
    assert "overloaded_error" == answers[0].json()["error"]["type"]
    assert [("status 529", "", "", "")] * 2 == [
        (entry.fault, entry.answer, entry.missing, entry.unrehearsed) for entry in entries
    ]


class BrokenBackend:
    """A mode with a mistake in it."""

    name = "rehearsed"

    def __init__(self, *, charges: bool = False) -> None:
        self.charges = charges

    async def answer(self, call: Call) -> Answer:
        """Fail as no backend should."""
        message = f"no such key: {SECRET} of {call.request.model}"
        raise LookupError(message)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_gateway_that_fails_says_that_it_was_itself(path, stream, capfd) -> None:
    """Status 500, reported once; the entry has the error, its own log where it happened."""
    redactor = Redactor()
    redactor.add(SECRET)
    async with served(BrokenBackend(), redactor=redactor) as (http, control):
        answer = await http.post(path, json={**HI, "stream": stream})
        (entry,) = await control.ledger()

    assert 500 == answer.status_code == entry.status
    assert "false" == answer.headers["x-should-retry"]
    assert "the gateway itself failed" in answer.json()["error"]["message"]
    assert SECRET not in answer.text
    assert "api_error" == entry.error
    assert (
        f"the gateway itself failed: LookupError('no such key: [redacted] of {HAIKU}')"
        == entry.unrehearsed
    )
    assert ("", "") == (entry.answer, entry.missing)
    assert "in answer" in capfd.readouterr().err


async def test_a_gateway_that_fails_may_have_spent() -> None:
    """Whether the provider was asked is not known then: the whole reservation is taken as spent."""
    async with served(BrokenBackend(charges=True)) as (http, control):
        await http.post("/v1/messages", json=HI)
        (entry,) = await control.ledger()
        totals = await control.totals()

    assert entry.usd > 100 * 5e-6  # max_tokens of output
    assert totals.spent_usd == pytest.approx(entry.usd)


async def test_no_secret_is_kept_of_an_answer(tmp_path) -> None:
    """Neither the run's key nor what the redactor knows, in words or arguments, whole or cut."""
    path = tmp_path / "ledger.jsonl"
    redactor = Redactor()
    redactor.add(SECRET)
    long = "x" * 390
    model = rehearsed(
        Rehearsal(message="say {words}", turns=(say("You said {words}"),)),
        Rehearsal(message="log {words}", turns=(use("pain_log", notes="{words}"),)),
        Rehearsal(message="miss {words}", turns=(use("meal_log", notes="{words}"),)),
    )
    both = f"{KEY} and {SECRET}"
    bodies = (
        request(f"say {both}"),
        request(f"log {both}", tools=[PAIN_LOG]),
        request(f"miss {both}", tools=[PAIN_LOG]),
        request(f"tell {both}"),
        request(f"say {long}{SECRET}"),
    )
    async with served(model, ledger=path, redactor=redactor) as (http, control):
        answers = [(await http.post("/v1/messages", json=body)).text for body in bodies]
        entries = await control.ledger()

    assert [True, True, False, False, False] == [both in answer for answer in answers]
    assert ["[redacted]" in entry.answer for entry in entries[:2]] == [True, True]
    assert "[redacted]" in entries[3].unrehearsed
    assert 400 >= max(len(entry.answer) for entry in entries)
    assert "correct" not in entries[4].answer
    written = path.read_text()
    assert [] == [secret for secret in (KEY, KEY[-10:], SECRET) if secret in written]


@pytest.mark.parametrize("before", range(0, len(KEY), 5))
async def test_no_half_of_a_secret_is_kept(before) -> None:
    """Where a long prompt is cut for the entry, at its beginning or its end, no key is cut."""
    model = rehearsed(Rehearsal(message="log zxbcd2fghj in full", turns=(say("x"),)))
    bodies = (
        request(f"my key is {KEY} {'z' * before} {'y ' * 735}"),
        request(f"log zxbcd2fghj {'z' * before} {'word ' * 23}{KEY}"),
    )
    async with served(model) as (http, control):
        for body in bodies:
            await http.post("/v1/messages", json=body)
        entries = await control.ledger()

    halves = [KEY[at : at + 8] for at in range(7, len(KEY) - 8)]
    assert entries[0].unrehearsed
    assert "does not hold the message whole" in entries[1].missing
    for entry in entries:
        shown = entry.unrehearsed + entry.missing
        assert [] == [half for half in halves if half in shown]


# --- callers ----------------------------------------------------------------------------------------


async def test_only_a_command_line_has_tools_of_its_own() -> None:
    """A caller that is no command line is served any tool; a command line those of servers alone."""
    model = rehearsed(Rehearsal(message="log it", turns=(use("pain_log", notes="x"),)))
    cli = {"user-agent": "claude-cli/2.0.1 (external, sdk-py)"}
    served_by_server = PAIN_LOG | {"name": "mcp__health__pain_log"}
    async with served(model) as (http, control):
        for tool, headers in ((PAIN_LOG, {}), (PAIN_LOG, cli), (served_by_server, cli)):
            await http.post("/v1/messages", json=request("log it", tools=[tool]), headers=headers)
        entries = await control.ledger()

    assert [("pain_log",), (), ("mcp__health__pain_log",)] == [entry.called for entry in entries]
    assert "the tool 'pain_log' was not offered" in entries[1].missing


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_of_chat_completions_does_its_turns(stream) -> None:
    """A call of a function, what it answers, the last words; the ledger has both calls."""
    model = rehearsed(
        Rehearsal(
            message="I ache, severity {n:number}",
            turns=(use("pain_log", notes="of {n}", severity="{n}"), say("Noted: {n}.")),
        )
    )
    function = {
        "name": "pain_log",
        "parameters": {"type": "object", "properties": {"severity": {"type": "integer"}}},
    }
    said = [
        {"role": "system", "content": "Use your tools."},
        {"role": "user", "content": "I ache, severity 7"},
    ]
    body = {
        "model": "gpt-5-mini",
        "messages": said,
        "tools": [{"type": "function", "function": function}],
        "stream": stream,
        "stream_options": {"include_usage": True},
    }
    headers = {"x-api-key": "", "authorization": f"Bearer {KEY}", "user-agent": "OpenAI/Python 2.8"}
    async with served(model) as (http, control):

        async def chat(messages: list) -> tuple[dict, str, dict]:
            answer = await http.post(
                "/v1/chat/completions", json=body | {"messages": messages}, headers=headers
            )
            assert 200 == answer.status_code, answer.text
            return whole(answer, stream=stream)

        called, first_end, _ = await chat(said)
        (call,) = called["tool_calls"]
        done = {"role": "tool", "tool_call_id": call["id"], "content": '{"id": 1}'}
        last, last_end, usage = await chat([*said, called, done])
        entries = await control.ledger()

    assert ("tool_calls", "stop") == (first_end, last_end)
    counted = (entries[1].input_tokens, entries[1].output_tokens)
    assert counted == (usage["prompt_tokens"], usage["completion_tokens"])
    assert sum(counted) == usage["total_tokens"]
    assert ("function", "pain_log") == (call["type"], call["function"]["name"])
    assert {"notes": "of 7", "severity": 7} == json.loads(call["function"]["arguments"])
    assert "Noted: 7." == last["content"]
    assert [("pain_log",), ()] == [entry.called for entry in entries]
    assert ['pain_log({"notes": "of 7", "severity": 7})', "Noted: 7."] == [
        entry.answer for entry in entries
    ]
    assert {("chat_completions", "", "")} == {
        (entry.kind, entry.missing, entry.unrehearsed) for entry in entries
    }


def whole(answer: httpx.Response, *, stream: bool) -> tuple[dict, str, dict]:
    """The message of a chat completion, put together again, why it ended, and its tokens."""
    if not stream:
        body = answer.json()
        (choice,) = body["choices"]
        return choice["message"], choice["finish_reason"], body["usage"]
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert "[DONE]" == lines[-1]
    *chunks, counted = map(json.loads, lines[:-1])
    choices = [chunk["choices"][0] for chunk in chunks]
    deltas = [choice["delta"] for choice in choices]
    message = {
        "role": "assistant",
        "content": "".join(delta.get("content", "") for delta in deltas),
        "tool_calls": [call for delta in deltas for call in delta.get("tool_calls", ())],
    }
    return message, choices[-1]["finish_reason"], counted["usage"]
