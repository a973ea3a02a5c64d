"""Contract 2: user input goes through the pipeline and is answered; a heartbeat disturbs nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
import trio

from harness_core.base.slowness import patience
from suites.daemon.daemon import HEALTH_S, Daemon, Settings, health_on
from suites.daemon.hostile import frame
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    HEARTBEAT,
    ask,
    due,
    expect_health,
    expect_message,
    request,
    shell,
    sources_of,
    user_input,
)
from suites.daemon.wire import (
    Form,
    Keyword,
    RemoteProtocolError,
    lookup,
    plist,
    print_form,
)

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


@pytest.mark.capability("metaless")
@pytest.mark.parametrize("meta", ["()", "NIL", "(:THREAD 7)", '(:FROM "Ann" :SOURCES (:TUI))'])
async def test_meta_without_a_source(client, meta: str) -> None:
    """A META that names no source is answered with one that does, whatever else it holds."""
    await client.send_bytes(
        frame(f'(:TYPE :EVENT :META {meta} :PAYLOAD (:SENSOR :USER-INPUT :TEXT "ping"))')
    )
    answer = await due(client, "an answer", seconds=ANSWER_S)

    assert expect_message(answer, client).strip(), (
        f"contract 2: an answer has a text, found {answer.payload}"
    )
    assert isinstance(answer.get("META", "SOURCE"), Keyword), (
        f"contract 2: META {meta} is answered with a META that names a source by a keyword, found "
        f"{answer.payload}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "TUI",
        pytest.param("CLI", marks=pytest.mark.capability("cli-source")),
        pytest.param("EMACS", marks=pytest.mark.capability("emacs")),
    ],
)
async def test_meta_comes_back(client, source: str) -> None:
    """The META of user input stands in its answer."""
    answer = await ask(client, user_input("ping", source=source))

    expect_message(answer, client)

    assert answer.get("META", "SOURCE") == Keyword(source), f"whose answer is {answer.payload}?"


@pytest.mark.capability(
    "whole-meta", "shell-reply", "skill-list", "gateway-list", "links", "self-checks"
)
async def test_meta_comes_back_of_every_request(client, token: str) -> None:
    """Whoever sends a META of his own finds it in the answer, whatever was asked and what became of it."""
    link = {"name": token, "platform": "telegram", "address": "42"}
    asked: list[tuple[Form, str]] = [
        (HEALTH_CHECK, "HEALTH-RESPONSE"),
        (user_input("ping"), "REQUEST"),
        (shell("echo"), "EVENT"),
        (shell(f"rm -rf /nothing-{token}"), "LOG"),
        (request("SKILL", "LIST"), "EVENT"),
        (request("GATEWAY", "LIST"), "EVENT"),
        (request("GATEWAY", "LINK", **link), "EVENT"),
        (request("GATEWAY", "UNLINK", name=token), "EVENT"),
        (request("GATEWAY", "UNLINK", name=token), "LOG"),
        (request("GATEWAY", "EXPLODE"), "LOG"),
        (request("NOWHERE", "LIST"), "LOG"),
    ]
    for number, (form, kind) in enumerate(asked):
        assert isinstance(form, tuple)
        meta = plist(source=Keyword("CLI"), thread=number, of=token)
        bare = [
            each
            for pair in zip(form[::2], form[1::2], strict=True)
            for each in pair
            if pair[0] != Keyword("META")
        ]
        answer = await ask(client, (Keyword("META"), meta, *bare))
        found = answer.get("TYPE"), answer.get("META")

        assert found == (Keyword(kind), meta), (
            f"contract 2: {print_form(form)} is answered with a {kind} that bears its META: expected "
            f"{print_form(meta)}, found {answer.payload}"
        )


@pytest.mark.capability("whole-meta", "shell-reply", "shell-syntax")
async def test_meta_is_that_of_the_request_itself(daemon: Daemon, token: str) -> None:
    """What takes long is answered with the META of its own request, whatever others have asked meanwhile."""

    def asked(command: str, who: str) -> tuple[Form, Form]:
        meta = plist(source=Keyword("CLI"), thread=f"{who}-{token}")
        payload = plist(action=Keyword("EXECUTE"), cmd=command, timeout=50)
        target = Keyword("SHELL")
        return plist(meta=meta, type=Keyword("REQUEST"), target=target, payload=payload), meta

    file = daemon.root / f"{token}-goes-on"
    waits = f"until [ -e {file.name} ]; do sleep 0.05; done; echo slow"
    async with daemon.connect() as slow, daemon.connect() as quick:
        form, slow_meta = asked(waits, "slow")
        await slow.send(form)
        for number in range(3):
            form, meta = asked(f"echo {number}", f"quick {number}")
            answer = await ask(quick, form)

            assert (answer.get("PAYLOAD", "STDOUT"), answer.get("META")) == (f"{number}\n", meta), (
                f"contract 2: an answer bears the META of its request: expected {number} and "
                f"{print_form(meta)}, found {answer.payload}"
            )
        file.touch()
        answer = await due(slow, "the outcome of what took long", seconds=ANSWER_S)
        file.unlink()

    assert (answer.get("PAYLOAD", "STDOUT"), answer.get("META")) == ("slow\n", slow_meta), (
        f"contract 2: an answer bears the META of its request, whatever was asked meanwhile: expected "
        f"{print_form(slow_meta)}, found {answer.payload}"
    )


@pytest.mark.capability("metaless")
async def test_without_meta(client) -> None:
    """User input without META is answered like any other, with a META that names a source."""
    answer = await ask(client, user_input("ping", source=None))

    assert expect_message(answer, client).strip(), (
        f"contract 2: an answer has a text, found {answer.payload}"
    )
    meta = answer.get("META")

    assert meta is not None, f"an answer without META: {answer.payload}"
    assert isinstance(lookup(meta, "SOURCE"), Keyword), (
        f"contract 2: META names a source by a keyword, found {answer.payload}"
    )


@pytest.mark.parametrize("case", ["lower", "mixed"])
async def test_keywords_in_any_case(client, case: str) -> None:
    """Keywords are upper-cased on reading, so :type is :TYPE."""
    text = '(:type :event :meta (:source :tui) :payload (:sensor :user-input :text "ping"))'
    if case == "mixed":
        text = text.replace(":type", ":Type").replace(":user-input", ":User-Input")
    await client.send_bytes(f"{len(text):06X}{text}".encode())
    answer = await client.receive("an answer to keywords in lower case", seconds=HEALTH_S)

    assert expect_message(answer, client).strip(), (
        f"contract 2: an answer has a text, found {answer.payload}"
    )


async def test_answers_follow_their_requests(client, subject) -> None:
    """Requests of one connection are answered in their order, each with its own META."""
    sources = (sources_of(subject) * 5)[:5]
    for source in sources:
        await client.send(user_input("ping", source=source))
    answers = [await due(client, "an answer", seconds=10) for _ in range(5)]

    found = [str(answer.get("META", "SOURCE")).lstrip(":") for answer in answers]

    assert sources == found, (
        f"contract 2: answers follow their requests, by their META: expected {sources}, found {found}"
    )


async def test_answers_go_where_they_were_asked(daemon: Daemon) -> None:
    """An answer comes on the connection that asked, and on no other, whoever connected last."""
    async with daemon.connect() as asking, daemon.connect() as later:
        answer = None
        with trio.move_on_after(patience(HEALTH_S)):
            answer = await ask(asking, user_input("ping"), seconds=HEALTH_S + 5)
        other = await health_on(later)

        assert other.get("TYPE") == Keyword("HEALTH-RESPONSE"), (
            f"contract 2: the reply went to another connection, which received {other.payload}\n"
            f"bytes exchanged there:\n{later.transcript}"
        )
        assert answer is not None, f"no answer within {HEALTH_S:g} s\n{asking.transcript}"
        expect_message(answer, asking)


#: Clients whose texts wait for the one that is worked on: more than queues hold that are not told.
CLIENTS = 110

#: Of those that are not answered, so many are waited for: each takes a whole deadline.
SHOWN = 2


@pytest.mark.capability("echo", "shell-text")
@pytest.mark.knob("workers")
@pytest.mark.knob("connections")
async def test_every_text_that_waits_is_answered(start, token: str) -> None:
    """However many clients' texts wait while others are worked on, each is answered with its own."""
    settings = Settings(knobs={"workers": 1, "connections": CLIENTS + 20})
    wrong: list[str] = []
    async with start(settings) as daemon, AsyncExitStack() as stack:
        opening = [stack.enter_async_context(daemon.connect()) for _ in range(CLIENTS + 1)]
        busy, *clients = [await each for each in opening]
        waits = "until [ -e go-on ]; do sleep 0.05; done; echo went on"
        asked = daemon.subject.table("texts")["shell"].replace("{command}", waits)
        for turn in (1, 2):
            await busy.send(user_input(asked))
            for number, client in enumerate(clients):
                await client.send(user_input(daemon.echo_of(f"<{turn}-{number}-{token}>")))
            # Whoever asks for health is answered meanwhile, and what was sent before is read.
            expect_health(await daemon.health())
            (daemon.root / "go-on").touch()
            done = expect_message(await due(busy, "its end", seconds=ANSWER_S), busy)

            assert "went on" in done, f"contract 2: what was worked on is answered, found {done!r}"
            (daemon.root / "go-on").unlink()
            for number, client in enumerate(clients):
                text = f"<{turn}-{number}-{token}>"
                try:
                    answer = await due(client, "its answer", seconds=ANSWER_S)
                except RemoteProtocolError as error:
                    wrong.append(f"turn {turn}, client {number}: {str(error)[:200]}")
                else:
                    if text not in expect_message(answer, client):
                        wrong.append(f"turn {turn}, client {number}: {answer.payload[:200]}")
                if len(wrong) == SHOWN:
                    break
            if wrong:
                break

    assert not wrong, (
        f"contract 2: each text that waits is answered on its connection: expected an answer to each of "
        f"{CLIENTS}, found {'; '.join(wrong)}"
    )


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
        echo = await ask(connection, user_input("ping"))

        expect_message(echo, connection)

    found = expect_health(await daemon.health())

    assert before == found, (
        f"contract 2: health after fifty heartbeats is as before: expected {before!r}, found {found!r}"
    )


@pytest.mark.covers("CONTRACT-2-HEARTBEAT")
async def test_a_heartbeat_between_requests(client, subject) -> None:
    """A heartbeat between two requests changes neither answer."""
    sources = (sources_of(subject) * 2)[:2]
    await client.send(user_input("ping", source=sources[0]))
    await client.send(HEARTBEAT)
    await client.send(user_input("ping", source=sources[1]))
    first = await due(client, "the first answer", seconds=10)
    second = await due(client, "the second answer", seconds=10)

    found = [str(answer.get("META", "SOURCE")).lstrip(":") for answer in (first, second)]

    assert sources == found, (
        f"contract 2: answers around a heartbeat follow their requests: expected {sources}, found "
        f"{found}"
    )
    assert expect_message(first, client) == expect_message(second, client), (
        f"contract 2: a heartbeat between two requests changes no answer: expected {expect_message(first, client)!r}, "
        f"found {expect_message(second, client)!r}"
    )
