"""Contract 3: framed messages survive the round trip, and malformed ones leave the daemon alive."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.front.skips import not_run
from suites.daemon.daemon import HEALTH_S, Daemon, Settings, health_on
from suites.daemon.hostile import (
    CONNECTIONS,
    END_S,
    FRAME_S,
    HEALTH,
    ROWS,
    TALK,
    End,
    Hostile,
    frame,
)
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    HEARTBEAT,
    ask,
    due,
    expect_health,
    expect_message,
    expect_refusal,
    shell,
    sources_of,
    user_input,
)
from suites.daemon.owed import ERRORS, ended_as_owed, expect_owed
from suites.daemon.unharmed import lived_through, unharmed
from suites.daemon.vitals import settled
from suites.daemon.wire import (
    Keyword,
    RemoteProtocolError,
    Violation,
    open_connection,
)

pytestmark = pytest.mark.covers("CONTRACT-3-BOUNDS")

#: Clients that connect and send nothing; more than the daemon under attack takes at once.
FLOOD = 120

#: Digits before a payload.
PREFIX = 6

#: Long enough for a daemon to read what was sent so far, far below what it gives a frame.
PAUSE_S = 0.05


@pytest.mark.covers("CONTRACT-3-FRAMES")
async def test_round_trip(client) -> None:
    """A framed health check is answered by a framed health response with a status."""
    answer = await ask(client, HEALTH_CHECK, seconds=HEALTH_S)

    expect_health(answer)


@pytest.mark.covers("CONTRACT-3-FRAMES")
async def test_health_is_checked_again(client) -> None:
    """Of many health checks in a row each has an answer of its own."""
    for _ in range(20):
        await client.send(HEALTH_CHECK)
    statuses = [expect_health(await client.receive(seconds=HEALTH_S)) for _ in range(20)]

    assert 20 == len(statuses), (
        f"contract 3: each of twenty health checks has an answer: expected {20!r}, "
        f"found {len(statuses)!r}"
    )


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@pytest.mark.parametrize(
    "junk", [b"ZZZZZZ", b"\xff" * 64, b"000004(:A)"], ids=["letters", "ff", "unclosed"]
)
async def test_dies_of_nothing(start, junk: bytes) -> None:
    """Junk, the first thing that a new daemon ever reads, does not end it."""
    async with start() as daemon, lived_through(daemon):
        async with open_connection(daemon.port) as connection:
            await connection.send_while_open(junk)
            await connection.receive_until_closed(seconds=END_S)

        expect_health(await daemon.health())


@pytest.mark.covers("CONTRACT-3-FRAMES", "CONTRACT-3-MALFORMED", "CONTRACT-3-BOUNDS")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_hostile(attacked: Daemon, row: Hostile) -> None:
    """What a hostile client sends is answered as it is owed, and harms no other client."""
    if row.knob and row.knob not in attacked.subject.table("knobs"):
        not_run("subject", f"{attacked.subject.name} has no knob {row.knob!r}: see test_bounds")
    async with unharmed(attacked), attacked.connect() as connection:
        await connection.send_while_open(row.sent)
        if row.end is End.EOF:
            await connection.send_eof()
        await expect_owed(row, connection, attacked)


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@pytest.mark.parametrize(
    "whole",
    [frame(HEALTH), frame(TALK.format("é😀"))],
    ids=["health-check", "characters-of-many-bytes"],
)
async def test_truncated_at_every_byte(attacked: Daemon, whole: bytes) -> None:
    """A frame cut off anywhere is named as such where it began, and is never taken for a whole one."""
    wrong: list[str] = []

    async def cut(at: int) -> None:
        async with attacked.connect() as connection:
            await connection.send_bytes(whole[:at])
            await connection.send_eof()
            messages = await connection.receive_until_closed(seconds=END_S)
        kinds = [str(message.get("TYPE")) for message in messages]
        if not (ended_as_owed(kinds, attacked) if at else not kinds):
            wrong.append(f"cut after {at} of {len(whole)} bytes: answered with {kinds}")

    async with unharmed(attacked):
        # Some at a time: the daemon under attack takes 48 connections.
        for first in range(0, len(whole), 16):
            async with trio.open_nursery() as nursery:
                for at in range(first, min(first + 16, len(whole))):
                    nursery.start_soon(cut, at)

    assert [] == wrong, f"contract 3: a frame that is cut is an error: {wrong}"


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@pytest.mark.capability("error-frames")
@pytest.mark.parametrize("letter", [" ", "é", "日", "😀"], ids=["1", "2", "3", "4"])
@pytest.mark.parametrize("how", ["no-utf-8", "half-a-character", "ends"])
@pytest.mark.parametrize("before", [0, 3], ids=["first", "fourth"])
async def test_how_far_it_got_is_where_it_broke_off(
    attacked: Daemon, how: str, letter: str, before: int
) -> None:
    """The error of a payload that breaks off says how many characters of it were read, whichever frame it is."""
    end = {"no-utf-8": b"\xff", "half-a-character": "日".encode()[:2] + b"x", "ends": b""}[how]
    for at in (37, 411, 5_003, 20_011):
        text = f'{HEALTH[:-1]} :NOTE "' + letter * at
        whole = frame(text[:at], length=len(text))
        async with attacked.connect() as connection:
            for _ in range(before):
                await connection.send_bytes(frame(HEALTH))
                await due(connection, "health", seconds=ANSWER_S)
            # All of it in one segment, and once in two.
            for part in (whole + end,) if at < 5_000 else (whole[:4_096], whole[4_096:] + end):
                await connection.send_bytes(part)
            await connection.send_eof()
            messages = await connection.receive_until_closed(seconds=END_S)

        assert messages, (
            f"contract 3: a payload that breaks off after {at} characters: expected an error LOG, "
            "found the end alone"
        )
        text = expect_refusal(messages[-1], connection)

        assert says_how_far(text, at), (
            f"contract 3: a payload that breaks off after {at} characters: expected the error to "
            f"say so, found {text!r}"
        )


def says_how_far(text: str, *places: int) -> bool:
    """Whether an error says that reading got to one of some places.

    Where counting begins is the daemon's own affair: at 0 or 1, with the prefix or without.
    """
    numbers = {int(number) for number in re.findall(r"\d+", text)}
    return any(
        at + off + more in numbers for at in places for off in (0, PREFIX) for more in (-1, 0, 1)
    )


#: What no reader reads: before it, the wrong piece, and behind it.
WRONG = {
    "closes-nothing": ('")', ")", " :MORE (1 2 3)"),
    "evaluates": ('" :X ', "#.", "(+ 1 2) :MORE (1 2 3))"),
    "dot-stands-first": ('" :X (', ".", " 1) :MORE (1 2 3))"),
}


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@pytest.mark.capability("error-frames")
@pytest.mark.parametrize("wrong", WRONG)
async def test_how_far_it_got_is_where_it_went_wrong(attacked: Daemon, wrong: str) -> None:
    """The error of a payload that came whole and is no form says at which character it goes wrong."""
    before, piece, behind = WRONG[wrong]
    for number, at in enumerate((79, 411, 5_003, 20_011)):
        head = f'{HEALTH[:-1]} :NOTE "'
        letters = " é日😀"[number] * (at - len(head) - len(before))
        payload = f"{head}{letters}{before}{piece}{behind}"
        async with attacked.connect() as connection:
            await connection.send_while_open(frame(payload))
            await connection.send_eof()
            messages = await connection.receive_until_closed(seconds=END_S)

        assert messages, (
            f"contract 3: {piece} at character {at} of a payload: expected an error LOG, found the end alone"
        )
        text = expect_refusal(messages[-1], connection)

        # A reader may have looked at the piece, or be in front of it.
        assert says_how_far(text, at, at + len(piece)), (
            f"contract 3: {piece} at character {at} of {len(payload)}: expected the error to say that "
            f"reading got there, found {text!r}"
        )


@pytest.mark.covers("CONTRACT-3-FRAMES")
async def test_one_byte_at_a_time(daemon: Daemon) -> None:
    """A frame that arrives byte by byte is the same frame.

    The daemon of the run gives a frame longer than a busy machine takes to send one so.
    """
    async with unharmed(daemon), daemon.connect() as connection:
        for byte in frame(TALK.format("é😀")) + frame(HEALTH):
            await connection.send_bytes(bytes([byte]))
            await trio.lowlevel.checkpoint()
        kinds = [str((await connection.receive(seconds=HEALTH_S)).get("TYPE")) for _ in range(2)]

    assert [":REQUEST", ":HEALTH-RESPONSE"] == kinds, (
        "contract 3: frames that come byte by byte are answered: expected "
        + repr([":REQUEST", ":HEALTH-RESPONSE"])
        + ", found "
        + repr(kinds)
    )


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@pytest.mark.parametrize("blank", [b" ", b"\n", b"\t "], ids=["blank", "newline", "tab"])
async def test_blanks_within_a_length_are_malformed(daemon: Daemon, blank: bytes) -> None:
    """The length is six digits in a row, however they arrive; blanks stand between frames alone."""
    whole = frame(HEALTH)
    wrong: list[str] = []

    async def split(at: int) -> None:
        async with daemon.connect() as connection:
            await connection.send_bytes(whole[:at])
            await trio.sleep(PAUSE_S)  # noqa: TID251 # lint: allow sleep: a sender that pauses
            await connection.send_while_open(blank + whole[at:])
            try:
                messages = await connection.receive_until_closed(seconds=END_S)
                kinds = [str(message.get("TYPE")) for message in messages]
            except RemoteProtocolError as error:
                kinds = [str(error)]
        if not ended_as_owed(kinds, daemon):
            wrong.append(f"{whole[:at]!r}, a pause, {blank + whole[at:PREFIX]!r}: found {kinds}")

    async with unharmed(daemon), trio.open_nursery() as nursery:
        for at in range(1, PREFIX):
            nursery.start_soon(split, at)

    assert not wrong, f"contract 3: expected an error and the end of each connection: {wrong}"


async def test_half_a_frame_holds_up_no_other_client(daemon: Daemon) -> None:
    """While one client is in the middle of a frame, others are greeted and answered.

    Shown by the half frame itself, which is completed and answered afterwards: a daemon that held up
    the others would have ended it first. The daemon of the run gives a frame longer than it takes to
    answer; the one under attack would not.
    """
    whole = frame(HEALTH)
    async with daemon.connect() as half:
        await half.send_bytes(whole[:13])
        try:
            async with daemon.connect() as other:
                expect_health(await health_on(other))
            await half.send_bytes(whole[13:])
            answer = await half.receive("the answer to the completed frame", seconds=HEALTH_S)
        except RemoteProtocolError as error:
            raise AssertionError(
                f"contract 3: half a frame of one client holds up another: {error}"
            ) from error

        assert answer.get("TYPE") == Keyword("HEALTH-RESPONSE"), (
            f"contract 3: half a frame of one client holds up another until it is ended: "
            f"{answer.payload}\n{half.transcript}"
        )


@pytest.mark.knob("frame_s")
async def test_a_slow_sender_is_ended(attacked: Daemon) -> None:
    """A client that keeps a frame open by dribbling bytes is sent an error and ended, however it dribbles."""
    async with unharmed(attacked), attacked.connect() as connection:
        await connection.send_bytes(b"000FFF(")
        until_s = trio.current_time() + patience(FRAME_S + END_S)
        ended = False
        while not ended and trio.current_time() < until_s:
            try:
                await connection.send_bytes(b" ")
                message = await connection.receive("the end", seconds=0.05)
            except RemoteProtocolError as error:
                ended = error.violation is Violation.CLOSED
            else:
                expect_refusal(message, connection)

    assert ended, f"a frame may take {FRAME_S:g} s and was still read after {FRAME_S + END_S:g} s"


@pytest.mark.knob("frame_s")
async def test_each_frame_has_its_own_time(start) -> None:
    """A frame that begins in the bytes that end another has its own time, from its own first byte.

    A daemon that waits for a busy machine may read late: what is cut off is tried with more time.
    """
    whole = frame(HEALTH)
    cut_off = []
    for frame_s in (1.0, 4.0, 16.0):
        async with start(Settings(knobs={"frame_s": frame_s})) as daemon, daemon.connect() as slow:
            try:
                for piece in (whole[:9], whole[9:] + whole[:9]):
                    await slow.send_bytes(piece)
                    await trio.sleep(frame_s * 0.7)  # noqa: TID251 # lint: allow sleep: a slow sender
                await slow.send_bytes(whole[9:])
                answers = [
                    await slow.receive(f"health {number}", seconds=HEALTH_S) for number in (1, 2)
                ]
            except RemoteProtocolError as error:
                cut_off.append(f"{frame_s:g} s: {error}")
                continue
            refused = [each.payload for each in answers if each.get("TYPE") == Keyword("LOG")]
            if not refused:
                for answer in answers:
                    expect_health(answer)
                return
            cut_off.append(f"{frame_s:g} s: {refused[0]}")
    raise AssertionError(
        "contract 3: expected two frames that each take 0.7 of their time to be answered, found "
        + "\n".join(cut_off)
    )


@pytest.mark.knob("idle_s")
async def test_an_idle_client_is_ended(start) -> None:
    """A client that sends nothing at all does not hold its place for ever."""
    async with start(Settings(knobs={"idle_s": 0.5})) as daemon, daemon.connect() as connection:
        await connection.receive_until_closed(seconds=END_S)

        expect_health(await daemon.health())


#: What a client sends that goes on talking, and whether it is answered.
TALKS = {
    "heartbeats": (HEARTBEAT, False),
    "health checks": (HEALTH_CHECK, True),
    "texts": (user_input("ping"), True),
}

#: Messages of a client that goes on talking, a third of the idle time apart.
TURNS = 6


@pytest.mark.knob("idle_s")
async def test_who_goes_on_talking_is_not_idle(start) -> None:
    """A client has the idle time anew after each of its frames, whatever they are and for how long.

    A machine that does much else may make a client late: what is closed is tried with more time.
    """
    closed: list[str] = []

    async def talk(daemon: Daemon, name: str, idle_s: float) -> None:
        form, answered = TALKS[name]
        async with daemon.connect() as connection:
            try:
                for _ in range(TURNS):
                    await trio.sleep(idle_s / 3)  # noqa: TID251 # lint: allow sleep: a client that pauses
                    await connection.send(form)
                    if answered:
                        await due(connection, "its answer", seconds=ANSWER_S)
                expect_health(await health_on(connection))
            except RemoteProtocolError as error:
                closed.append(f"{name}, {TURNS} of them, one each {idle_s / 3:.1f} s: {error}")

    for idle_s in (1.0, 4.0, 12.0):
        closed = []
        opening = start(Settings(knobs={"idle_s": idle_s}))
        async with opening as daemon, trio.open_nursery() as nursery:
            for name in TALKS:
                nursery.start_soon(talk, daemon, name, idle_s)
        if not closed:
            return

    raise AssertionError(
        "contract 3: a client that goes on talking is not idle: expected each to be answered, found "
        + "\n".join(closed)
    )


@pytest.mark.covers("CONTRACT-2-INPUT", "CONTRACT-3-BOUNDS")
@pytest.mark.knob("idle_s")
@pytest.mark.capability("shell-reply", "shell-text")
async def test_who_waits_for_an_answer_is_not_idle(start, token: str) -> None:
    """A client that is silent since it waits for its answers is read and answered to their end."""
    idle_s = 1.0
    async with start(Settings(knobs={"idle_s": idle_s})) as daemon:
        command = f"sleep {idle_s * 2.5:g}; echo {token}"
        typed = daemon.subject.table("texts")["shell"].replace("{command}", command)
        for forms in ([shell(command)], [user_input(typed)], [shell(command), user_input(typed)]):
            async with daemon.connect() as connection:
                # What is asked last is asked at once: between two answers a busy machine may be slow.
                for form in (*forms, HEALTH_CHECK):
                    await connection.send(form)
                for _ in forms:
                    answer = await due(connection, "its answer", seconds=ANSWER_S)

                    assert token in answer.payload, (
                        f"contract 3: a client that waits for its answer is not idle: expected the "
                        f"answer, which takes longer than the idle time of {idle_s:g} s, found "
                        f"{answer.payload}"
                    )
                health = await connection.receive("the answer to the last", seconds=HEALTH_S)
                expect_health(health)
                # From then on it is idle, and the end comes as to any such client.
                await connection.receive_until_closed(seconds=END_S)


@pytest.mark.knob("idle_s")
async def test_blanks_are_no_request(start) -> None:
    """Nor does one that sends nothing but blanks between frames: it says nothing, and is ended."""
    async with start(Settings(knobs={"idle_s": 0.5})) as daemon, daemon.connect() as connection:
        until_s = trio.current_time() + patience(END_S)
        ended = False
        while not ended and trio.current_time() < until_s:
            try:
                await connection.send_bytes(b" \n")
                await connection.receive("the end", seconds=0.05)
            except RemoteProtocolError as error:
                ended = error.violation is Violation.CLOSED

        expect_health(await daemon.health())

    assert ended, (
        f"contract 3: waits are bounded: expected the end of a client that sends blanks, found none in {END_S:g} s"
    )


@pytest.mark.knob("write_s")
@pytest.mark.capability("echo")
async def test_a_client_that_takes_no_answer_is_ended(start) -> None:
    """A client that asks and never reads does not hold its place for ever, nor anybody up."""
    async with start(Settings(knobs={"write_s": 0.5})) as daemon:
        await daemon.health()
        before = daemon.vitals().descriptors
        stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
        async with stream, trio.open_nursery() as nursery:
            await stream.receive_some()  # its greeting: it has its place
            nursery.start_soon(ask_for_ever, stream, TALK.format(daemon.echo_of("much" * 10_000)))
            await settled(daemon.pid, descriptors=before, seconds=END_S)
            expect_health(await daemon.health())
            nursery.cancel_scope.cancel()


#: What waits behind a slow request in the test below: frames of so many characters, so many times.
WAITING = 2
BEHIND = 160
LONG = 250_000

#: A sender that gets no byte further for so long is held back, or its machine is busy: both end the wait.
HELD_S = 1.0


@pytest.mark.knob("waiting")
@pytest.mark.knob("frame_characters")
@pytest.mark.capability("shell-reply")
async def test_what_waits_is_bounded(start) -> None:
    """What one client sends behind a slow request is read no further than so many requests, and kept in order.

    The sender is held back, or all of it is in the daemon's memory: the most that it ever had is told.
    """
    padding = "x" * LONG
    sent = frame(f'(:TYPE :EVENT :PAYLOAD (:SENSOR :HEARTBEAT :PADDING "{padding}"))')
    settings = Settings(knobs={"waiting": WAITING, "frame_characters": LONG * 2})
    async with start(settings) as daemon:
        async with daemon.connect() as connection:
            for _ in range(4):
                await connection.send_bytes(sent)
            expect_health(await health_on(connection))
        before = daemon.vitals()
        async with daemon.connect() as slow, daemon.connect() as other:
            waits = "until [ -e go-on ]; do sleep 0.05; done; echo went on"
            await slow.send(shell(waits, timeout=50))
            frames = 0

            async def send_behind() -> None:
                nonlocal frames
                for _ in range(BEHIND):
                    await slow.send_bytes(sent)
                    frames += 1
                await slow.send(HEALTH_CHECK)

            async def held_back() -> bool:
                was = frames
                await trio.sleep(HELD_S)  # noqa: TID251 # lint: allow sleep: a sender that gets no further
                return was in {frames, BEHIND}

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_behind)
                await until(held_back)
                # Others are answered meanwhile.
                expect_health(await health_on(other))
                most = daemon.vitals().most_memory_kib
                (daemon.root / "go-on").touch()
                outcome = await due(slow, "the end of what was slow", seconds=ANSWER_S)
                health = await due(slow, "the answer to the last", seconds=ANSWER_S * 2)

        assert outcome.get("PAYLOAD", "STDOUT") == "went on\n", (
            f"contract 3: answers come in the order of requests: expected that of what was slow, found "
            f"{outcome.payload[:200]}"
        )
        expect_health(health)
        grown = most - before.most_memory_kib

        assert grown < BEHIND * LONG // 1024 // 2, (
            f"contract 3: {WAITING} requests of a client may wait: expected it to be read no further, "
            f"found {grown} KiB more in memory after {frames} frames of {LONG // 1024} KiB behind a slow "
            "request"
        )


async def ask_for_ever(stream: trio.SocketStream, message: str) -> None:
    """Send the same request until the other side takes no more."""
    sent = frame(message)
    with suppress(trio.BrokenResourceError):
        while True:
            await stream.send_all(sent)


async def test_reset_in_the_middle(attacked: Daemon) -> None:
    """A connection reset in the middle of a frame, or of its answer, disturbs no other client."""
    async with unharmed(attacked):
        for sent in (b"000015(:TYPE", frame(TALK.format("ping")), frame(HEALTH) * 20):
            async with open_connection(attacked.port) as connection:
                await connection.send_bytes(sent)
                await connection.abort()

    assert attacked.vitals().memory_kib > 0, "the daemon is gone"


async def test_a_flood_of_connections(attacked: Daemon) -> None:
    """More silent clients than there are places take no place of a client that has sent a frame."""
    async with unharmed(attacked):
        before = attacked.vitals().descriptors
        streams = [await trio.open_tcp_stream("127.0.0.1", attacked.port) for _ in range(FLOOD)]
        try:
            assert attacked.vitals().descriptors < 10_000, (
                f"contract 3: connections are bounded, found {attacked.vitals().descriptors} descriptors"
            )
        finally:
            for stream in streams:
                await stream.aclose()
        # Their places are free when the daemon has seen that they are gone.
        await settled(attacked.pid, descriptors=before, seconds=END_S)


@pytest.mark.knob("connections")
async def test_connections_are_bounded(attacked: Daemon) -> None:
    """However many connect, the daemon holds no more connections than it is configured to."""
    before = attacked.vitals().descriptors
    received: list[bytes] = []

    async def first_words(stream: trio.SocketStream) -> None:
        received.append(await stream.receive_some(65_536))

    streams = [await trio.open_tcp_stream("127.0.0.1", attacked.port) for _ in range(FLOOD)]
    try:
        with trio.move_on_after(patience(END_S)):
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(first_words, stream)
        # Those sent away are given a moment to read why.
        await settled(attacked.pid, descriptors=before + CONNECTIONS + 8, seconds=END_S)
    finally:
        for stream in streams:
            await stream.aclose()

    assert FLOOD == sum(map(bool, received)) or ERRORS not in attacked.subject.capabilities, (
        f"contract 3: each of {FLOOD} clients is greeted or sent a reason, found "
        f"{sum(map(bool, received))}"
    )


async def test_a_client_that_does_not_read(attacked: Daemon) -> None:
    """A client that asks on and on and reads no answer fills no memory and stops no other client."""
    async with unharmed(attacked):
        stream = await trio.open_tcp_stream("127.0.0.1", attacked.port)
        with trio.move_on_after(1.0):
            while True:
                await stream.send_all(frame(HEALTH) * 500)
        expect_health(await attacked.health())
        await stream.aclose()


@pytest.mark.covers("CONTRACT-3-MALFORMED")
async def test_good_clients_among_hostile_ones(attacked: Daemon) -> None:
    """Twelve good clients get their own answers, in order, while hostile ones come and go."""
    done: list[int] = []

    sources = sources_of(attacked.subject)

    async def good(number: int) -> None:
        async with attacked.connect() as connection:
            for turn in range(5):
                source = sources[(number + turn) % len(sources)]
                answer = await ask(connection, user_input("ping", source=source))
                expect_message(answer, connection)

                assert answer.get("META", "SOURCE") == Keyword(source), (
                    "contract 3: a good client gets its own answers: expected "
                    + repr(Keyword(source))
                    + f", found {answer.payload}"
                )
        done.append(number)

    async def hostile() -> None:
        for row in ROWS[::4]:
            async with open_connection(attacked.port) as connection:
                await connection.send_while_open(row.sent)

    async with unharmed(attacked), trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(good, number)
        for _ in range(3):
            nursery.start_soon(hostile)

    assert list(range(12)) == sorted(done), (
        f"contract 3: each good client got all of its answers: expected {list(range(12))!r}, "
        f"found {sorted(done)!r}"
    )


#: Bytes that are likely to reach deep into a reader: pieces of real frames, broken and joined.
_PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([row.sent[:4000] for row in ROWS]),
    st.sampled_from(
        [frame(HEALTH), b"0", b"(", b")", b'"', b"\\", b"|", b"'", b".", b":", b"NIL "]
    ),
    st.text(max_size=20).map(str.encode),
    st.integers(min_value=0, max_value=200).map(lambda number: f"{number:06X}".encode()),
    st.text(alphabet="():.'\"\\|;a1 #\n", max_size=60).map(frame),
)


@pytest.mark.covers("CONTRACT-3-MALFORMED")
@settings(
    max_examples=120,
    deadline=None,
    database=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(pieces=st.lists(_PIECES, min_size=1, max_size=6))
async def test_fuzz(attacked: Daemon, pieces: list[bytes]) -> None:
    """Whatever bytes come, the connection ends in whole frames and the daemon is well."""
    before = attacked.vitals().identity
    async with attacked.connect() as connection:
        for piece in pieces:
            # It may have sent its LOG and closed before all of it was sent.
            await connection.send_while_open(piece)
        await connection.send_eof()
        messages = await connection.receive_until_closed(seconds=END_S)
    expect_health(await attacked.health())

    assert before == attacked.vitals().identity, (
        f"contract 3: the daemon is the process it was: expected {before!r}, "
        f"found {attacked.vitals().identity!r}"
    )
    assert all(message.get("TYPE") is not None for message in messages), (
        f"contract 3: what is answered to junk are messages with a type\n{connection.transcript}"
    )
