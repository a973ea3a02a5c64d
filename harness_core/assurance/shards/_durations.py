"""The file of measured durations: what a CI keeps in its cache from run to run.

``{"workers": 2, "seconds": {NAME: [SECONDS, DATE]}}``. The date is the day it was measured: what
was renamed or removed leaves the file after ``KEPT_DAYS``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from harness_core.assurance.shards._split import Shard
from harness_core.base.errors import BadInput
from harness_core.base.reading import Table, read_json

#: A weekly session that was red three weeks running still has its durations.
KEPT_DAYS: Final = 30


#: No test takes a year: what JSON calls Infinity is no duration.
_LONGEST_S: Final = 3.2e7

_Seconds = Annotated[float, Meta(ge=0, le=_LONGEST_S, description="zero seconds or more")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """What is known of one session.

    Attributes:
        workers: how many were at work at once when it was measured.
        measured: for each name, its seconds and the day they are of.
    """

    workers: int = 1
    measured: Mapping[str, tuple[float, date]] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """For each name, how long it took."""
        return {name: seconds for name, (seconds, _) in self.measured.items()}

    @property
    def total_s(self) -> float:
        """How long all of it takes with as many workers, as far as it was measured."""
        return sum(self.seconds.values()) / self.workers


def read_durations(path: Path) -> Durations:
    """Read a file of durations; one that does not exist is empty.

    Raises:
        BadInput: it is no such file.
    """
    if not path.exists():
        return Durations()
    expected = '{"workers": N, "seconds": {NAME: [SECONDS, DATE]}}'
    try:
        file = read_json(path, _File, expected=expected)
    except BadInput as error:
        raise BadInput(
            path,
            key=error.key,
            found=error.found,
            expected=error.expected,
            next_step="Delete it: it is made again by every run that is given it",
        ) from error
    return Durations(workers=file.workers, measured=file.seconds)


class _File(Table, frozen=True):
    """What is written; a date is written like 2026-03-02."""

    workers: Annotated[int, Meta(ge=1)]
    seconds: dict[str, tuple[_Seconds, date]]


def update_durations(
    path: Path, seconds: Mapping[str, float], *, workers: int, today: date | None = None
) -> None:
    """Bring a file up to date with what a run measured; what it did not run stays."""
    today = today or datetime.now(UTC).date()
    measured = {name: (value, today) for name, value in seconds.items()}
    new = Durations(workers=workers, measured=measured)
    _write(path, _newest([read_durations(path), new], workers=workers), today=today)


def part_of(path: Path, shard: Shard | None) -> Path:
    """Where a run writes: the file itself, or a shard's own beside it.

    The file that shards are balanced by must stay as it is until the last of them has read it; were
    it brought up to date by the first, the next would divide otherwise, and tests would be lost.
    """
    if shard is None:
        return path
    return path.with_name(f"{path.stem}.{shard.number}-of-{shard.count}{path.suffix}")


def merge_durations(into: Path, parts: Path, *, today: date | None = None) -> tuple[Path, ...]:
    """Bring a folder of such files up to date with those of another, shards into the whole.

    Args:
        into: ``SESSION.json`` files; made when it is not there.
        parts: what runs left: ``SESSION.json`` and ``SESSION.1-of-3.json``.
        today: what is too old on this day is left out.

    Returns:
        The files that were brought up to date.

    Raises:
        BadInput: one of them is malformed.
    """
    left: dict[str, list[Durations]] = {}
    for part in sorted(parts.glob("*.json")):
        name = re.sub(r"\.[0-9]+-of-[0-9]+$", "", part.stem)
        left.setdefault(name, []).append(read_durations(part))
    written = []
    for name, durations in left.items():
        path = into / f"{name}.json"
        merged = _newest([read_durations(path), *durations], workers=durations[-1].workers)
        _write(path, merged, today=today or datetime.now(UTC).date())
        written.append(path)
    return tuple(written)


def _newest(known: Iterable[Durations], *, workers: int) -> Durations:
    """For each name the latest measurement; of one day, the one in the later file."""
    measured: dict[str, tuple[float, date]] = {}
    for durations in known:
        for name, (seconds, day) in durations.measured.items():
            if name not in measured or day >= measured[name][1]:
                measured[name] = (seconds, day)
    return Durations(workers=workers, measured=measured)


def _write(path: Path, durations: Durations, *, today: date) -> None:
    """Write it whole or not at all: a run that is killed must not leave half a file."""
    oldest = today - timedelta(days=KEPT_DAYS)
    rows = {
        name: [round(seconds, 3), day.isoformat()]
        for name, (seconds, day) in sorted(durations.measured.items())
        if day >= oldest
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    content = {"workers": durations.workers, "seconds": rows}
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
