"""What happened last, in the order in which it was seen; every client reads it at its own pace.

Nothing waits for a client and nothing is kept for one: it has a place in the feed and no queue. What
has left the feed before a client came to it is counted for it as missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from harness_core.front.report import Witness

__all__ = ["Event", "Feed"]

#: Events that are kept: more than a person looks back at. With all their data, some 30 MB at most.
KEPT: Final = 4000

#: Most that one look adds: the rest of a flood is counted.
_AT_ONCE: Final = 1000

#: Of one batch to one client.
_BATCH: Final = 400


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        number: from 1, in the order of the feed.
        row: as clients get it: number, when, how long in ms, lane, kind, text, level, whether there is
            more of it.
        raw: in which names of messages are looked for.
        data: all of it, as JSON; empty when the row says all.
        source: the file.
    """

    number: int
    row: bytes
    raw: str
    data: bytes
    source: str


class Feed:
    """The last events."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self.last = 0
        self._encode = msgspec.json.Encoder(enc_hook=str).encode

    def add(self, witnesses: Iterable[Witness]) -> int:
        """Add what was seen, in the order of time; returns how many were left out."""
        found = sorted(witnesses, key=lambda witness: witness.at)
        for witness in found[-_AT_ONCE:]:
            self._add(witness)
        return max(0, len(found) - _AT_ONCE)

    def _add(self, witness: Witness) -> None:
        self.last += 1
        data = b"" if witness.data is None else self._encode(witness.data)
        row: list[Any] = [
            self.last,
            round(witness.at, 4),
            round(witness.took_s * 1000, 3),
            witness.lane,
            witness.what,
            witness.text,
            witness.level,
            bool(data),
        ]
        self.events.append(
            Event(self.last, self._encode(row), witness.raw, data, witness.source.name)
        )

    def after(self, number: int) -> tuple[Sequence[Event], int]:
        """Some events after a number, and how many before them are gone."""
        if not self.events or number >= self.last:
            return (), 0
        first = self.events[0].number
        missed = max(0, first - number - 1)
        begin = max(0, number + 1 - first)
        end = min(len(self.events), begin + _BATCH)
        return list(islice(self.events, begin, end)), missed

    def numbered(self, number: int) -> Event | None:
        """One event, while it is kept."""
        if not self.events or not self.events[0].number <= number <= self.last:
            return None
        return self.events[number - self.events[0].number]

    def holding(self, names: Iterable[str]) -> list[int]:
        """The numbers of the events in which one of some names occurs."""
        wanted = [name for name in names if name]
        return [event.number for event in self.events if any(name in event.raw for name in wanted)]
