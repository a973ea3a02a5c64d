"""The reports that a job left: pytest's JUnit file, and the JSON of planted faults."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from harness_core.base.errors import BadInput

#: Lines of a cause that are shown; the evidence has the rest.
CAUSE_LINES: Final = 3

_PLACE = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<line>[0-9]+): ", re.MULTILINE)
_PHASE = re.compile(r'^failed on (setup|teardown) with "(?P<said>.*)"$', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One test that failed, or one planted fault that was not killed.

    Attributes:
        name: the node id of the test, or the fault's id.
        kind: ``failed``, ``error`` or ``HARNESS ERROR`` of a test; the verdict on a fault.
        cause: the first lines of what it said.
        file: where it failed, relative to the root; empty when that is not in the tree.
        line: in that file; 0 when it is not known.
        rerun: the command that runs it again.
    """

    name: str
    kind: str
    cause: tuple[str, ...]
    file: str = ""
    line: int = 0
    rerun: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one session came to.

    Attributes:
        session: its name.
        passed: tests that passed, or faults that were killed.
        failures: those that did not, in the order of the file.
        skips: for each reason, how many were skipped.
        seconds: how long it took.
    """

    session: str
    passed: int
    failures: tuple[Failure, ...]
    seconds: float
    skips: Mapping[str, int] = field(default_factory=dict)


def read_reports(root: Path) -> tuple[Report, ...]:
    """Every report in the evidence of a tree: of sessions first, then of planted faults.

    Raises:
        BadInput: a file is no report.
    """
    evidence = root / ".evidence"
    tests = [read_report(path, root=root) for path in sorted(evidence.glob("reports/*.xml"))]
    planted = [read_faults(path) for path in sorted(evidence.glob("faults/*/report.json"))]
    return (*tests, *planted)


def read_report(path: Path, *, root: Path) -> Report:
    """Read the JUnit file of a session, which is named after it.

    Raises:
        BadInput: it is no such file.
    """
    try:
        suite = ET.parse(path).getroot().find("testsuite")  # noqa: S314 - written by our own pytest
    except (OSError, ET.ParseError) as error:
        raise BadInput(path, found=str(error), expected="a JUnit report") from error
    if suite is None:
        raise BadInput(path, found="no <testsuite>", expected="a JUnit report of pytest")
    outcomes: dict[str, bool] = {}
    failures = []
    skips: Counter[str] = Counter()
    for case in suite.iter("testcase"):
        _, name = node = _node_of(case, root=root)
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        # A test whose body and teardown failed is there twice.
        outcomes[name] = bad is None and skipped is None
        if bad is not None:
            failures.append(_failure(case, bad, node=node, session=path.stem, root=root))
        elif skipped is not None:
            skips[_reason(skipped)] += 1
    return Report(
        session=path.stem,
        passed=sum(outcomes.values()),
        failures=tuple(failures),
        skips=dict(skips.most_common()),
        seconds=float(suite.get("time") or 0),
    )


def read_faults(path: Path) -> Report:
    """Read ``.evidence/faults/SUITE/report.json``.

    Raises:
        BadInput: it is no such file.
    """
    suite = path.parent.name
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        failures = [
            Failure(
                name=row["id"],
                kind=row["verdict"],
                cause=tuple(
                    f"{test['test']}: {test['detail']}"
                    for test in row["tests"]
                    if test["verdict"] != "killed"
                )[:CAUSE_LINES],
                rerun=f"nox -s faults -- {suite} {row['id']}",
            )
            for row in rows
            if row["verdict"] != "killed"
        ]
        seconds = sum(row["duration_s"] for row in rows)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadInput(path, found=repr(error), expected="a report of planted faults") from error
    return Report(
        session=f"faults-{suite}",
        passed=len(rows) - len(failures),
        failures=tuple(failures),
        seconds=seconds,
    )


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


def _failure(
    case: ET.Element, bad: ET.Element, *, node: tuple[str, str], session: str, root: Path
) -> Failure:
    (file, name), text, message = node, bad.text or "", bad.get("message") or ""
    phase = _PHASE.match(message)
    said = phase["said"] if phase else message
    if message == "collection failure":
        # The error itself comes last, below the line it is about.
        said = "\n".join(re.findall(r"^E +(.*)$", text, re.MULTILINE)[-CAUSE_LINES:]) or text
    # The harness's plugin says so; a module that could not be collected has no such property.
    blamed = case.find("properties/property[@name='harness_error']") is not None
    harness = blamed or said.startswith("harness_core.base.errors.")
    kind = "HARNESS ERROR" if harness else "error" if bad.tag == "error" else "failed"
    cause = [line for line in said.splitlines() if line.strip()][:CAUSE_LINES]
    where, line = _place(text, file, root=root)
    return Failure(
        name=name,
        kind=kind,
        cause=tuple(cause) or ("it said nothing",),
        file=where,
        line=line,
        rerun=shlex.join(["nox", "-s", session, "--", name]),
    )


def _place(text: str, file: str, *, root: Path) -> tuple[str, int]:
    """Where a failure is shown: the last line of the test's own file, else of another in the tree."""
    places = [(match["path"], int(match["line"])) for match in _PLACE.finditer(text)]
    own = [place for place in places if place[0] == file]
    near = [place for place in places if (root / place[0]).is_file() and place[0][0] != "/"]
    return (own or near or [(file, 0)])[-1]


def _reason(skipped: ET.Element) -> str:
    return (skipped.get("message") or "no reason").strip().splitlines()[0]
