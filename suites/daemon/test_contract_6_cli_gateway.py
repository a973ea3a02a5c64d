"""Contract 6: text that comes in by the CLI gateway reaches the pipeline and is answered."""

from __future__ import annotations

import pytest

from suites.daemon.daemon import Daemon
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    ask,
    expect_health,
    expect_message,
    expect_refusal,
    user_input,
)
from suites.daemon.wire import Keyword, plist

pytestmark = pytest.mark.covers("CONTRACT-6-CLI")


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
        answer = await client.receive(f"an answer to {text[:9]!r}", seconds=ANSWER_S)
        if answer.get("TYPE") == Keyword("HEALTH-RESPONSE"):
            unanswered.append(text[:9])
            continue
        expect_message(answer, client)
        expect_health(await client.receive("health behind it", seconds=ANSWER_S))

    assert not unanswered, (
        f"contract 6: text from {source} is answered, blank as it may be: expected an answer to each of "
        f"{len(SAYING_NOTHING)}, found none to {unanswered}"
    )


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
