"""Contract 3: whatever is framed comes back as it was meant, in any size, spelling and cutting."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from suites.daemon.daemon import HEALTH_S, Daemon, Settings, health_on
from suites.daemon.generated import generated
from suites.daemon.growth import expect_level
from suites.daemon.hostile import (
    CONNECTIONS,
    DEPTH,
    END_S,
    FRAME_CHARACTERS,
    HEALTH,
    ROWS,
    TALK,
    Owed,
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
    request,
    shell,
    sources_of,
    user_input,
)
from suites.daemon.owed import ERRORS, ended_as_owed, expect_end
from suites.daemon.settings import turned
from suites.daemon.spelling import TEXTS, canonical, forms, spelled
from suites.daemon.vitals import settled
from suites.daemon.wire import (
    Connection,
    Form,
    Keyword,
    RemoteProtocolError,
    encode_frame,
    lookup,
    open_connection,
    plist,
    print_form,
)

pytestmark = pytest.mark.covers("CONTRACT-3-FRAMES")

#: Requests sent before the first answer is read: more than any queue of a connection holds.
PIPELINED = 120

#: Characters of three alphabets, one to four bytes each.
WIDE = "aé日😀"

#: Characters that a daemon reads which is asked to read much.
ROOM = 1_200_000

#: A mebibyte is read, answered and parsed in half a second.
LONG_S = 30.0

quick = generated(40)


async def echoed(connection: Connection, meta: str) -> Form | None:
    """The META of the answer to user input that was sent with this META."""
    text = f'(:META {meta} :TYPE :EVENT :PAYLOAD (:SENSOR :USER-INPUT :TEXT "ping"))'
    await connection.send_bytes(frame(text))
    answer = await due(connection, "an answer to user input", seconds=ANSWER_S)
    expect_message(answer, connection)
    return answer.get("META")


@pytest.mark.capability("whole-meta")
@quick
@given(meant=st.lists(forms(), min_size=1, max_size=6), seed=st.integers(0, 2**32))
async def test_what_is_sent_is_what_was_meant(daemon: Daemon, meant: list[Form], seed: int) -> None:
    """META of every kind of form comes back equal: numbers, names, texts and lists, however spelled."""
    dice = random.Random(seed)
    whole: list[Form] = [Keyword("SOURCE"), Keyword("CLI")]
    pieces = [":source :cli"]
    for number, form in enumerate(meant):
        whole += [Keyword(f"X{number}"), form]
        pieces.append(f":x{number} {spelled(form, dice)}")
    async with daemon.connect() as connection:
        meta = await echoed(connection, f"({' '.join(pieces)})")

        assert meta is not None, f"contract 3: an answer without META\n{connection.transcript}"
        expected, actual = canonical(tuple(whole)), canonical(meta)

        assert expected == actual, (
            f"contract 3: a form is another after the round trip: expected {expected}, "
            f"found {actual}\n{connection.transcript}"
        )


@pytest.mark.capability("echo", "shell-reply", "error-frames")
@pytest.mark.parametrize(
    "wrong", ["00000G(:TYPE", "000003)))", "000005(:A"], ids=["digit", "form", "end"]
)
async def test_what_came_before_a_broken_frame_is_answered(
    daemon: Daemon, token: str, wrong: str
) -> None:
    """Requests that arrived whole are answered in their order, also when what follows is malformed."""
    forms = [
        shell(f"sleep 0.3; echo slow-{token}"),
        user_input(daemon.echo_of(f"first-{token}")),
        user_input(daemon.echo_of(f"second-{token}")),
    ]
    sent = b"".join(encode_frame(print_form(form)) for form in forms)
    async with daemon.connect() as connection:
        await connection.send_bytes(sent + wrong.encode() + b" " * 8)
        for expected in ("slow", "first", "second"):
            try:
                answer = await due(connection, f"the answer {expected}", seconds=ANSWER_S)
            except RemoteProtocolError as error:
                raise AssertionError(
                    f"contract 3: expected {expected}-{token} before the end, found {error}"
                ) from error

            assert f"{expected}-{token}" in answer.payload, (
                f"contract 3: expected {expected}-{token} in its turn, found {answer.payload}\n"
                f"{connection.transcript}"
            )
        expect_refusal(await due(connection, "an error", seconds=ANSWER_S), connection)


@pytest.mark.capability("whole-meta")
async def test_a_backslash_means_the_next_character(daemon: Daemon) -> None:
    """In a string no letter after a backslash means anything but itself: not a newline, not a tab."""
    meant = "".join(map(chr, range(33, 127))) + "é日😀 \n"
    escaped = "".join(f"\\{character}" for character in meant)
    async with daemon.connect() as connection:
        meta = await echoed(connection, f'(:source :cli :x "{escaped}")')
        found = lookup(meta, "X") if meta is not None else None

        assert meant == found, (
            f"contract 3: a string is another after the round trip: expected {meant!r}, "
            f"found {found!r}\n{connection.transcript}"
        )


@pytest.mark.capability("echo")
@quick
@given(texts=st.lists(TEXTS, min_size=1, max_size=8))
async def test_texts_come_back_in_their_order(daemon: Daemon, texts: list[str]) -> None:
    """Texts of any script, sent at once, come back each in its own answer and in their order."""
    # What a daemon trims at the ends of a text is its own affair.
    marked = [f"<{number}{text}{number}>" for number, text in enumerate(texts)]
    async with daemon.connect() as connection:
        forms = [user_input(daemon.echo_of(text)) for text in marked]
        await connection.send_bytes(b"".join(encode_frame(print_form(form)) for form in forms))
        for number, text in enumerate(marked):
            answer = await due(connection, f"answer {number}", seconds=ANSWER_S)
            found = expect_message(answer, connection)

            assert text in found, (
                f"contract 3: answer {number} of {len(marked)} should hold {text!r}, it is "
                f"{found!r}\n{connection.transcript}"
            )


async def test_split_at_every_byte(daemon: Daemon) -> None:
    """Two frames that arrive in two segments, cut at any byte, are the same two frames.

    A health check goes before the first segment, in one with it: its answer shows that the daemon
    has read that segment before the other is sent.
    """
    whole = frame(TALK.format(WIDE).replace("(:SOURCE :TUI)", "(:SOURCE :TUI :Ж 1)"))
    whole += b" \r\n" + frame(HEALTH)
    async with daemon.connect() as connection:
        for cut in range(1, len(whole)):
            where = f"when the segment ends after byte {cut} of {len(whole)}"
            await connection.send_bytes(frame(HEALTH) + whole[:cut])
            kinds = [await kind(connection, f"the first answer {where}")]
            await connection.send_bytes(whole[cut:])
            kinds += [await kind(connection, f"an answer {where}") for _ in range(2)]
            expected = [":HEALTH-RESPONSE", ":REQUEST", ":HEALTH-RESPONSE"]

            assert expected == kinds, (
                f"contract 3: {where}, expected {expected}, found {kinds}\n{connection.transcript}"
            )


async def kind(connection: Connection, what: str) -> str:
    """The type of the next message."""
    return str((await connection.receive(what, seconds=HEALTH_S)).get("TYPE"))


def padded(payload: str, characters: int) -> str:
    """A message made so many characters long by space at its end, which means nothing."""
    return payload[:-1] + " " * (characters - len(payload)) + ")"


#: Lengths in which each digit from a to f stands in the last place, and in the one before.
LENGTHS = tuple(0x10 + low for low in range(10, 16)) + tuple(
    0x11 * digit for digit in range(10, 16)
)


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title], ids=lambda case: case.__name__)
async def test_a_length_may_be_in_either_case(daemon: Daemon, case: Callable[[str], str]) -> None:
    """Each of the digits from a to f means the same in lower case and in upper case."""
    async with daemon.connect() as connection:
        for length in (*LENGTHS, 0xABC, 0xDEF):
            prefix = case(f"{length:06x}")
            await connection.send_bytes(f"{prefix}{padded(HEALTH, length)}".encode())
            answer = await due(connection, f"health, asked in {prefix}", seconds=HEALTH_S)

            assert answer.get("TYPE") == Keyword("HEALTH-RESPONSE"), (
                f"contract 3: the digits of a length are in either case: expected health, asked in a "
                f"frame of {prefix} characters, found {answer.payload}"
            )


@pytest.mark.covers("CONTRACT-3-FRAMES", "CONTRACT-3-BOUNDS")
@pytest.mark.knob("frame_characters")
async def test_the_longest_payload_is_exactly_that(attacked: Daemon) -> None:
    """A payload as long as is configured is read and answered; one character more is refused.

    What counts are characters: a payload of so many characters and three times as many bytes is read.
    """
    async with attacked.connect() as connection:
        for characters in (255, 256, 4095, 4096, FRAME_CHARACTERS - 1, FRAME_CHARACTERS):
            await connection.send_bytes(frame(padded(HEALTH, characters)))
            expect_health(
                await connection.receive(f"health, asked in {characters}", seconds=HEALTH_S)
            )
        wide = HEALTH[:-1] + ' :X "' + "日" * (FRAME_CHARACTERS - len(HEALTH) - 6) + '")'
        await connection.send_bytes(frame(wide))
        expect_health(await connection.receive(f"health, asked in {len(wide)}", seconds=HEALTH_S))
        await connection.send_while_open(frame(padded(HEALTH, FRAME_CHARACTERS + 1)))
        words = ("large", "limit", "too long", "at most", "more than")
        await expect_end(connection, attacked, *words, what="a frame of one character too many")


@pytest.mark.covers("CONTRACT-3-FRAMES", "CONTRACT-3-BOUNDS")
@pytest.mark.knob("depth")
async def test_the_deepest_nesting_is_exactly_that(attacked: Daemon) -> None:
    """As many lists as configured may be open at once, the message itself among them; no more.

    In a frame of any length.
    """
    lengths = (2_000, 17_000, FRAME_CHARACTERS)
    for characters in (0, *lengths) if turned(attacked.subject, {"frame_characters": 1}) else (0,):
        async with attacked.connect() as connection:
            for inner in (DEPTH - 2, DEPTH - 1):
                await connection.send_bytes(frame(padded(nested(inner), characters)))
                what = f"health, asked with {inner + 1} lists open"
                expect_health(await connection.receive(what, seconds=HEALTH_S))
            await connection.send_while_open(frame(padded(nested(DEPTH), characters)))
            words = ("nest", "deep", "depth")
            what = f"a frame of {max(characters, len(nested(DEPTH)))} characters with one list too many"
            await expect_end(connection, attacked, *words, what=what)


def nested(inner: int) -> str:
    """A health check that holds so many lists within each other."""
    return HEALTH[:-1] + " :X " + "(" * inner + "1" + ")" * inner + ")"


@pytest.fixture(scope="session")
def roomy(share, subject) -> Iterator[Daemon]:
    """A daemon that reads frames of more than a mebibyte."""
    knobs = turned(subject, {"frame_characters": ROOM, "depth": 200})
    with share("roomy", Settings(knobs=knobs)) as daemon:
        yield daemon


@pytest.mark.knob("frame_characters")
@pytest.mark.capability("echo")
@pytest.mark.parametrize(
    ("letter", "characters"),
    [("x", 65_535), ("é", 65_536), ("日", 65_537), ("😀", 262_145), ("x", 1_048_577)],
    ids=[
        "64-KiB-less-one",
        "64-Ki-of-two-bytes",
        "64-Ki-and-one",
        "1-MiB-of-four",
        "1-MiB-and-one",
    ],
)
async def test_long_texts_come_back_whole(roomy: Daemon, letter: str, characters: int) -> None:
    """A text of any size comes back to its last character, and so does the next one."""
    text = "<" + letter * (characters - 2) + ">"
    async with roomy.connect(max_characters=4 * ROOM) as connection:
        for asked in (text, "and the next"):
            answer = await ask(connection, user_input(roomy.echo_of(asked)), seconds=LONG_S)
            found = expect_message(answer, connection)

            assert asked in found, (
                f"contract 3: expected all {len(asked)} characters back, found {len(found)}: "
                f"{found[:40]!r} … {found[-40:]!r}"
            )


@pytest.mark.covers("CONTRACT-2-INPUT", "CONTRACT-3-FRAMES")
@pytest.mark.capability("echo")
@pytest.mark.parametrize("eof", [False, True], ids=["open", "half-closed"])
async def test_more_requests_than_any_queue_holds(daemon: Daemon, *, eof: bool) -> None:
    """Requests sent before any answer is read are answered each, whole and in their order.

    Among them are such that mean nothing, which are answered by an error in their place. A client
    that has ended its side gets all of its answers before the end.
    """
    expected: list[str] = []
    sent = b""
    sources = sources_of(daemon.subject)
    for number in range(PIPELINED):
        if number % 7 == 3 and ERRORS in daemon.subject.capabilities:
            form = plist(type=Keyword("EVENT"), payload=plist(sensor=Keyword(f"NOSE-{number}")))
            expected.append(":LOG")
        else:
            # Each of another length, up to more than a buffer.
            text = f"<{number}:" + WIDE * (number**2 % 1500) + f":{number}>"
            form = user_input(daemon.echo_of(text), source=sources[number % len(sources)])
            expected.append(text)
        sent += encode_frame(print_form(form))

    async def send_all(connection: Connection) -> None:
        await connection.send_bytes(sent)
        if eof:
            await connection.send_eof()

    async with daemon.connect() as connection, trio.open_nursery() as nursery:
        nursery.start_soon(send_all, connection)
        for number, wanted in enumerate(expected):
            answer = await due(connection, f"answer {number}", seconds=ANSWER_S)
            what = f"contract 2: answer {number} of {PIPELINED}"
            if wanted == ":LOG":
                expect_refusal(answer, connection)
                continue
            found = expect_message(answer, connection)

            assert wanted in found, f"{what}: expected {wanted[:40]!r}, found {found[:40]!r}"
            source = Keyword(sources[number % len(sources)])

            assert answer.get("META", "SOURCE") == source, (
                f"{what}: expected META of {source}, found {answer.get('META')!r}"
            )
        if eof:
            rest = await connection.receive_until_closed(seconds=END_S)

            assert not rest, f"contract 2: {len(rest)} answers that were not asked for"


@pytest.mark.covers("CONTRACT-2-INPUT")
@pytest.mark.capability("echo", "shell-text")
async def test_slow_then_fast_on_one_connection(daemon: Daemon) -> None:
    """An answer that takes time is not overtaken by one that takes none, on its connection."""
    slow = daemon.subject.table("texts")["shell"].replace("{command}", "sleep 0.4; echo slow")
    async with daemon.connect() as connection:
        texts = [
            slow,
            daemon.echo_of("fast 1"),
            slow.replace("0.4", "0.1"),
            daemon.echo_of("fast 2"),
        ]
        for text in texts:
            await connection.send(user_input(text))
        found = [
            expect_message(await due(connection, f"answer {n}", seconds=ANSWER_S), connection)
            for n in range(4)
        ]
    shown = [next((word for word in ("slow", "fast 1", "fast 2") if word in f), f) for f in found]

    assert shown == ["slow", "fast 1", "slow", "fast 2"], (
        f"contract 2: answers follow their requests: expected slow, fast 1, slow, fast 2, "
        f"found {shown}\n{connection.transcript}"
    )


@pytest.mark.covers("CONTRACT-2-INPUT", "CONTRACT-3-FRAMES")
@pytest.mark.capability("echo", "shell-reply", "gateway-list", "error-frames")
@pytest.mark.parametrize("eof", [False, True], ids=["open", "half-closed"])
async def test_no_kind_of_request_overtakes_another(daemon: Daemon, *, eof: bool) -> None:
    """What is asked behind a command that takes time is answered behind it, whatever it is.

    A client that has ended its side meanwhile gets all of its answers, too.
    """
    asked: list[tuple[Form, str]] = [
        (shell("sleep 0.4; echo slow"), ":SHELL-RESPONSE"),
        (HEALTH_CHECK, ":HEALTH-RESPONSE"),
        (request("GATEWAY", "LIST"), ":GATEWAY-LIST"),
        (shell("sleep 0.2; echo slow"), ":SHELL-RESPONSE"),
        (plist(type=Keyword("EVENT"), payload=plist(sensor=Keyword("NOSE"))), ":LOG"),
        (HEARTBEAT, ""),
        (HEALTH_CHECK, ":HEALTH-RESPONSE"),
        (HEALTH_CHECK, ":HEALTH-RESPONSE"),
        (user_input(daemon.echo_of("fast")), ":REQUEST"),
        (shell("echo fast"), ":SHELL-RESPONSE"),
    ]
    expected = [kind for _, kind in asked if kind]
    async with daemon.connect() as connection:
        await connection.send_bytes(b"".join(encode_frame(print_form(form)) for form, _ in asked))
        if eof:
            await connection.send_eof()
        found = []
        for number in range(len(expected)):
            answer = await due(connection, f"answer {number}", seconds=ANSWER_S)
            found.append(str(answer.get("PAYLOAD", "SENSOR") or answer.get("TYPE")))

        assert expected == found, (
            f"contract 2: answers follow their requests, of whatever kind: expected {expected}, "
            f"found {found}\n{connection.transcript}"
        )


@pytest.mark.covers("CONTRACT-3-MALFORMED")
async def test_many_failures_and_then_success(daemon: Daemon) -> None:
    """Fifty connections that fail, each in another way, leave nothing: not a file, thread or process."""
    good = [
        row for row in ROWS if row.owed is not Owed.HEALTH and not row.knob and len(row.sent) < 9000
    ]
    async with daemon.connect() as connection:
        await ask(connection, user_input("ping"))
    before = daemon.vitals()
    for row in (good * 50)[:50]:
        async with open_connection(daemon.port) as connection:
            await connection.send_while_open(row.sent)
            await connection.send_eof()
            await connection.receive_until_closed(seconds=END_S)
    async with daemon.connect() as connection:
        expect_message(await ask(connection, user_input("ping")), connection)
    after = await settled(
        daemon.pid, descriptors=before.descriptors, threads=before.threads, seconds=30
    )

    assert before.identity == after.identity, (
        f"contract 3: fifty failures ended the daemon: {before.identity}, now {after.identity}"
    )
    assert len(after.children) <= len(before.children), (
        f"contract 3: fifty failures left the processes {after.children}, before {before.children}"
    )


#: Connections of one rush, after each of which a daemon that keeps something is bigger.
MANY = 800

#: What an allocator may still find to keep after a rush: a third of a kilobyte of each connection.
KEPT_KIB = 256

#: What each rush may still add after several, where a heap is collected now and then.
LEAPS_KIB = 1024

#: What clients send that come and go, and how many messages they wait for, the handshake among them.
#: Of junk the last is a LOG, where errors are framed.
PASSING = (
    (b"", 0),
    (b"", 1),
    (frame(HEALTH), 2),
    (frame(TALK.format("ping")), 2),
    (frame(TALK.format("ping")), 1),
    (frame("(:TYPE :EVENT :PAYLOAD (:SENSOR :HEARTBEAT))"), 1),
    (b"000100(:TYPE", 1),
    (b"junk!!", 2),
    (frame(HEALTH) + b"junk!!", 3),
)


@pytest.mark.covers("CONTRACT-3-BOUNDS")
async def test_after_many_connections_it_is_as_after_few(start) -> None:
    """Memory, descriptors and threads are the same after many connections, however they came and went."""
    at_once = trio.CapacityLimiter(8)

    async def comes_and_goes(daemon: Daemon, number: int) -> None:
        sent, messages = PASSING[number % len(PASSING)]
        if b"junk" in sent and ERRORS not in daemon.subject.capabilities:
            messages -= 1
        async with at_once, open_connection(daemon.port) as connection:
            await connection.send_bytes(sent)
            for each in range(messages):
                await connection.receive(f"message {each}", seconds=END_S)
            if number % 2:
                await connection.abort()

    async def rush(daemon: Daemon, count: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(comes_and_goes, daemon, number)
        expect_health(await daemon.health())

    async with start() as daemon:
        await rush(daemon, MANY // 2)
        first = daemon.vitals()

        async def one() -> None:
            await rush(daemon, MANY)
            await settled(
                daemon.pid, descriptors=first.descriptors, threads=first.threads, seconds=END_S
            )

        what = f"{MANY} connections that came and went"
        await expect_level(daemon, one, kept_kib=KEPT_KIB, leaps_kib=LEAPS_KIB, what=what)


@pytest.mark.covers("CONTRACT-3-BOUNDS")
@pytest.mark.knob("connections")
async def test_as_many_connections_as_configured(attacked: Daemon) -> None:
    """So many clients that speak are served at once; one more is sent away with a reason.

    So it is after a rush of many more at once, and after a second. When one of them leaves, there
    is a place again, and none of the others has noticed.
    """
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(CONNECTIONS):
            # Those of earlier tests may still be leaving.
            clients.append(await stack.enter_async_context(attacked.connect()))
            expect_health(await health_on(clients[-1]))
        for rush in range(3):
            if rush:
                await rushed(attacked)
            async with open_connection(attacked.port) as late:
                messages = await late.receive_until_closed(seconds=END_S)
                kinds = [str(message.get("TYPE")) for message in messages]

                # It may be greeted before.
                reason = [each for each in kinds if each != ":EVENT"]

                assert ended_as_owed(reason, attacked), (
                    f"contract 3: after {rush} rushes, connection {CONNECTIONS + 1} of "
                    f"{CONNECTIONS} is owed an error and the end, found {kinds}\n{late.transcript}"
                )
        for client in clients[1:]:
            expect_health(await health_on(client))
        await clients[0].send_eof()
        await clients[0].receive_until_closed(seconds=END_S)
        again = await stack.enter_async_context(attacked.connect())
        expect_health(await health_on(again))


async def rushed(daemon: Daemon) -> None:
    """Far more clients at once than there are places, until all of them are gone again."""
    before = daemon.vitals().descriptors
    streams = [await trio.open_tcp_stream("127.0.0.1", daemon.port) for _ in range(4 * CONNECTIONS)]
    for stream in streams:
        await stream.aclose()
    await settled(daemon.pid, descriptors=before, seconds=30)
