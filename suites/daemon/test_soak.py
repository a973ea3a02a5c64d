"""The soak: 50,000 frames at one daemon, good and hostile, and what it has grown by in numbers."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.front.pytest_plugin import add_summary
from suites.daemon.daemon import HEALTH_S, Daemon, Settings
from suites.daemon.hostile import DEPTH, FRAME_CHARACTERS, FRAME_S, HEALTH, ROWS, TALK, frame
from suites.daemon.messages import (
    ANSWER_S,
    HEARTBEAT,
    ask,
    expect_health,
    expect_message,
    user_input,
)
from suites.daemon.vitals import settled
from suites.daemon.wire import Connection, RemoteProtocolError, Violation, open_connection

pytestmark = [
    pytest.mark.aside("figures over 50,000 frames; what is bounded is CONTRACT-3-BOUNDS"),
    pytest.mark.soak,
]

FRAMES = 50_000

#: Clients at once; each sends so many frames before it reads their answers.
CLIENTS = 8
BATCH = 25

#: Frames after which what is loaded and cached at the first use is loaded and cached.
WARM_UP = 5_000

#: Longest the whole may take; 50,000 frames took 21 s, and 31 s beside other work, on 2 cores.
LIMIT_S = 400.0

#: What 45,000 frames may leave: an allocator's fragments. One object of 100 bytes per frame is 4.5 MB.
GROWTH_KIB = 4 * 1024

GOOD = frame(HEALTH) * (BATCH - 5) + frame(TALK.format("ping")) * 4


async def test_soak(start, subject, pytestconfig) -> None:
    """50,000 frames, every hundredth connection a hostile one, leave no file, process or memory."""
    wanted = {"frame_characters": FRAME_CHARACTERS, "depth": DEPTH, "frame_s": FRAME_S}
    knobs = {name: value for name, value in wanted.items() if name in subject.table("knobs")}
    async with start(Settings(knobs=knobs), name="soaked") as daemon:
        seen: Counter[str] = Counter()
        await soak(daemon, frames=WARM_UP, seen=seen)
        async with daemon.connect() as idle:
            before = await settled(daemon.pid, descriptors=10_000, seconds=1)
            began = time.monotonic()
            with trio.move_on_after(patience(LIMIT_S)) as limit:
                await soak(daemon, frames=FRAMES - WARM_UP, seen=seen)
            took_s = time.monotonic() - began

            assert not limit.cancelled_caught, f"{dict(seen)} after {LIMIT_S:g} s"
            expect_message(await ask(idle, user_input("ping")), idle)
            expect_health(await daemon.health())
            after = await settled(daemon.pid, descriptors=before.descriptors, seconds=10)
    grown = after.memory_kib - before.memory_kib
    add_summary(
        pytestconfig,
        "soak of the daemon",
        f"{seen['frames']} frames on {seen['connections']} connections, {seen['hostile']} of them "
        f"hostile; {(FRAMES - WARM_UP) / took_s:.0f} frames/s over {took_s:.1f} s\n"
        f"open files {before.descriptors} -> {after.descriptors}, "
        f"memory {before.memory_kib} -> {after.memory_kib} KiB ({grown:+d}), "
        f"children {len(before.children)} -> {len(after.children)}",
    )

    assert FRAMES <= seen["frames"], f"the soak sent {seen['frames']} frames of {FRAMES}"
    assert before.identity == after.identity, "the daemon is another process now"
    assert before.children == after.children, "processes were left"
    assert grown < GROWTH_KIB, f"{FRAMES - WARM_UP} frames left {grown} KiB in memory"


async def soak(daemon: Daemon, *, frames: int, seen: Counter[str]) -> None:
    """Send so many frames by several clients, each answered but the heartbeats, and hostile ones."""
    goal = seen["frames"] + frames
    rows = itertools.cycle(row for row in ROWS if len(row.sent) < 10_000 and row.knob != "frame_s")

    async def good() -> None:
        while seen["frames"] < goal:
            async with daemon.connect() as connection:
                seen["connections"] += 1
                for _ in range(4):
                    await batch(connection)
                    seen["frames"] += BATCH

    async def hostile() -> None:
        while seen["frames"] < goal:
            row = next(rows)
            async with open_connection(daemon.port) as connection:
                seen["connections"] += 1
                seen["hostile"] += 1
                seen["frames"] += 1
                try:
                    await connection.send_bytes(row.sent)
                    await connection.send_eof()
                    await connection.receive_until_closed(seconds=ANSWER_S)
                except (RemoteProtocolError, OSError) as error:
                    # A reset takes with it what the daemon sent; silence would be its own fault.
                    if getattr(error, "violation", None) not in {None, Violation.CLOSED}:
                        raise
                    seen["reset"] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(CLIENTS):
            nursery.start_soon(good)
        nursery.start_soon(hostile)


async def batch(connection: Connection) -> None:
    """One batch: health checks, texts and a heartbeat; all but that are answered."""
    await connection.send_bytes(GOOD)
    await connection.send(HEARTBEAT)
    kinds = Counter(
        [
            str((await connection.receive(seconds=HEALTH_S * 4)).get("TYPE"))
            for _ in range(BATCH - 1)
        ]
    )

    assert {":HEALTH-RESPONSE": BATCH - 5, ":REQUEST": 4} == dict(kinds), (
        "contract 2: each of a batch is answered: expected "
        + repr({":HEALTH-RESPONSE": BATCH - 5, ":REQUEST": 4})
        + ", found "
        + repr(dict(kinds))
    )
