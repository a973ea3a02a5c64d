"""What became of each test of a run: its JUnit files, read as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_core.assurance.junit import Case, read_session
from harness_core.base.errors import BadInput
from harness_core.front.causes import without_kind
from harness_core.front.outcomes import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of one test.

    Attributes:
        word: how it ended.
        why: the first line of its failure, or the reason for which it is known or was not run.
        seconds: how long it took.
    """

    word: Word
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one or more sessions came to.

    Attributes:
        place: the file or folder that it was read from.
        tests: id of a test → what became of it.
        seconds: of all its sessions together.
    """

    place: Path
    tests: Mapping[str, Ended]
    seconds: float

    def account(self) -> str:
        """``7 tests: 5 passed, 2 failed, in 12.3 s``."""
        counts = Counter(ended.word for ended in self.tests.values())
        parts = [f"{counts[word]} {word}" for word in Word if counts[word]]
        became = f": {', '.join(parts)}," if parts else ""
        return f"{len(self.tests)} tests{became} in {self.seconds:.1f} s"


def read_run(place: Path, *, root: Path) -> Run:
    """Read a JUnit file, or all of an evidence folder, of a folder of reports, of a tree.

    A test of several sessions is what it is in the one that ran it; where several did, the worst.

    Args:
        place: the file or folder.
        root: what ids of tests are relative to.

    Raises:
        BadInput: there is no such file in it, or one that is none.
    """
    tests: dict[str, Ended] = {}
    seconds = 0.0
    for path in _reports(place):
        session = read_session(path, root=root)
        seconds += session.seconds
        for case in session.cases:
            ended = _ended(case)
            tests[case.nodeid] = _joined(tests.get(case.nodeid, ended), ended)
    return Run(place=place, tests=tests, seconds=seconds)


def _reports(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    for folder in (place / ".evidence" / "reports", place / "reports", place):
        if found := sorted(folder.glob("*.xml")):
            return found
    expected = "a JUnit file, or a folder with reports/*.xml, as .evidence is"
    raise BadInput(place, found="no report", expected=expected)


def _joined(one: Ended, other: Ended) -> Ended:
    if Word.NOT_RUN in {one.word, other.word}:
        return other if one.word is Word.NOT_RUN else one
    return max(one, other, key=lambda ended: list(Word).index(ended.word))


def _ended(case: Case) -> Ended:
    lines = [line.strip() for line in without_kind(case.said).splitlines() if line.strip()]
    why = lines[0] if lines else ""
    if case.ending == "passed":
        return Ended(word=Word.PASSED, seconds=case.seconds)
    if case.ending == "skipped":
        return Ended(word=Word.KNOWN if case.known else Word.NOT_RUN, why=why or "no reason given")
    # A module that could not be collected says nothing of the product.
    harness = case.harness or case.message == "collection failure"
    word = Word.HARNESS if harness else Word.FAILED
    return Ended(word=word, why=why or "it says nothing", seconds=case.seconds)
