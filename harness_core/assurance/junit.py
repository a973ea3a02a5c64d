"""The JUnit file that pytest writes of a session, read back: what became of each test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

from harness_core.base.errors import BadInput

_PHASE: Final = re.compile(r'^failed on (setup|teardown) with "(?P<text>.*)"$', re.DOTALL)

#: Of a module that could not be collected, the last lines of the error.
_ERROR_LINES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One entry; a test that failed and whose teardown went wrong has two.

    Attributes:
        nodeid: id of the test, or the path of a module that could not be collected.
        file: relative to the root; empty when it is not in the tree.
        ending: ``failure`` of an assertion or the test's own error, ``error`` of a fixture.
        message: in one sentence, e.g. the reason of a skip.
        text: the whole report of pytest.
        known: it was expected to fail.
        harness: the harness is to blame, not the product.
        seconds: how long it took.
    """

    nodeid: str
    file: str
    ending: Literal["passed", "failure", "error", "skipped"]
    message: str = ""
    text: str = ""
    known: bool = False
    harness: bool = False
    seconds: float = 0.0

    @property
    def said(self) -> str:
        """What a failure says, without the phase that it belongs to."""
        if self.message == "collection failure":
            # The error itself comes last, below the line it is about.
            found = re.findall(r"^E +(.*)$", self.text, re.MULTILINE)
            return "\n".join(found[-_ERROR_LINES:]) or self.text
        phase = _PHASE.match(self.message)
        return phase["text"] if phase else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A whole file.

    Attributes:
        name: of the nox session, after which the file is named.
        cases: in the order of the file.
        seconds: how long it took.
    """

    name: str
    cases: tuple[Case, ...]
    seconds: float


def read_session(path: Path, *, root: Path) -> Session:
    """Read one file.

    Args:
        path: ``.evidence/reports/SESSION.xml``.
        root: what ids of tests are relative to.

    Raises:
        BadInput: it is no such file, e.g. of a run that was killed.
    """
    try:
        suites = ET.parse(path).getroot().findall("testsuite")  # noqa: S314 - of our own pytest
    except (OSError, ET.ParseError) as error:
        raise BadInput(path, found=str(error), expected="a JUnit report") from error
    if not suites:
        raise BadInput(path, found="no <testsuite>", expected="a JUnit report of pytest")
    return Session(
        name=path.stem,
        cases=tuple(_case(case, root=root) for suite in suites for case in suite.iter("testcase")),
        seconds=sum(float(suite.get("time") or 0) for suite in suites),
    )


def _case(case: ET.Element, *, root: Path) -> Case:
    file, nodeid = _node_of(case, root=root)
    seconds = float(case.get("time") or 0)
    for ending in ("failure", "error", "skipped"):
        found = case.find(ending)
        if found is not None:
            return Case(
                nodeid=nodeid,
                file=file,
                ending=ending,
                message=found.get("message") or "",
                text=found.text or "",
                known=found.get("type") == "pytest.xfail",
                harness=case.find("properties/property[@name='harness_error']") is not None,
                seconds=seconds,
            )
    return Case(nodeid=nodeid, file=file, ending="passed", seconds=seconds)


def _node_of(case: ET.Element, *, root: Path) -> tuple[str, str]:
    """The file of a test, and its node id; JUnit has them as ``package.module.Class`` and a name."""
    dotted = [*filter(None, (case.get("classname") or "").split("."))]
    name = case.get("name") or ""
    if not dotted:
        # A module that could not be collected.
        path = "/".join(name.split(".")) + ".py"
        return (path, path) if (root / path).is_file() else ("", name)
    for end in range(len(dotted), 0, -1):
        path = "/".join(dotted[:end]) + ".py"
        if (root / path).is_file():
            return path, "::".join([path, *dotted[end:], name])
    return "", "::".join([".".join(dotted), name])
