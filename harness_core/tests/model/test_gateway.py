"""A gateway that serves: ledger, key, control API, process; over real HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest
import trio

from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.doubles.model import Fault, GatewayClient, open_gateway
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._cli import main
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._dialect import MESSAGES
from harness_core.doubles.model._ledger import Ledger
from harness_core.doubles.model._serve import listen
from harness_core.doubles.turns import Rehearsal, say, use
from harness_core.process import open_run
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


@pytest.mark.parametrize("stream", [True, False])
async def test_the_entry_comes_before_the_end_of_the_answer(stream) -> None:
    """When the last byte that a client needs leaves, the call is already in the ledger."""
    desk = Desk(backend=rehearsed(), ledger=Ledger(), budget=Budget(1.0), api_key=KEY)
    unread = [json.dumps({**HI, "stream": stream}).encode()]
    seen: list[tuple[bytes, int]] = []

    async def receive() -> dict:
        if seen or not unread:
            await trio.sleep_forever()
        return {"type": "http.request", "body": unread.pop(), "more_body": False}

    async def send(message: dict) -> None:
        seen.append((message.get("body", b""), len(desk.ledger.since(0))))

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/messages",
        "query_string": b"",
        "headers": [(b"x-api-key", KEY.encode())],
    }
    await desk.serve(MESSAGES, scope, receive, send)

    decisive = b"message_stop" if stream else b"stop_reason"
    (last,) = [entries for chunk, entries in seen if decisive in chunk]
    assert 1 == last


async def test_a_call_is_written_down_in_full(tmp_path) -> None:
    """Session, trace, scope, tools, tokens, price and prompt are in the entry and in the file."""
    path = tmp_path / "ledger.jsonl"
    model = rehearsed(Rehearsal(message="log {words}", turns=(use("pain_log", notes="{words}"),)))
    headers = {"x-claude-code-session-id": "s-1", "traceparent": "00-abc-def-01"}
    async with served(model, ledger=path) as (http, control):
        await control.set_scope("test_a")
        body = request("log the pain zx9f3k21", tools=[PAIN_LOG])
        await http.post("/v1/messages?beta=true", json=body, headers=headers)
        (entry,) = await control.ledger()

    expected = {
        "sequence": 1,
        "test": "test_a",
        "session": "s-1",
        "traceparent": "00-abc-def-01",
        "mode": "rehearsed",
        "kind": "messages",
        "model": HAIKU,
        "status": 200,
        "tools": ("pain_log",),
        "called": ("pain_log",),
        "stop_reason": "tool_use",
        "prompt": "log the pain zx9f3k21",
        "charged": False,
    }
    assert expected == {name: getattr(entry, name) for name in expected}
    assert entry.input_tokens > 0 < entry.output_tokens
    written = json.loads(path.read_text())
    assert expected | {"tools": ["pain_log"], "called": ["pain_log"]} == {
        name: written[name] for name in expected
    }


async def test_a_mark_is_the_last_call_that_has_ended() -> None:
    """It takes no entry to know it; the entries since are those of later calls alone."""
    async with served() as (http, control):
        marks = [await control.mark()]
        for number in range(3):
            await http.post("/v1/messages", json={**HI, "model": f"m-{number}"})
            marks.append(await control.mark())
        since = [
            [entry.model for entry in await control.ledger(since=mark)] for mark in reversed(marks)
        ]

    assert [0, 1, 2, 3] == marks
    assert [[], ["m-2"], ["m-1", "m-2"], ["m-0", "m-1", "m-2"]] == since


async def test_the_session_is_found_in_the_metadata() -> None:
    """Claude Code names its session in metadata.user_id as well."""
    user = json.dumps({"device_id": "d", "session_id": "s-2"})
    async with served() as (http, control):
        await http.post("/v1/messages", json={**HI, "metadata": {"user_id": user}})
        await http.post("/v1/messages", json={**HI, "metadata": {"user_id": "s-3"}})

        assert ["s-2", "s-3"] == [entry.session for entry in await control.ledger()]


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"x-api-key": "", "authorization": f"Bearer {KEY}"}, ""),
        ({"x-api-key": ""}, "key_missing"),
        ({"x-api-key": KEY[:-1]}, "wrong_api_key"),
        ({"x-api-key": "", "authorization": f"Bearer {KEY}x"}, "wrong_bearer"),
    ],
)
async def test_only_the_key_of_the_run_is_served(headers, error) -> None:
    """As either header; any other is refused as the provider would, and booked on the test unread."""
    async with served() as (http, control):
        await control.set_scope("test_a")
        answer = await http.post("/v1/messages", json=HI, headers=headers)
        (entry,) = await control.ledger()

    assert (401 if error else 200) == answer.status_code == entry.status
    assert (error, "test_a") == (entry.error, entry.test)
    if error:
        assert "authentication_error" == answer.json()["error"]["type"]
        assert ("", 0) == (entry.prompt, entry.output_tokens)


async def test_the_system_under_test_cannot_steer() -> None:
    """The control API, its rehearsals too, refuses the key that callers hold."""
    async with served() as (http, _):
        headers = {"authorization": f"Bearer {KEY}"}
        for path in ("totals", "ledger", "mark", "faults", "unmatched"):
            assert 401 == (await http.get(f"/_gateway/{path}", headers=headers)).status_code
        for path in ("scope", "rehearsals", "faults", "clear"):
            assert 401 == (await http.post(f"/_gateway/{path}", headers=headers)).status_code


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
    monkeypatch.setattr("harness_core.base.limits.HTTP_BODY_BYTES", 1000)
    async with served() as (http, _):
        answer = await http.post("/v1/messages", content=b"x" * 2000)

    assert (413, "request_too_large") == (answer.status_code, answer.json()["error"]["type"])


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


async def test_a_client_without_a_gateway_says_where_it_looked() -> None:
    """A gateway that is gone is an error of the harness with the address."""
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await GatewayClient("http://127.0.0.1:1", TOKEN).totals()


# --- the process ------------------------------------------------------------------------------------


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

    assert 200 == answer.status_code
    assert 1 == len(entries)
    kept = evidence.path / "gateway" / "ledger.jsonl"
    assert 1 == len(kept.read_text().splitlines())
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(gateway.url.rsplit(":", 1)[1])))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"mode": "psychic"}, BadInput, "rehearsed or live"),
        ({"mode": "live"}, Unavailable, "ANTHROPIC_API_KEY is not set"),
        ({"mode": "record"}, BadInput, "--cassette"),
    ],
)
async def test_bad_ways_to_open_a_gateway(options, error, words, tmp_path, monkeypatch) -> None:
    """An unknown mode, and a mode without what it needs, are reported before anything starts."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run:
        with pytest.raises(error, match=words):
            await open_gateway(run, evidence=evidence, **options).__aenter__()


