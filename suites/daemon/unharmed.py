"""What must be true of a daemon after anything a client did: the same process, healthy, no bigger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from suites.daemon.daemon import Daemon, health_on
from suites.daemon.messages import expect_health
from suites.daemon.vitals import Vitals, read_vitals, settled
from suites.daemon.wire import RemoteProtocolError

__all__ = ["GROWTH_KIB", "lived_through", "unharmed"]

#: What one case may leave in memory: an allocator's arena, or a step of a heap that is collected. What
#: is announced by FFFFFF and made room for is more; what is kept of each shows over many (``growth.py``).
GROWTH_KIB: Final = 48 * 1024

#: Until the descriptors of ended connections are closed.
SETTLE_S: Final = 5.0


@asynccontextmanager
async def unharmed(daemon: Daemon) -> AsyncIterator[None]:
    """After the block the daemon is as it was.

    The same pid and start time, health in time on an old connection and on a new one, no more
    descriptors, children or memory.

    Raises:
        AssertionError: with what has changed.
    """
    before = daemon.vitals()
    async with daemon.connect() as bystander:
        expect_health(await health_on(bystander))
        async with lived_through(daemon):
            yield
        after = daemon.vitals()

        assert before.identity == after.identity, "the daemon is another process now"
        try:
            expect_health(await health_on(bystander))
        except RemoteProtocolError as error:
            raise AssertionError(f"another client's connection suffered: {error}") from error
        expect_health(await daemon.health())
    after = await settled(daemon.pid, descriptors=before.descriptors, seconds=SETTLE_S)
    grown = after.memory_kib - before.memory_kib

    assert grown < GROWTH_KIB, (
        f"memory grew by {grown} KiB, from {before.memory_kib} to {after.memory_kib}"
    )
    assert before.children == after.children, "it has started processes and left them"


@asynccontextmanager
async def lived_through(daemon: Daemon) -> AsyncIterator[None]:
    """After the block the daemon is the same process; whatever else happened, that it died is told first.

    Raises:
        AssertionError: with what happened.
    """
    before = daemon.vitals()
    try:
        yield
    except AssertionError as error:
        if not lives(before):
            raise AssertionError(f"the daemon died of it: {error}") from error
        raise

    assert lives(before), "the daemon died of it"


def lives(before: Vitals) -> bool:
    """Whether the process read earlier is still there."""
    try:
        return read_vitals(before.pid).identity == before.identity
    except AssertionError:
        return False
