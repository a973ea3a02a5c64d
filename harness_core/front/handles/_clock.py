"""The time of day as processes of a test see it, by libfaketime."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput

#: Written whole, then put in place: a process may read it at any moment.
_NEW: Final = ".new"


class Clock:
    """A clock that a test sets; given by the fixture ``clock``.

    A process that is started with :attr:`environment` has it, and all that it starts. It goes on as the
    machine's does. What measures durations (``CLOCK_MONOTONIC``) is moved with it, so that timers of a
    running process come due when it is advanced.

    Args:
        file: holds what libfaketime reads, at every look at the clock.
        library: libfaketime.
    """

    def __init__(self, file: Path, *, library: Path) -> None:
        self._file = file
        self._library = library
        self._offset = dt.timedelta()
        self._write()

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process; what pytest has of ``LD_PRELOAD`` already comes after it."""
        before = os.environ.get("LD_PRELOAD", "")
        # Without FAKETIME_DONT_FAKE_MONOTONIC: with it, libfaketime 0.9.10 makes Python's sleep fail.
        return {
            "LD_PRELOAD": f"{self._library}:{before}" if before else str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
        }

    @property
    def now(self) -> dt.datetime:
        """What it shows, in UTC."""
        return dt.datetime.now(dt.UTC) + self._offset

    def set(self, to: dt.datetime) -> None:
        """It shows ``to`` now, and goes on from there.

        Raises:
            BadInput: a time without a zone.
        """
        if to.tzinfo is None:
            expected = "a time with its zone, e.g. datetime(2026, 3, 1, 12, tzinfo=UTC)"
            raise BadInput("clock", key="set", found=to.isoformat(), expected=expected)
        self._offset = to - dt.datetime.now(dt.UTC)
        self._write()

    def advance(self, by: dt.timedelta) -> None:
        """It shows so much more, or less."""
        self._offset += by
        self._write()

    def _write(self) -> None:
        whole = self._file.with_suffix(_NEW)
        whole.write_text(f"{self._offset.total_seconds():+.3f}\n", encoding="ascii")
        whole.replace(self._file)
