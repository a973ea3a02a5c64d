"""Contract 6: text that comes in by the CLI gateway reaches the pipeline and is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.front.skips import not_run
from suites.daemon.daemon import Daemon, health_on
from suites.daemon.health import noticed
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    ask,
    due,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    user_input,
)
from suites.daemon.wire import Keyword, lookup, plist

pytestmark = [pytest.mark.covers("CONTRACT-6-CLI"), pytest.mark.capability("cli-source")]


async def test_cli_text_is_answered(client) -> None:
    """Text with META source :CLI is answered, and the answer says that it is the CLI's."""
    answer = await ask(client, user_input("hello from CLI", source="CLI"))

    assert expect_message(answer, client).strip(), "an empty answer"
    assert answer.get("META", "SOURCE") == Keyword("CLI"), (
        "contract 6: the answer is the CLI's: expected "
        + repr(Keyword("CLI"))
        + f", found {answer.payload}"
    )


async def test_cli_text_reaches_a_skill(client) -> None:
    """What a skill answers on the terminal, it answers on the CLI: the text went the same way."""
    on_terminal = expect_message(await ask(client, user_input("ping", source="TUI")), client)
    on_cli = expect_message(await ask(client, user_input("ping", source="CLI")), client)

    assert on_terminal == on_cli, (
        f"contract 6: on the CLI it was answered {on_cli!r}, on the terminal {on_terminal!r}"
    )


@pytest.mark.covers("CONTRACT-3-FRAMES", "CONTRACT-6-CLI")
@pytest.mark.capability("echo")
@pytest.mark.parametrize(
    "text",
    [
        "naïve Straße",
        "日本語",
        "😀 four bytes",
        '"quoted" and \\slashed\\',
        "two\nlines",
        "(:TYPE :EVENT)",
    ],
    ids=["latin", "cjk", "astral", "quotes", "newline", "looks-like-a-form"],
)
async def test_text_survives_the_round_trip(daemon: Daemon, client, text: str) -> None:
    """Text of any alphabet comes in and goes out as it was written, counted in characters."""
    echo = await ask(client, user_input(daemon.echo_of(text), source="CLI"))

    assert text in expect_message(echo, client), (
        f"contract 6: expected {text!r} back, found {echo.payload}"
    )


#: Texts that say nothing: empty, and of blanks of several kinds, one and many.
SAYING_NOTHING = ("", " ", "\n", "\t", " \r\n\t ", "\f\v", "\xa0", "\u3000", "\u2028", " " * 5_000)


@pytest.mark.covers("CONTRACT-2-INPUT", "CONTRACT-6-CLI")
@pytest.mark.parametrize("source", ["CLI", "TUI"])
async def test_text_that_says_nothing_is_answered(client, source: str) -> None:
    """Text that is empty or blank is text: each is answered once, and the daemon waits for the next."""
    unanswered = []
    for text in SAYING_NOTHING:
        await client.send(user_input(text, source=source))
        await client.send(HEALTH_CHECK)
        answer = await due(client, f"an answer to {text[:9]!r}", seconds=ANSWER_S)
        if answer.get("TYPE") == Keyword("HEALTH-RESPONSE"):
            unanswered.append(text[:9])
            continue
        expect_message(answer, client)
        expect_health(await due(client, "health behind it", seconds=ANSWER_S))

    assert not unanswered, (
        f"contract 6: text from {source} is answered, blank as it may be: expected an answer to each of "
        f"{len(SAYING_NOTHING)}, found none to {unanswered}"
    )


@pytest.mark.capability("error-frames")
async def test_missing_text_is_refused(client) -> None:
    """User input without :TEXT is a mistake that is named; the connection stays."""
    form = plist(
        type=Keyword("EVENT"),
        meta=plist(source=Keyword("CLI")),
        payload=plist(sensor=Keyword("USER-INPUT")),
    )
    refusal = await ask(client, form)

    expect_refusal(refusal, client, "text")
    expect_message(await ask(client, user_input("ping", source="CLI")), client)


@pytest.mark.covers("CONTRACT-3-HEALTH", "CONTRACT-4-SKILLS", "CONTRACT-7-GATEWAYS")
@pytest.mark.capability("skill-list", "gateway-list", "rejected-skills", "self-checks")
async def test_what_is_listed_as_text_is_what_is_so(skilled: Daemon, token: str) -> None:
    """Skills, gateways and health that are asked for as text are those of the wire, and of now."""
    texts = skilled.subject.table("texts")
    if not {"skills", "gateways", "health"} <= texts.keys():
        not_run("subject", f"{skilled.subject.path.name} does not say how lists are asked for")
    new = Path(skilled.fill(skilled.subject.table("skills")["directory"]), f"{token}.toml")
    broken = skilled.subject.table("skills")["files"]["broken.toml"]
    async with skilled.connect() as connection:
        for turn, name in ((1, ""), (2, token), (3, "")):
            if name:
                new.write_text(broken, encoding="utf-8")
            else:
                new.unlink(missing_ok=True)
            said = dict.fromkeys(("skills", "gateways", "health"), "")

            async def of_now(said: dict[str, str] = said, name: str = name) -> bool:
                for key in said:
                    answer = await ask(connection, user_input(texts[key], source="CLI"))
                    said[key] = expect_message(answer, connection)
                return (token in said["skills"], token in said["health"]) == (bool(name),) * 2

            await noticed(of_now)
            listed = await ask(connection, request("SKILL", "LIST"))
            gateways = await ask(connection, request("GATEWAY", "LIST"))
            health = await health_on(connection)
            expected = {
                "skills": [
                    str(lookup(row, key))
                    for kind, keys in (("SKILLS", ("NAME",)), ("REJECTED", ("NAME", "REASON")))
                    for row in listed.get("PAYLOAD", kind) or ()
                    for key in keys
                ],
                "gateways": [
                    str(lookup(row, "NAME")) for row in gateways.get("PAYLOAD", "GATEWAYS") or ()
                ],
                "health": [expect_health(health).name],
            }
            for key, words in expected.items():
                lost = [word for word in words if word not in said[key]]

                assert not lost, (
                    f"contract 6: {texts[key]} says what the wire does (turn {turn}): expected {lost[:5]} "
                    f"in {said[key]!r}"
                )
            assert (token in said["skills"]) == bool(name), (
                f"contract 6: {texts['skills']} lists what is there now (turn {turn}): expected "
                f"{name or 'nothing'} of {token}, found {said['skills']!r}"
            )
            assert (token in said["health"]) == bool(name), (
                f"contract 6: {texts['health']} says what is so now (turn {turn}): expected "
                f"{name or 'nothing'} of {token}, found {said['health']!r}"
            )
