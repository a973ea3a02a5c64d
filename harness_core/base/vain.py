"""Waits that were in vain: what some have shown, the next need not wait for as long.

A product that leaves out half of what it owes makes every test that meets the gap wait a whole deadline for the
same silence. After some waits in vain the next are shorter, and say so; answers that come late make them
longer again. Only for waits whose end in vain is a failure: never for one that proves a silence.
Processes that run tests of one run tell each other, once :func:`share_waits` has said where.

Source: decision 0174.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["VainWaits", "Wait", "share_waits"]

#: At such a weight: which part of the wait, and of what is the least, the next are. Each in vain weighs one.
_STEPS: Final = ((6, 0.1, 0.5), (2, 0.2, 1.0), (1, 0.5, 1.0), (0, 1.0, 1.0))

#: An answer that took more of a shortened wait shows that the product is slow, not silent: it halves the weight.
_LATE: Final = 0.5

#: What a wait has shown: it was in vain, its answer came late, or took longer than any before it.
_IN_VAIN, _CAME_LATE, _SLOWEST = "in-vain", "late", "slowest"

#: The file in which the processes of this run tell each other; none where there is one alone.
_shared: list[Path] = []


def share_waits(path: Path) -> None:
    """Count what other processes wait for in vain, too, and let them know.

    Args:
        path: a file for the processes of this run; each appends whole lines.
    """
    _shared[:] = [path]


@dataclass(slots=True, kw_only=True)
class Wait:
    """One wait.

    Attributes:
        seconds: how long it is, on a machine with nothing else to do.
        note: for the error, why it is no longer; empty for one in full.
        came: set it when what was waited for has come.
    """

    seconds: float
    note: str = ""
    came: bool = False


class VainWaits:
    """What the tests of a run waited for in vain.

    Args:
        name: by which the processes of a run mean the same waits; one word.
        least_s: nothing is shortened below: a right answer that takes its time would be taken for none.
        alike: what is waited for is alike, so that what one answer took, twice, is left to each.
        clock: seconds that pass.
    """

    def __init__(
        self,
        name: str,
        *,
        least_s: float,
        alike: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._least_s = least_s
        self._alike = alike
        self._slowest_s = 0.0
        self._clock = clock
        self._in_vain = 0
        self._weight = 0
        self._read_bytes = 0

    @contextmanager
    def waiting(self, *, seconds: float) -> Iterator[Wait]:
        """Wait within the block; one that ends early, with an error, was not in vain.

        Args:
            seconds: how long it may take.
        """
        wait = self._next(seconds)
        began_s = self._clock()
        try:
            yield wait
        finally:
            took_s = self._clock() - began_s
            if wait.came:
                if self._alike and took_s > self._slowest_s:
                    self._tell(_SLOWEST, took_s)
                if took_s > wait.seconds * _LATE and wait.note:
                    self._tell(_CAME_LATE, took_s)
            elif took_s >= wait.seconds:
                self._tell(_IN_VAIN, took_s)

    def _next(self, seconds: float) -> Wait:
        self._hear()
        part, least = next(rest for count, *rest in _STEPS if self._weight >= count)
        left_s = 2 * self._slowest_s if self._alike else 0.0
        shorter = min(seconds, max(seconds * part, self._least_s * least, left_s))
        if shorter == seconds:
            return Wait(seconds=seconds)
        others = "one wait was" if self._in_vain == 1 else f"{self._in_vain} waits were"
        note = f" ({seconds:g} s, before {others} in vain)"
        return Wait(seconds=shorter, note=note)

    def _tell(self, what: str, took_s: float) -> None:
        if not _shared:
            self._count(what, took_s)
            return
        with _shared[0].open("a", encoding="utf-8") as file:
            file.write(f"{self._name} {what} {took_s:.3f}\n")

    def _hear(self) -> None:
        """Count what was told since the last time, by this process too."""
        if not _shared or not _shared[0].exists():
            return
        with _shared[0].open("rb") as file:
            file.seek(self._read_bytes)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read_bytes += len(whole + end)
        for line in whole.decode().splitlines():
            name, what, took_s = line.split()
            if name == self._name:
                self._count(what, float(took_s))

    def _count(self, what: str, took_s: float) -> None:
        if what == _SLOWEST:
            self._slowest_s = max(self._slowest_s, took_s)
        elif what == _CAME_LATE:
            self._weight //= 2
        else:
            self._in_vain += 1
            self._weight = min(self._weight + 1, _STEPS[0][0])
