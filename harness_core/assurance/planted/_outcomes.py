"""The record of one pytest run, read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

#: Characters of a failure shown in a table row; the log has the rest.
_SHOWN_CHARACTERS: Final = 160


class TestOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one test: its first phase that did not pass, or its call.

    Attributes:
        phase: ``setup``, ``call`` or ``teardown``.
        outcome: ``passed``, ``failed`` or ``skipped``.
        assertion: nothing but failed assertions ended it.
        text: type and message of the exceptions.
        duration_s: seconds that this phase took.
        starts: it is marked ``starts_product``.
        harness: an error of the harness ended it.
        capabilities: those that it is marked with.
    """

    __test__ = False

    phase: str
    outcome: str
    assertion: bool
    text: str
    duration_s: float = 0.0
    starts: bool = False
    harness: bool = False
    capabilities: tuple[str, ...] = ()

    @property
    def is_kill(self) -> bool:
        """Whether the test noticed: it failed in its own body, by assertion."""
        return self.outcome == "failed" and self.phase == "call" and self.assertion


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What became of every test of one run.

    Attributes:
        selected: for each id asked for, the tests it stands for.
        tests: by node id, in the order in which they ran; a test that never ended its call is
            missing.
        seconds: by node id, how long its phases took together.
    """

    selected: Mapping[str, tuple[str, ...]]
    tests: Mapping[str, TestOutcome]
    seconds: Mapping[str, float] = field(default_factory=dict)


def read_outcomes(path: Path) -> Outcomes:
    """Read what the outcomes plugin wrote; a run that wrote nothing has no outcomes."""
    selected: dict[str, tuple[str, ...]] = {}
    tests: dict[str, TestOutcome] = {}
    seconds: dict[str, float] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        row = json.loads(line)
        if "wanted" in row:
            selected[row["wanted"]] = tuple(row["nodeids"])
            continue
        # A sentence may quote bytes of the product that are no text; who prints or keeps it takes text.
        row["text"] = row["text"].encode("utf-8", "backslashreplace").decode()
        outcome = msgspec.convert(row, TestOutcome)
        seconds[row["nodeid"]] = seconds.get(row["nodeid"], 0.0) + outcome.duration_s
        earlier = tests.get(row["nodeid"])
        if _decides(outcome, earlier):
            tests[row["nodeid"]] = outcome
    return Outcomes(selected=selected, tests=tests, seconds=seconds)


def merged(parts: Iterable[Outcomes]) -> Outcomes:
    """What several runs of other tests saw, as one."""
    selected: dict[str, tuple[str, ...]] = {}
    tests: dict[str, TestOutcome] = {}
    seconds: dict[str, float] = {}
    for part in parts:
        selected |= part.selected
        tests |= part.tests
        seconds |= part.seconds
    return Outcomes(selected=selected, tests=tests, seconds=seconds)


def _decides(outcome: TestOutcome, earlier: TestOutcome | None) -> bool:
    """The first phase that did not pass decides; else the call. A passed setup says nothing."""
    if earlier is not None and earlier.outcome != "passed":
        return False
    return outcome.outcome != "passed" or outcome.phase == "call"


def became(outcome: TestOutcome | None) -> str:
    """What happened to a test that shows nothing; ``None`` is one that did not end."""
    if outcome is None:
        return "it did not run to its end"
    if outcome.outcome == "skipped":
        return f"skipped: {first_line(outcome.text)}"
    kind = "failed an assertion" if outcome.assertion else "raised, which is no assertion,"
    return f"{kind} in {outcome.phase}: {first_line(outcome.text)}"


def first_line(text: str) -> str:
    """The first line with something in it, cut where a row of a table would be too long."""
    line = next((line for line in text.splitlines() if line.strip()), "no text")
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "..."
