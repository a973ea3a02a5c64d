"""Contract 3: waits, sizes and connections have bounds, also where no setting turns them.

What is tried is what a knob is turned to, or what `[bounds]` names, or else the most that anyone needs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
import trio

from harness_core.base.slowness import patience
from suites.daemon.daemon import HEALTH_S, Settings
from suites.daemon.hostile import CONNECTIONS, END_S, FRAME_CHARACTERS, FRAME_S
from suites.daemon.messages import expect_health
from suites.daemon.settings import turned
from suites.daemon.unharmed import lived_through
from suites.daemon.wire import (
    Connection,
    Keyword,
    RemoteProtocolError,
    Violation,
)

pytestmark = [pytest.mark.covers("CONTRACT-3-BOUNDS")]

#: What a knob is turned to.
TURNED = {
    "idle_s": 0.5,
    "frame_s": FRAME_S,
    "frame_characters": FRAME_CHARACTERS,
    "connections": CONNECTIONS,
}

#: The most that is tried of a daemon of which no bound is known.
MOST = {"idle_s": 60.0, "frame_s": 60.0, "frame_characters": 16**6 - 1, "connections": 500}

#: Clients beyond the bound of connections that is tried.
MORE = 20

#: Bytes sent at once, of characters of four bytes each.
PIECE = "😀" * 65_536

#: Characters that are on their way when a daemon has read enough.
HELD = 64 * len(PIECE)

#: Who takes no more for so long has stopped reading, which bounds what it holds.
STALLED_S = 10.0


def bounds(subject, *names: str) -> tuple[Settings, dict[str, float]]:
    """Settings that turn what can be turned, and what each bound is by then."""
    knobs = {name: TURNED[name] for name in names if name in subject.table("knobs")}
    known = {**MOST, **subject.table("bounds"), **knobs}
    return Settings(knobs=knobs), {name: known[name] for name in names}


async def test_waits_are_bounded(start, subject) -> None:
    """A client that sends nothing, and one that sends half a frame, are ended after a time of the daemon's."""
    settings, known = bounds(subject, "idle_s", "frame_s")
    begun = {"idle_s": (b"", "idle"), "frame_s": (b"000100(:TYPE", "within a frame")}
    unbounded: list[str] = []

    async def waits(daemon, name: str) -> None:
        sent, what = begun[name]
        seconds = known[name] + END_S
        async with daemon.connect() as connection:
            await connection.send_while_open(sent)
            try:
                await connection.receive_until_closed(seconds=seconds)
            except RemoteProtocolError as error:
                if error.violation is not Violation.SILENT:
                    raise
                unbounded.append(f"{what} for {seconds:g} s")

    async with start(settings) as daemon:
        async with trio.open_nursery() as nursery:
            for name in begun:
                nursery.start_soon(waits, daemon, name)
        expect_health(await daemon.health())

    assert not unbounded, (
        f"contract 3: waits are bounded: no bound found: {', '.join(sorted(unbounded))}"
    )


async def test_sizes_are_bounded(start, subject) -> None:
    """A frame that announces as much as a prefix can say is not read to its end."""
    settings, known = bounds(subject, "frame_characters")
    # A frame has all the time that it takes.
    knobs = turned(subject, {**settings.knobs, "frame_s": 600})
    async with start(Settings(knobs=knobs)) as daemon, lived_through(daemon):
        async with daemon.connect() as connection:
            sent = await send_until_ended(connection, most=int(known["frame_characters"]))
        expect_health(await daemon.health())

    assert sent <= int(known["frame_characters"]), (
        "contract 3: sizes are bounded: no bound found: "
        f"{sent * 4 // 1024**2} MiB for FFFFFF, read to the end"
    )


async def send_until_ended(connection: Connection, *, most: int) -> int:
    """Characters of a frame of the longest kind that are taken before it is refused, or its connection ends.

    Args:
        connection: nothing was sent on it.
        most: a frame may be so long; a little more is tried, for what networks hold.
    """
    sent, refused = 0, False

    async def listen(scope: trio.CancelScope) -> None:
        nonlocal refused
        while not refused:
            try:
                message = await connection.receive("a refusal", seconds=STALLED_S)
                refused = message.get("TYPE") == Keyword("LOG")
            except RemoteProtocolError as error:
                refused = error.violation is not Violation.SILENT
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, nursery.cancel_scope)
        await connection.send_bytes(b"FFFFFF")
        while sent <= min(most + HELD, MOST["frame_characters"]):
            with trio.move_on_after(patience(STALLED_S)) as stalled:
                if not await connection.send_while_open(PIECE.encode()):
                    refused = True
            if refused or stalled.cancelled_caught:
                refused = True
                break
            sent += len(PIECE)
        else:
            # What networks hold is still to be read.
            with trio.move_on_after(patience(END_S)):
                await trio.sleep_forever()
        nursery.cancel_scope.cancel()
    return min(sent, most) if refused else sent


async def test_connections_have_a_bound(start, subject) -> None:
    """Of clients that connect and say nothing, all at once, some are sent away."""
    settings, known = bounds(subject, "connections")
    count = int(known["connections"]) + MORE
    async with start(settings) as daemon:
        some_left = trio.Event()

        async def stays(stream: trio.SocketStream) -> None:
            try:
                while await stream.receive_some(65_536):
                    pass
            except trio.BrokenResourceError:
                pass
            some_left.set()

        async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
            for _ in range(count):
                stream = await trio.open_tcp_stream("127.0.0.1", daemon.port)
                nursery.start_soon(stays, await stack.enter_async_context(stream))
            with trio.move_on_after(patience(END_S)):
                await some_left.wait()
            bounded = some_left.is_set()
            nursery.cancel_scope.cancel()
        await settled_health(daemon.health)

    assert bounded, f"contract 3: connections are bounded: no bound found: {count} at once"


async def settled_health(health: Callable) -> None:
    """Health of a daemon whose places are free when it has seen that their clients are gone."""
    until_s = trio.current_time() + patience(HEALTH_S)
    while True:
        try:
            expect_health(await health())
        except RemoteProtocolError:
            if trio.current_time() > until_s:
                raise
        else:
            return
