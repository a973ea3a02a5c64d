"""Contract 2: user input goes through the pipeline and is answered; a heartbeat disturbs nothing."""

from __future__ import annotations

import pytest
import trio

from harness_core.base.slowness import patience
from suites.daemon.daemon import HEALTH_S, Daemon, health_on
from suites.daemon.messages import (
    HEALTH_CHECK,
    HEARTBEAT,
    ask,
    expect_health,
    expect_message,
    user_input,
)
from suites.daemon.wire import Keyword, lookup

pytestmark = pytest.mark.covers("CONTRACT-2-INPUT")

#: Heartbeats sent in a row; one that is answered, or queued for an answer, shows among them.
HEARTBEATS = 50


async def test_user_input_is_answered(client) -> None:
    """User input from the terminal is answered on its connection, with text and an explanation."""
    answer = await ask(client, user_input("ping"))

    assert expect_message(answer, client).strip(), "an empty answer"
    explanation = answer.get("PAYLOAD", "EXPLANATION")

    assert isinstance(explanation, str), f"no :EXPLANATION: {answer.payload}"
    assert explanation.strip(), "an empty explanation"


@pytest.mark.parametrize("source", ["TUI", "CLI", "EMACS"])
async def test_meta_comes_back(client, source: str) -> None:
    """The META of user input stands in its answer."""
    answer = await ask(client, user_input("ping", source=source))

    expect_message(answer, client)

    assert answer.get("META", "SOURCE") == Keyword(source), f"whose answer is {answer.payload}?"


@pytest.mark.capability("metaless")
async def test_without_meta(client) -> None:
    """User input without META is answered like any other, with a META that names a source."""
    answer = await ask(client, user_input("ping", source=None))

    text = expect_message(answer, client)
    assert text.strip(), f"contract 2: input without META is answered in words, not by {text!r}"
    meta = answer.get("META")

    assert meta is not None, f"an answer without META: {answer.payload}"
    source = lookup(meta, "SOURCE")
    assert isinstance(source, Keyword), f"the META of an answer names a source, not {source!r}"


@pytest.mark.parametrize("case", ["lower", "mixed"])
async def test_keywords_in_any_case(client, case: str) -> None:
    """Keywords are upper-cased on reading, so :type is :TYPE."""
    text = '(:type :event :meta (:source :tui) :payload (:sensor :user-input :text "ping"))'
    if case == "mixed":
        text = text.replace(":type", ":Type").replace(":user-input", ":User-Input")
    await client.send_bytes(f"{len(text):06X}{text}".encode())
    answer = await client.receive("an answer to keywords in lower case", seconds=HEALTH_S)

    said = expect_message(answer, client)
    assert said.strip(), f"contract 2: keywords of any case are understood, found {said!r}"


async def test_answers_follow_their_requests(client) -> None:
    """Requests of one connection are answered in their order, each with its own META."""
    for source in ("TUI", "CLI", "TUI", "EMACS", "CLI"):
        await client.send(user_input("ping", source=source))
    answers = [await client.receive("an answer", seconds=10) for _ in range(5)]

    sources = [str(answer.get("META", "SOURCE")).lstrip(":") for answer in answers]
    assert ["TUI", "CLI", "TUI", "EMACS", "CLI"] == sources, (
        f"contract 2: answers come in the order of their requests, found {sources}: "
        f"{client.transcript}"
    )


async def test_answers_go_where_they_were_asked(daemon: Daemon) -> None:
    """An answer comes on the connection that asked, and on no other, whoever connected last."""
    async with daemon.connect() as asking, daemon.connect() as later:
        answer = None
        with trio.move_on_after(patience(HEALTH_S)):
            answer = await ask(asking, user_input("ping", source="CLI"), seconds=HEALTH_S + 5)
        other = await health_on(later)

        assert other.get("TYPE") == Keyword("HEALTH-RESPONSE"), (
            f"contract 2: the reply went to another connection, which received {other.payload}\n"
            f"bytes exchanged there:\n{later.transcript}"
        )
        assert answer is not None, f"no answer within {HEALTH_S:g} s\n{asking.transcript}"
        expect_message(answer, asking)


@pytest.mark.covers("CONTRACT-2-HEARTBEAT")
async def test_heartbeat_is_not_answered(daemon: Daemon) -> None:
    """A heartbeat has no reply, and the daemon that got fifty is healthy as before."""
    before = expect_health(await daemon.health())
    async with daemon.connect() as connection:
        for _ in range(HEARTBEATS):
            await connection.send(HEARTBEAT)
        answer = await ask(connection, HEALTH_CHECK)

        assert answer.get("TYPE") == Keyword("HEALTH-RESPONSE"), (
            f"contract 2: a heartbeat was answered with {answer.payload}\n{connection.transcript}"
        )
        # Health may overtake what waits; user input does not overtake a heartbeat.
        echo = await ask(connection, user_input("ping"))

        expect_message(echo, connection)

    after = expect_health(await daemon.health())
    assert before == after, f"health says the same before and after: {before}, then {after}"


@pytest.mark.covers("CONTRACT-2-HEARTBEAT")
async def test_a_heartbeat_between_requests(client) -> None:
    """A heartbeat between two requests changes neither answer."""
    await client.send(user_input("ping", source="TUI"))
    await client.send(HEARTBEAT)
    await client.send(user_input("ping", source="CLI"))
    first = await client.receive("the first answer", seconds=10)
    second = await client.receive("the second answer", seconds=10)

    sources = [first.get("META", "SOURCE"), second.get("META", "SOURCE")]
    assert [Keyword("TUI"), Keyword("CLI")] == sources, (
        f"contract 2: a heartbeat is answered by nothing, found answers to {sources}: "
        f"{client.transcript}"
    )
    one, other = expect_message(first, client), expect_message(second, client)
    assert one == other, f"the same input has the same answer: {one!r}, then {other!r}"
