"""The shape of ``report.json``: what a report knows, before anything is drawn. Source: ``docs/how-to/report.md``."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from harness_core.base.evidence import Frame, Link, Message, Plot, Sides
from harness_core.front.outcomes import Cost, Word

#: Raised when a reader of an earlier one would read this one wrongly; additions leave it.
SCHEMA: Final = 1


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One run of pytest.

    Attributes:
        name: of the nox session, or of its report.
        place: the folder of evidence that it was read from.
        machine: where it ran; empty where that is not known.
        at: when it began, in seconds since 1970; 0 where that is not known.
        seconds: how long it took.
        ended: ``by itself``, ``killed``, or ``goes on``.
        tests: how many it has something to say of.
        counts: word → how many of them.
        under_way: tests that had begun when it was killed.
    """

    name: str
    place: str
    machine: str = ""
    at: float = 0.0
    seconds: float = 0.0
    ended: Literal["by itself", "killed", "goes on"] = "by itself"
    tests: int = 0
    counts: dict[str, int] = {}
    under_way: tuple[str, ...] = ()


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one test, in one line.

    Attributes:
        id: node id, relative to the root of the tree.
        suite: the folder below ``suites``, or ``core``.
        session: name of the session that decides.
        word: how it ended; of several sessions the worst.
        why: the first line of a failure, or the reason for which it is known or was not run.
        at: when it began, in seconds since 1970.
        seconds: how long it took.
        worker: of xdist.
        machine: where it ran.
        evidence: its folder, relative to ``place``; empty for none.
        place: the folder of evidence that it was read from.
        cost: of its model calls; ``None`` for none.
        requirements: ids that it covers.
        earlier: how it ended in earlier runs, oldest first, a letter each: ``P F H K N``.
    """

    id: str
    suite: str
    session: str
    word: Word
    why: str = ""
    at: float = 0.0
    seconds: float = 0.0
    worker: str = ""
    machine: str = ""
    evidence: str = ""
    place: str = ""
    cost: Cost | None = None
    requirements: tuple[str, ...] = ()
    earlier: str = ""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for several failures.

    Attributes:
        word: whose they are: ``failed`` or ``harness could not run``.
        sentence: what it is.
        tests: all that show it.
        told: other sentences that say the same.
    """

    word: Word
    sentence: str
    tests: tuple[str, ...]
    told: tuple[str, ...] = ()


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A planted fault: the last verdict on it; empty where it was not planted."""

    id: str
    why: str
    verdict: str = ""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a suite's ledger.

    Attributes:
        status: ``shown``, ``not shown``, ``failed``, ``error`` or ``deferred``.
        why: what became of its cases, or the reason of a deferred row.
        counts: word → cases of its tests.
        tests: its cases that are in the report.
    """

    suite: str
    id: str
    title: str
    priority: str
    status: str
    why: str
    counts: dict[str, int] = {}
    tests: tuple[str, ...] = ()
    faults: tuple[Planted, ...] = ()


class Event(msgspec.Struct, frozen=True, array_like=True):
    """Something that happened while a test ran; an array of these, in this order.

    Attributes:
        at_ms: since the test began.
        took_ms: how long it went on; 0 for a moment.
        lane: index into the lanes of the test.
        what: ``log``, ``span``, ``turn``, ``call``, ``request``, ``row``, ``event`` …
        text: in one line.
        level: ``error``, ``warning`` or empty.
        message: index of the message it belongs to, by a name that it carries; -1 for none.
        source: index into the sources of the test: the file that it was read from.
        data: all of it; ``None`` where the line says all.
    """

    at_ms: float
    took_ms: float
    lane: int
    what: str
    text: str
    level: str = ""
    message: int = -1
    source: int = -1
    data: Any = None


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file among the evidence: its path in there, its size, and what may be shown of it.

    Attributes:
        kind: ``picture``, ``video``, ``flames`` or ``file``.
        content: base64 of a picture or video that is in the report itself.
    """

    path: str
    size_bytes: int
    kind: str = "file"
    content: str = ""
    mime: str = ""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything else about one test.

    Attributes:
        said: what a failure says, whole.
        expected: what was expected, where its first line says so.
        found: what was found instead.
        text: pytest's own report.
        deaths: processes that ended by themselves meanwhile.
        rerun: the command that runs it again.
        lanes: of the timeline, the test's own first.
        sources: files that events were read from, relative to ``place``.
        events: oldest first.
        dropped: events that were left out, for there were too many.
        messages: what it sent.
        links: the ways of those.
        frames: conversations over connections.
        sides: what backends did, next to each other.
        plots: curves.
        flames: speedscope profiles, as they were written.
        files: its evidence.
        archive: base64 of a zip of it; empty where it is too large.
    """

    said: str = ""
    expected: str = ""
    found: str = ""
    text: str = ""
    deaths: tuple[str, ...] = ()
    rerun: str = ""
    lanes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    dropped: int = 0
    messages: tuple[Message, ...] = ()
    links: tuple[Link, ...] = ()
    frames: tuple[Frame, ...] = ()
    sides: tuple[Sides, ...] = ()
    plots: tuple[Plot, ...] = ()
    flames: dict[str, Any] = {}
    files: tuple[File, ...] = ()
    archive: str = ""

    @property
    def empty(self) -> bool:
        """Nothing in it is worth a page of its own."""
        return self == Detail(rerun=self.rerun)


class Report(msgspec.Struct, kw_only=True):
    """A whole report.

    Attributes:
        schema: of this file.
        harness: version of the harness.
        made_at: when it was made, in seconds since 1970.
        title: what it is of.
        places: the folders that were read.
        sessions: in the order in which they began.
        tests: those that weigh most first.
        causes: of the product first, the strongest evidence first.
        requirements: of the suites that have a ledger.
        plots: of benchmarks, which are no tests.
        details: id of a test → the rest of it, where there is any.
    """

    schema: int = SCHEMA
    harness: str = ""
    made_at: float = 0.0
    title: str = ""
    places: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()
    tests: tuple[Test, ...] = ()
    causes: tuple[Cause, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    plots: tuple[Plot, ...] = ()
    details: dict[str, Detail] = {}
