"""Waits that were in vain: what one row of a table has shown, the next need not wait for as long.

A product that never answers makes each row of a parametrised test wait its whole deadline for the
same answer. After some rows in a row of one test have waited in vain, the next wait a part of it; one
answer that comes, and all wait in full again. Only for waits whose end in vain is a failure: never for
one that proves a silence.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

__all__ = ["VainWaits", "Wait"]

#: So many in a row wait in full.
_IN_FULL: Final = 3

#: Then this part of it: not less, or a right answer that comes late would be taken for none.
_PART: Final = 0.5


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
    """What was waited for in vain, by test function; parameters aside.

    Args:
        clock: seconds that pass.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._in_vain: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def waiting(self, what: str, *, seconds: float) -> Iterator[Wait]:
        """Wait for ``what`` within the block; one that ends early, with an error, was not in vain.

        Args:
            what: is due, the same for every row.
            seconds: how long it may take.
        """
        # pytest says which test runs: "path::name[row] (call)".
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[0]
        key = (test, what)
        wait = Wait(seconds=seconds)
        if test and self._in_vain[key] >= _IN_FULL:
            wait.seconds = seconds * _PART
            wait.note = f" ({self._in_vain[key]} rows before it waited in vain, {_IN_FULL} in full)"
        began_s = self._clock()
        try:
            yield wait
        finally:
            if wait.came:
                self._in_vain[key] = 0
            elif self._clock() - began_s >= wait.seconds:
                self._in_vain[key] += 1