def test_the_process_announces_itself_and_stops_promptly() -> None:
    """One JSON line says where it is; SIGTERM ends it at once, also with a call that hangs."""
    argv = [sys.executable, "-m", "harness_core.doubles.model"]
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
    ("argv", "key", "status", "words"),
    [
        (["--budget-usd", "-1"], "", 2, "--budget-usd"),
        (["--port", "70000"], "", 2, "--port"),
        (["--mode", "live", "--upstream", "ftp://x"], "sk-ant-real", 2, "--upstream"),
        (["--mode", "live"], "", 1, "ANTHROPIC_API_KEY is not set"),
        (["--ledger", "/nowhere/at/all"], "", 2, "--ledger"),
        (["--mode", "replay"], "", 2, "--cassette"),
        (["--mode", "record"], "", 2, "--cassette"),
        (["--mode", "rehearsed", "--cassette", "x"], "", 2, "only with those"),
        (["--mode", "replay", "--cassette", "/nowhere/x"], "", 2, "no such directory"),
        (
            ["--mode", "live", "--turns", "x"],
            "",
            2,
            "--turns: found '--mode live', expected --mode rehearsed",
        ),
        (
            ["--mode", "live", "--form", "x"],
            "",
            2,
            "--form: found '--mode live', expected --mode rehearsed",
        ),
        (["--host", "llm"], "", 2, "found 'llm', expected HOST:PORT"),
    ],
)
def test_bad_options_are_reported(argv, key, status, words, capsys, monkeypatch) -> None:
    """What is wrong, missing or of another mode ends with one line that names it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)

    assert status == main(argv)
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_taken_port_is_reported(capsys) -> None:
    """A busy port ends with one line that names it, and status 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert 1 == main(["--port", str(port)])
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_only_the_loopback_is_served() -> None:
    """An inherited socket on another address is refused: a key-holding proxy stays at home."""
    with (
        socket.create_server(("0.0.0.0", 0)) as listener,
        pytest.raises(HarnessError, match=r"127\.0\.0\.1 only"),
    ):
        listen(descriptor=os.dup(listener.fileno()))
