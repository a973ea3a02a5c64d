"""What became of each test, from the reports of any number of sessions, workers and machines."""

from __future__ import annotations

import os
import re
import socket
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from harness_core.assurance.junit import Case, read_session
from harness_core.base.errors import BadInput
from harness_core.front.outcomes import (
    Began,
    Cost,
    Ended,
    Finished,
    Spent,
    Started,
    Word,
    folder_of_test,
    read_rows,
)
from harness_core.front.report._schema import Session

_ORDER: Final = list(Word)

#: How a test ended, as a letter of its history.
LETTERS: Final = {
    Word.PASSED: "P",
    Word.FAILED: "F",
    Word.HARNESS: "H",
    Word.KNOWN: "K",
    Word.NOT_RUN: "N",
}

#: The name of an earlier file: SESSION.MILLISECONDS.jsonl.
_EARLIER: Final = re.compile(r"^(?P<session>.+)\.(?P<at>\d+)\.jsonl$")


@dataclass(slots=True, kw_only=True)
class One:
    """A test, as the session tells it that decides.

    Attributes:
        ended: what became of it.
        session: which one.
        place: folder of evidence.
    """

    ended: Ended
    session: Session
    place: Path


@dataclass(slots=True, kw_only=True)
class Gathered:
    """All sessions together.

    Attributes:
        sessions: in the order in which they began.
        tests: id → what became of it.
        costs: id → what its model calls cost.
        earlier: id → how it ended in earlier runs, oldest first, a letter each.
    """

    sessions: list[Session] = field(default_factory=list)
    tests: dict[str, One] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    earlier: dict[str, str] = field(default_factory=dict)


def gather(places: Sequence[Path], *, root: Path) -> Gathered:
    """Read every session below some places.

    A test of several sessions is what it is in the one that ran it; where several did, the worst.

    Args:
        places: folders of evidence, trees that have one, or single reports.
        root: what ids of tests are relative to, where a report does not say so.

    Raises:
        BadInput: there is no report in one of them, or one that is none.
    """
    found = Gathered()
    for place in places:
        files = _reports(place)
        base = files[0].parent.parent if files[0].parent.name == "reports" else files[0].parent
        for path in files:
            _add(found, path, base=base, root=root)
        for session in {path.stem for path in files}:
            _add_earlier(found, files[0].parent / "history", session)
    found.sessions.sort(key=lambda session: session.at)
    return found


