"""What happened while one test ran, over all processes, on one clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness_core.base.evidence import Message, Moment
from harness_core.front.outcomes import DURING
from harness_core.front.report._schema import Event
from harness_core.front.report._witnesses import OURS, Witness, witnesses_in

#: Clocks of two processes of one machine, and what is written a moment after it happened.
_SLACK_S: Final = 0.25

#: Of the logs of a whole run less: what is later is of the next test.
_RUN_SLACK_S: Final = 0.02

#: Of one test so many events are kept, the first ones.
_EVENTS: Final = 50_000

#: Rows that only repeat what every test does.
_NOISE: Final = frozenset({"notifications/initialized"})


@dataclass(slots=True)
class RunLog:
    """What the processes of a whole run wrote, in the order of time; read once for all its tests."""

    witnesses: list[Witness]
    times: list[float]

    @classmethod
    def read(cls, folder: Path) -> RunLog:
        """Read a folder of a run, as far as it is there."""
        found = witnesses_in(folder) if folder.is_dir() else []
        return cls(found, [witness.at for witness in found])

    def between(self, begin: float, end: float) -> list[Witness]:
        """What happened in a part of the time."""
        return self.witnesses[bisect_left(self.times, begin) : bisect_right(self.times, end)]


@dataclass(slots=True, kw_only=True)
class Timeline:
    """See the fields of :class:`Detail` of the same names."""

    lanes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    dropped: int = 0


class Timelines:
    """Timelines of tests; the folder of a run is read once."""

    def __init__(self) -> None:
        self._runs: dict[Path, RunLog] = {}

    def of(  # noqa: PLR0913 - all that is known of a test
        self,
        *,
        place: Path,
        evidence: str,
        worker: str,
        at: float,
        seconds: float,
        moments: Sequence[Moment] = (),
        messages: Sequence[Message] = (),
    ) -> Timeline:
        """The timeline of one test.

        Args:
            place: folder of all evidence.
            evidence: of the test, relative to it; empty for none.
            worker: of xdist.
            at: when it began, in seconds since 1970; 0 where that is not known.
            seconds: how long it took.
            moments: what it told itself.
            messages: what it sent.
        """
        folder = place / evidence if evidence else None
        own = witnesses_in(folder, since=at - 1) if folder is not None and folder.is_dir() else []
        if not at:
            at = own[0].at if own else 0.0
            seconds = own[-1].at - at + _SLACK_S if own else seconds
        run = self._run((folder.parent.parent if folder is not None else place) / f"_run{worker}")
        kept = {path.name for path in folder.glob(f"{DURING}/*")} if folder is not None else set()
        end = at + seconds + _SLACK_S
        seen = [witness for witness in own if at - _SLACK_S <= witness.at <= end]
        seen += [
            witness
            for witness in (run.between(at, at + seconds + _RUN_SLACK_S) if at and seconds else ())
            if witness.what == "span" or witness.source.name not in kept
        ]
        told = [_told(moment, place) for moment in moments]
        return _drawn([*_once(seen), *told], at=at, seconds=seconds, place=place, messages=messages)

    def _run(self, folder: Path) -> RunLog:
        if folder not in self._runs:
            self._runs[folder] = RunLog.read(folder)
        return self._runs[folder]


def _once(witnesses: Iterable[Witness]) -> Iterator[Witness]:
    """Spans that are kept in two places are one."""
    seen: set[str] = set()
    for witness in witnesses:
        if witness.what == "span":
            if witness.raw in seen or witness.text in _NOISE:
                continue
            seen.add(witness.raw)
        yield witness


def _told(moment: Moment, place: Path) -> Witness:
    level = "error" if moment.what == "error" else ""
    raw = f"{moment.text} {moment.data!s}"
    return Witness(
        moment.at,
        moment.took_s,
        moment.lane,
        moment.what,
        moment.text,
        level,
        place,
        raw,
        moment.data,
    )


def _drawn(
    witnesses: list[Witness],
    *,
    at: float,
    seconds: float,
    place: Path,
    messages: Sequence[Message],
) -> Timeline:
    witnesses.sort(key=lambda witness: witness.at)
    drawn = Timeline(lanes=[OURS], dropped=max(0, len(witnesses) - _EVENTS))
    lanes, sources = {OURS: 0}, dict[Path, int]()
    aliases = _aliases(witnesses)
    names = [[name for name in message.names if name] for message in messages]
    if witnesses:
        whole = Event(0.0, round(seconds * 1000, 3), 0, "test", "the test, its setup and teardown")
        drawn.events.append(whole)
    for witness in witnesses[:_EVENTS]:
        lane = aliases.get(witness.lane, witness.lane)
        if lane not in lanes:
            lanes[lane] = len(drawn.lanes)
            drawn.lanes.append(lane)
        if witness.source not in sources:
            sources[witness.source] = len(drawn.sources)
            drawn.sources.append(_relative(witness.source, place))
        drawn.events.append(
            Event(
                round((witness.at - at) * 1000, 3),
                round(witness.took_s * 1000, 3),
                lanes[lane],
                witness.what,
                witness.text,
                witness.level,
                _message_of(witness, names),
                sources[witness.source],
                witness.data,
            )
        )
    return drawn


def _message_of(witness: Witness, names: Sequence[Sequence[str]]) -> int:
    for number, ours in enumerate(names):
        if any(name in witness.raw for name in ours):
            return number
    return -1


def _aliases(witnesses: Iterable[Witness]) -> dict[str, str]:
    """The name by which a process calls itself in spans, to that of its log.

    ``butler-health`` writes ``health.log``; so do lanes end, and no other log's name ends it.
    """
    logs: set[str] = set()
    services: set[str] = set()
    for witness in witnesses:
        (logs if witness.what == "log" else services).add(witness.lane)
    found: dict[str, str] = {}
    for service in services - logs:
        ends = [log for log in logs if service.endswith(f"-{log}")]
        if ends:
            found[service] = max(ends, key=len)
    return found


def _relative(path: Path, place: Path) -> str:
    if path == place:
        return "told by the test"
    return path.relative_to(place).as_posix() if place in path.parents else str(path)
