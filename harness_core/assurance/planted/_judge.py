"""From what the tests did to what that proves.

A kill is narrow on purpose: every named test failed, in its own body, by assertion, with the
expected text. An error, a timeout or a skip shows that something broke, not that a test noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness_core.assurance.planted._outcomes import Outcomes, TestOutcome, became, first_line
from harness_core.assurance.planted._plan import Fault


class Verdict(StrEnum):
    """What one run under a fault proves."""

    KILLED = "killed"
    SURVIVED = "survived"
    NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One named test under one fault.

    Attributes:
        test: node id, or the id asked for when no test has it.
        verdict: what it proves.
        detail: why, in one line.
    """

    __test__ = False

    test: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultResult:
    """One fault: survived if any named test passed, killed if every one noticed."""

    fault: Fault
    tests: tuple[TestResult, ...]
    duration_s: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on the fault as a whole."""
        verdicts = {test.verdict for test in self.tests}
        if Verdict.SURVIVED in verdicts:
            return Verdict.SURVIVED
        return Verdict.KILLED if verdicts == {Verdict.KILLED} else Verdict.NO_VERDICT


def judge_control(wanted: Sequence[str], *, control: Outcomes) -> tuple[TestResult, ...]:
    """Tests that can prove nothing, because they do not pass without the fault.

    Args:
        wanted: test ids as the control run was given them.
        control: what became of them without any fault.
    """
    results: list[TestResult] = []
    for name in wanted:
        nodeids = control.selected.get(name, ())
        if not nodeids:
            seen = "no test has this id" if name in control.selected else "nothing was collected"
            results.append(_none(name, f"control run: {seen}"))
        for nodeid in nodeids:
            before = control.tests.get(nodeid)
            if before is None or before.outcome != "passed":
                results.append(_none(nodeid, f"control run: {became(before)}"))
    return tuple(results)


def judge(
    fault: Fault,
    *,
    nodeids: Sequence[str],
    outcomes: Outcomes,
    timed_out: bool,
    at_once: bool = False,
) -> tuple[TestResult, ...]:
    """Judge every test that a fault names, all of which pass without it.

    Args:
        fault: the fault that was switched on.
        nodeids: its tests.
        outcomes: what became of them.
        timed_out: the run was ended by its time limit.
        at_once: the first line of the message has to say it.
    """
    return tuple(
        _one(fault, nodeid, outcomes.tests.get(nodeid), timed_out=timed_out, at_once=at_once)
        for nodeid in nodeids
    )


def judge_beside(
    fault: Fault, *, named: Collection[str], outcomes: Outcomes, control: Outcomes | None
) -> tuple[TestResult, ...]:
    """What else failed, and does not say what the fault does: its reader is misled.

    Args:
        fault: the fault that was switched on.
        named: its tests.
        outcomes: what became of these and of others.
        control: what became of them without any fault, where that is known.
    """
    before = control.tests if control else {}
    red = {nodeid for nodeid, outcome in before.items() if outcome.outcome == "failed"}
    return tuple(
        _none(nodeid, f"blamed besides: {became(after)}")
        for nodeid, after in outcomes.tests.items()
        if after.outcome == "failed" and nodeid not in {*named, *red}
        if not (after.is_kill and fault.says.search(_opening(after.text)))
    )


def judge_right(outcomes: Outcomes, *, named: Sequence[str], least: int) -> tuple[str, ...]:
    """What is wrong when a product without any fault is judged, a line each.

    Args:
        outcomes: what became of the tests.
        named: those that its faults name; each has to pass.
        least: as many pass at least.
    """
    blamed = [
        f"{nodeid}: {became(outcome)}"
        for nodeid, outcome in outcomes.tests.items()
        if outcome.outcome == "failed"
    ]
    silent = [
        f"{each.test}: {each.detail}"
        for each in judge_control(named, control=outcomes)
        if each.test not in outcomes.tests or outcomes.tests[each.test].outcome != "failed"
    ]
    passed = sum(outcome.outcome == "passed" for outcome in outcomes.tests.values())
    few = [f"{passed} tests passed, expected {least} at least"] if passed < least else []
    return (*blamed, *silent, *few)


def _opening(text: str) -> str:
    """The whole first line with something in it."""
    return next(filter(str.strip, text.splitlines()), "")


def _one(
    fault: Fault, nodeid: str, after: TestOutcome | None, *, timed_out: bool, at_once: bool
) -> TestResult:
    if timed_out and (after is None or after.outcome != "passed"):
        # What a test says while it is being interrupted is about the interrupt.
        return _none(nodeid, f"no end within {fault.limit_s:g} s")
    if after is None:
        return _none(nodeid, became(after))
    if after.outcome == "passed":
        return TestResult(test=nodeid, verdict=Verdict.SURVIVED, detail="it passed")
    if after.is_kill:
        if fault.says.search(_opening(after.text) if at_once else after.text):
            return TestResult(test=nodeid, verdict=Verdict.KILLED, detail=first_line(after.text))
        found = first_line(after.text)
        return _none(nodeid, f"wrong reason: nothing like /{fault.says.pattern}/ in: {found}")
    return _none(nodeid, became(after))


def _none(test: str, detail: str) -> TestResult:
    return TestResult(test=test, verdict=Verdict.NO_VERDICT, detail=detail)
