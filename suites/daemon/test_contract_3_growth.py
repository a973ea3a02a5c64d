"""Contract 3: what was read and answered is not kept."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from suites.daemon.daemon import HEALTH_S, Daemon
from suites.daemon.growth import expect_level
from suites.daemon.hostile import TALK, frame

pytestmark = pytest.mark.covers("CONTRACT-3-BOUNDS")

#: What a round may leave: fragments of an allocator. Each round sends 6 MB of text, or 2 MB of names.
KEPT_KIB = 2 * 1024


@pytest.fixture
async def fresh(start) -> AsyncIterator[Daemon]:
    """A daemon that nobody has spoken to: in what others left to its collector there is room for much."""
    async with start() as daemon:
        yield daemon


async def test_frames_are_not_kept(fresh: Daemon) -> None:
    """What has been read and answered is forgotten: frames of 60 kB leave nothing, however many there are."""
    text = TALK.format("x" * 60_000)

    async def one() -> None:
        async with fresh.connect() as connection:
            for _ in range(100):
                await connection.send_bytes(frame(text))
                await connection.receive(seconds=HEALTH_S)

    await expect_level(
        fresh, one, kept_kib=KEPT_KIB, leaps_kib=KEPT_KIB, what="100 frames of 60 kB"
    )


async def test_names_are_not_kept(fresh: Daemon) -> None:
    """What a client calls its things is forgotten: names that nobody uses again leave nothing behind."""
    numbers = itertools.count()

    async def one() -> None:
        async with fresh.connect() as connection:
            for _ in range(50):
                names = " ".join(f":NAME-OF-NOTHING-{next(numbers)} 1" for _ in range(1_200))
                await connection.send_bytes(
                    frame(
                        f"(:TYPE :EVENT :META (:SOURCE :TUI {names})"
                        ' :PAYLOAD (:SENSOR :USER-INPUT :TEXT "ping"))'
                    )
                )
                await connection.receive(seconds=HEALTH_S)

    what = "60,000 names of 25 characters, each used once,"
    await expect_level(fresh, one, kept_kib=KEPT_KIB, leaps_kib=KEPT_KIB, what=what)
