"""Contract 6: text that comes in by the CLI gateway reaches the pipeline and is answered."""

from __future__ import annotations

import pytest

from suites.daemon.daemon import Daemon
from suites.daemon.messages import ask, expect_message, expect_refusal, user_input
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


async def test_empty_text_is_answered(client) -> None:
    """Text that is empty is text: it is answered, and the daemon waits for the next."""
    answer = await ask(client, user_input("", source="CLI"))

    expect_message(answer, client)


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
