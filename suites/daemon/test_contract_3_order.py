"""Contract 3: what is long is no later than what is short behind it; no reply is mixed with another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from suites.daemon.daemon import Daemon, Settings
from suites.daemon.messages import due, expect_message, user_input
from suites.daemon.settings import turned
from suites.daemon.wire import Connection, Keyword, encode_frame, plist, print_form

pytestmark = [
    pytest.mark.covers("CONTRACT-3-FRAMES", "CONTRACT-2-INPUT"),
    pytest.mark.capability("echo", "error-frames"),
    pytest.mark.knob("frame_characters"),
]

#: Characters of a frame that the daemon reads.
ROOM = 1_200_000

#: Characters of texts that follow each other at once: over a segment, a buffer, 64 KiB, and next to nothing.
SIZES = (1, 70_000, 1, 2, 300_000, 1, 20_000, 3, 1_000_000, 1, 1, 140_000, 65_536, 1)

#: What all of them may take: a mebibyte is read in seconds where nothing else runs.
LONG_S = 60.0


@pytest.fixture(scope="module")
def wide(share, subject) -> Iterator[Daemon]:
    """A daemon that reads frames of more than a mebibyte."""
    with share("wide", Settings(knobs=turned(subject, {"frame_characters": ROOM}))) as daemon:
        yield daemon


async def test_what_is_short_does_not_overtake_what_is_long(wide: Daemon, token: str) -> None:
    """Requests sent at once, short behind long, are answered in their order, on each of two connections."""
    letters = "x日"
    texts = [
        [f"<{token}{letter}{number}:{letter * size}>" for number, size in enumerate(SIZES)]
        for letter in letters
    ]

    async def one(asked: list[str], letter: str) -> None:
        sent = b""
        for number, text in enumerate(asked):
            sent += encode_frame(print_form(user_input(wide.echo_of(text))))
            nose = plist(sensor=Keyword(f"NOSE-{number}"))
            sent += encode_frame(print_form(plist(type=Keyword("EVENT"), payload=nose)))
        async with (
            wide.connect(max_characters=4 * ROOM) as connection,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(connection.send_bytes, sent)
            for number, text in enumerate(asked):
                await expect_in_turn(connection, text, f"{number} of {letter}")

    async with trio.open_nursery() as both:
        for asked, letter in zip(texts, letters, strict=True):
            both.start_soon(one, asked, letter)


async def expect_in_turn(connection: Connection, text: str, which: str) -> None:
    """The answer to a text, then the error that the message behind it is owed."""
    answer = await due(connection, f"answer {which}", seconds=LONG_S)

    assert answer.get("TYPE") != Keyword("LOG"), (
        f"contract 3: a text of {len(text)} characters ({which}) is answered before what is behind it, "
        f"found {answer.payload[:200]}"
    )
    found = expect_message(answer, connection)

    assert text in found, (
        f"contract 3: answer {which} is to a text of {len(text)} characters, {text[:20]!r}…: found "
        f"{len(found)} characters, {found[:40]!r}…"
    )
    error = await due(connection, f"the error behind answer {which}", seconds=LONG_S)

    assert error.get("TYPE") == Keyword("LOG"), (
        f"contract 3: behind answer {which} comes the error to what was sent behind it, found "
        f"{error.payload[:200]}"
    )
