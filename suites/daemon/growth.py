"""Whether memory goes on growing: over rounds, since a collected heap grows by leaps and then stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from statistics import median
from typing import Final

from harness_core.base.evidence import Curve, Plot, tell
from suites.daemon.daemon import Daemon

__all__ = ["expect_level"]

#: Rounds after which a heap has found its size. Two in a row that add nothing end it before.
ROUNDS: Final = 18

#: Rounds over which a slope is taken.
WINDOW: Final = 5


async def expect_level(
    daemon: Daemon,
    one: Callable[[], Awaitable[None]],
    *,
    kept_kib: int,
    leaps_kib: int,
    what: str,
) -> None:
    """Repeat a round until its memory stays level.

    What is kept of each round adds as much each time; a heap that a collector empties now and then grows
    by leaps, and stays. So it is judged by the slope over all pairs of the last rounds, their median
    (Theil and Sen): where each adds about the same, by what an allocator keeps, and elsewhere by more.

    Args:
        daemon: whose.
        one: a round.
        kept_kib: what an allocator may keep of a round; two such rounds in a row, and it is level.
        leaps_kib: the slope of a heap that grows by leaps.
        what: a round sends, for the failure.

    Raises:
        AssertionError: it goes on growing, or is another process.
    """
    await one()
    first = daemon.vitals()
    seen = [first.memory_kib]
    tell(lambda: [_curve(seen, what)])
    for _ in range(ROUNDS):
        await one()
        now = daemon.vitals()

        assert first.identity == now.identity, (
            f"contract 3: the daemon is the process it was: expected {first.identity!r}, "
            f"found {now.identity!r}"
        )
        seen.append(now.memory_kib)
        if is_level(seen, kept_kib=kept_kib, leaps_kib=leaps_kib):
            return

    raise AssertionError(
        f"contract 3: {what} left {slope(seen):.0f} KiB in memory, and again each time: expected at most "
        f"{kept_kib}, found {steps(seen)}"
    )


def _curve(seen: list[int], what: str) -> Plot:
    """Memory by rounds, for a report."""
    points = tuple((float(at), kib / 1024) for at, kib in enumerate(seen))
    return Plot(
        title=f"memory: {what}", x="rounds", y="MiB", curves=(Curve(name="daemon", points=points),)
    )


def is_level(seen: list[int], *, kept_kib: int, leaps_kib: int) -> bool:
    """Whether memory has stopped growing by the last of its readings."""
    if len(seen) > 2 and max(steps(seen[-3:])) <= kept_kib:
        return True
    last = steps(seen)[-WINDOW:]
    if len(last) < WINDOW:
        return False
    steady = max(last) - min(last) <= kept_kib
    return slope(seen[-WINDOW - 1 :]) <= (kept_kib if steady else leaps_kib)


def steps(seen: list[int]) -> list[int]:
    """What each round has added."""
    return [after - before for before, after in pairwise(seen)]


def slope(seen: list[int]) -> float:
    """What a step adds: the median over all pairs."""
    numbered = list(enumerate(seen))
    pairs = [(a, b) for a in numbered for b in numbered if a[0] < b[0]]
    return median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs)