def _reports(place: Path) -> list[Path]:
    """The files of a place: of each session the rows, or the JUnit file where there are none."""
    if place.is_file():
        return [place]
    for folder in (place / ".evidence" / "reports", place / "reports", place):
        named = {path.stem: path for path in sorted(folder.glob("*.xml"))}
        named |= {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
        if named:
            return [named[name] for name in sorted(named)]
    expected = "a JUnit file, or a folder with reports/*.jsonl or *.xml, as .evidence is"
    raise BadInput(place, found="no report", expected=expected)


def _add(found: Gathered, path: Path, *, base: Path, root: Path) -> None:
    session, ended, spent = (
        _from_rows(path, base=base) if path.suffix == ".jsonl" else _from_junit(path, base, root)
    )
    found.sessions.append(session)
    found.costs.update(spent)
    for each in ended:
        one = One(ended=each, session=session, place=base)
        known = found.tests.get(each.test)
        found.tests[each.test] = one if known is None else _joined(known, one)


def _joined(one: One, other: One) -> One:
    words = {one.ended.word, other.ended.word}
    if Word.NOT_RUN in words:
        return other if one.ended.word is Word.NOT_RUN else one
    return max(one, other, key=lambda each: _ORDER.index(each.ended.word))


def _from_rows(path: Path, *, base: Path) -> tuple[Session, list[Ended], dict[str, Cost]]:
    began: Began | None = None
    finished: Finished | None = None
    ended: dict[str, Ended] = {}
    started: dict[str, float] = {}
    spent: dict[str, Cost] = {}
    for row in read_rows(path):
        match row:
            case Began():
                began = row
            case Started():
                started[row.test] = row.at
            case Ended():
                started.pop(row.test, None)
                ended[row.test] = row
            case Spent():
                spent = row.by_test
            case Finished():
                finished = row
    if began is None:
        raise BadInput(path, found="no row of a beginning", expected="outcomes of a session")
    last = max((each.at + each.seconds for each in ended.values()), default=began.at)
    return (
        _session(
            began.session,
            base=base,
            ended=ended.values(),
            machine=began.machine,
            at=began.at,
            seconds=(finished.at if finished else last) - began.at,
            end="by itself" if finished else "goes on" if _alive(began) else "killed",
            under_way=() if finished else tuple(started),
        ),
        list(ended.values()),
        spent,
    )


def _session(name: str, *, base: Path, ended: Iterable[Ended], end: str, **more: object) -> Session:
    counts = Counter(str(each.word) for each in ended)
    plain = {"name": name, "place": str(base), "ended": end, "tests": counts.total(), **more}
    return msgspec.convert({**plain, "counts": dict(counts)}, Session)


def _alive(began: Began) -> bool:
    """Whether the process that wrote it is still there, on this machine."""
    if began.machine != socket.gethostname() or not began.pid:
        return False
    try:
        os.kill(began.pid, 0)
    except OSError:
        return False
    return True


def _from_junit(path: Path, base: Path, root: Path) -> tuple[Session, list[Ended], dict[str, Cost]]:
    """A session that an earlier harness ran, or another pytest."""
    session = read_session(path, root=root)
    ended: dict[str, Ended] = {}
    for case in session.cases:
        each = _case(case, base=base)
        known = ended.get(each.test)
        heavier = known is None or _ORDER.index(each.word) > _ORDER.index(known.word)
        ended[each.test] = each if heavier else ended[each.test]
    at, machine = _head(path)
    told = _session(
        session.name,
        base=base,
        ended=ended.values(),
        end="by itself",
        at=at,
        machine=machine,
        seconds=session.seconds,
    )
    return told, list(ended.values()), {}


def _head(path: Path) -> tuple[float, str]:
    """When a session of a JUnit file began, and where; as far as it says so."""
    with path.open("rb") as file:
        for _, element in ET.iterparse(file, events=("start",)):  # noqa: S314 - of our own pytest
            if element.tag == "testsuite":
                try:
                    at = datetime.fromisoformat(element.get("timestamp", "")).timestamp()
                except ValueError:
                    at = 0.0
                return at, element.get("hostname", "")
    return 0.0, ""


def _case(case: Case, *, base: Path) -> Ended:
    word = {"passed": Word.PASSED, "skipped": Word.KNOWN if case.known else Word.NOT_RUN}.get(
        case.ending
    )
    if word is None:
        text = case.said
        harness = case.harness or case.message == "collection failure"
        harness = harness or text.startswith("harness_core.base.errors.")
        word = Word.HARNESS if harness else Word.FAILED
    file, _, name = case.nodeid.partition("::")
    folder = folder_of_test((file, None, name.replace("::", "."))) if file else ""
    return Ended(
        test=case.nodeid,
        word=word,
        at=0.0,
        seconds=case.seconds,
        evidence=folder if folder and (base / folder).is_dir() else "",
        said=case.said,
        text=case.text if case.ending in {"failure", "error"} else "",
    )


class _Brief(msgspec.Struct, frozen=True):
    """What history tells of a row; the rest of it is not read."""

    row: str
    test: str = ""
    word: Word = Word.NOT_RUN


_BRIEF: Final = msgspec.json.Decoder(_Brief)


def _add_earlier(found: Gathered, folder: Path, session: str) -> None:
    """How the tests of a session ended in the runs that are kept of it."""
    for path in _earlier(folder, session):
        words = {row.test: row.word for row in _briefs(path) if row.row == "ended"}
        for test, word in words.items():
            found.earlier[test] = found.earlier.get(test, "") + LETTERS[word]


def _briefs(path: Path) -> Iterator[_Brief]:
    for line in path.read_bytes().splitlines():
        try:
            yield _BRIEF.decode(line)
        except msgspec.DecodeError:
            continue


def _earlier(folder: Path, session: str) -> list[Path]:
    found = [(_EARLIER.match(path.name), path) for path in folder.glob("*.jsonl")]
    ours = [(int(name["at"]), path) for name, path in found if name and name["session"] == session]
    return [path for _, path in sorted(ours)]
