"""Contract 3: what is long comes in pieces, who connects at once is greeted, who goes leaves nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from harness_core.base.slowness import patience
from suites.daemon.daemon import HEALTH_S, Daemon, health_on
from suites.daemon.hostile import END_S, HEALTH, TALK, frame
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    ask,
    due,
    expect_health,
    expect_message,
    user_input,
)
from suites.daemon.vitals import settled
from suites.daemon.wire import (
    FrameDecoder,
    Keyword,
    RemoteProtocolError,
    encode_frame,
    lookup,
    open_connection,
    print_form,
    read_form,
)

pytestmark = [pytest.mark.covers("CONTRACT-3-FRAMES")]

#: Characters of texts whose answers are longer than a segment, and than 64 KiB; and of those behind them.
SIZES = (1, 30_000, 2, 16_384, 1_461, 30_000, 3)

#: What one read takes: less than a segment of most networks.
PIECE_BYTES = 1_448

#: Clients that connect at the same moment, and that reset one after the other.
AT_ONCE = 40
RESETS = 200


@pytest.mark.capability("echo")
async def test_long_replies_come_whole_in_small_pieces(daemon: Daemon, token: str) -> None:
    """Replies of more than 64 KiB, read a segment at a time, come whole and in the order of their requests."""
    most = int(daemon.subject.table("bounds").get("frame_characters", SIZES[1] + 200)) - 200
    texts = [
        f"<{number}{token}" + "日" * min(size, most) + f"{number}>"
        for number, size in enumerate(SIZES)
    ]
    forms = [user_input(daemon.echo_of(text)) for text in texts]
    decoder = FrameDecoder()
    found: list[str] = []
    stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
    stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4_096)
    async with stream, trio.open_nursery() as nursery:
        sent = b"".join(encode_frame(print_form(form)) for form in forms)
        nursery.start_soon(stream.send_all, sent)
        with trio.move_on_after(patience(ANSWER_S * 3)):
            while len(found) <= len(texts):
                if (payload := decoder.next_payload()) is not None:
                    found.append(payload)
                elif data := await stream.receive_some(PIECE_BYTES):
                    decoder.feed(data)
                else:
                    break
        nursery.cancel_scope.cancel()
    answers = [str(lookup(read_form(each), "PAYLOAD", "TEXT")) for each in found[1:]]
    shown = [f"{answer[:12]}… ({len(answer)})" for answer in answers]

    assert len(texts) == len(answers), (
        f"contract 3: expected {len(texts)} answers in pieces of {PIECE_BYTES} bytes, found {shown}, "
        f"then {decoder.progress}"
    )
    for number, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        assert text in answer, (
            f"contract 3: answer {number}, of {len(text)} characters, comes whole in its turn: "
            f"expected {text[:12]!r}… ({len(text)}), found {shown}"
        )


@pytest.mark.covers("CONTRACT-1-START")
async def test_who_connects_at_once_is_greeted(daemon: Daemon) -> None:
    """Of clients that connect at the same moment each is greeted in the same words, and answered."""
    count = min(AT_ONCE, int(daemon.subject.table("bounds").get("connections", AT_ONCE)) // 2)
    greetings: list[str] = []
    all_are_there = trio.Event()

    async def one() -> None:
        async with daemon.connect(greeted=False) as connection:
            greeting = await due(connection, "the handshake", seconds=ANSWER_S)
            greetings.append(greeting.payload)
            if len(greetings) == count:
                all_are_there.set()
            await all_are_there.wait()
            expect_health(await health_on(connection))

    with trio.move_on_after(patience(ANSWER_S * 2)):
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(one)

    assert len(greetings) == count, (
        f"contract 1: of {count} clients that connect at once each is greeted, found {len(greetings)}"
    )
    assert len(set(greetings)) == 1, f"contract 1: all are greeted alike, found {set(greetings)}"


@pytest.mark.covers("CONTRACT-3-BOUNDS")
async def test_resets_leave_no_descriptor(daemon: Daemon) -> None:
    """Clients that reset at every stage of a conversation leave no descriptor and no thread."""
    sent = (b"", b"0000", b"000100(:TYPE", frame(HEALTH), frame(TALK.format("ping")) * 3)
    async with daemon.connect() as connection:
        expect_message(await ask(connection, user_input("ping")), connection)
        expect_health(await daemon.health())
        before = daemon.vitals()
    for number in range(RESETS):
        async with open_connection(daemon.port) as passing:
            if number % 2:
                await passing.receive("the handshake", seconds=HEALTH_S)
            await passing.send_while_open(sent[number % len(sent)])
            await passing.abort()
    expect_health(await daemon.health())
    after = await settled(
        daemon.pid,
        descriptors=before.descriptors,
        threads=before.threads,
        seconds=END_S * 2,
    )

    assert before.identity == after.identity, (
        f"contract 3: {RESETS} resets leave it the process it was: expected {before.identity}, found "
        f"{after.identity}"
    )


#: Events that are none, or stop something elsewhere; none of them is for clients to stop it by.
ODD_EVENTS = (
    "(:TYPE :EVENT :PAYLOAD (:SENSOR :NOSE))",
    "(:TYPE :EVENT :PAYLOAD (:SENSOR NIL))",
    '(:TYPE :EVENT :PAYLOAD (:SENSOR "USER-INPUT" :TEXT "ping"))',
    "(:TYPE :EVENT :PAYLOAD (:SENSOR :INTERRUPT))",
    "(:TYPE :EVENT :PAYLOAD (:SENSOR :STOP))",
    "(:TYPE :EVENT :PAYLOAD (:SENSOR :SHUTDOWN))",
    "(:TYPE :EVENT :PAYLOAD (:ACTION :STOP))",
    "(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE))",
    "(:TYPE :EVENT :PAYLOAD NIL)",
    "(:TYPE :EVENT)",
)


NAMES = (
    *("unknown", "nil", "text", "interrupt", "stop", "shutdown"),
    *("action", "greeting", "empty", "nothing"),
)


@pytest.mark.covers("CONTRACT-2-INPUT")
@pytest.mark.parametrize("event", ODD_EVENTS, ids=NAMES)
async def test_no_event_stops_the_pipeline(daemon: Daemon, event: str) -> None:
    """After an event that means nothing, or asks it to stop, texts of others are answered as before."""
    async with daemon.connect() as odd, daemon.connect() as other:
        expect_message(await ask(other, user_input("ping")), other)
        await odd.send_bytes(frame(event))
        # What comes behind it is answered, or the connection ended, once the event has been read.
        with suppress(RemoteProtocolError):
            await ask(odd, HEALTH_CHECK)
        expect_health(await daemon.health())
        try:
            answer = await ask(other, user_input("ping"))
        except AssertionError as error:
            raise AssertionError(
                f"contract 2: {event} stops the pipeline: expected an answer to another's text, "
                f"found {error}"
            ) from error

        assert answer.get("TYPE") != Keyword("LOG"), (
            f"contract 2: the reply to {event} went to another connection, which received "
            f"{answer.payload}"
        )
        expect_message(answer, other)

        assert answer.get("META", "SOURCE") == Keyword("TUI"), (
            f"contract 2: after {event} the answer is to another's text, found {answer.payload}"
        )
