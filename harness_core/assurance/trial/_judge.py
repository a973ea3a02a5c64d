"""From what became of the tests of a capability to what that says of a product.

A failed assertion is the product's; an error of the harness, a skip or an end of time says nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness_core.assurance.planted import Outcomes, TestOutcome, first_line
from harness_core.system.suites import Capability


class Verdict(StrEnum):
    """What is known of one capability of a product."""

    IN_VAIN = "claimed in vain"
    UNTRIED = "could not be tried"
    COULD = "could be claimed"
    HOLDS = "holds"
    LACKS = "neither claimed nor there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One capability.

    Attributes:
        name: of the capability.
        claimed: the subject file lists it.
        verdict: what is known of it.
        detail: why, in one line; empty for what is there.
    """

    name: str
    claimed: bool
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What the tests of one capability came to.

    Attributes:
        there: whether the product has it; ``None`` when that is not known.
        detail: why not, in one line.
        besides: the other capabilities that the failed test is marked with.
    """

    there: bool | None
    detail: str = ""
    besides: frozenset[str] = frozenset()


def judge(
    capabilities: Sequence[Capability],
    *,
    claimed: Collection[str],
    prefix: str,
    outcomes: Outcomes,
    unended: str,
) -> tuple[Tried, ...]:
    """What one run says of the capabilities that it tried.

    Args:
        capabilities: those.
        claimed: what the subject file lists.
        prefix: what stands before the ids of tests in this run.
        outcomes: what became of the tests.
        unended: why a test has no outcome.
    """
    shown = {each.name: _shown(each, prefix, outcomes, unended) for each in capabilities}
    # A test that needs two capabilities speaks of one alone where the other is there.
    alone = {name for name, each in shown.items() if each.there is False and not each.besides}
    tried = []
    for name, each in shown.items():
        lacking = sorted(each.besides & alone) if each.there is False else []
        seen = each
        if lacking:
            seen = _Shown(
                there=None, detail=f"its test needs {lacking[0]!r} too, which does not hold"
            )
        verdict = _verdict(there=seen.there, claimed=name in claimed)
        tried.append(Tried(name=name, claimed=name in claimed, verdict=verdict, detail=seen.detail))
    return tuple(tried)


def _verdict(*, there: bool | None, claimed: bool) -> Verdict:
    if there is None:
        return Verdict.UNTRIED
    if there:
        return Verdict.HOLDS if claimed else Verdict.COULD
    return Verdict.IN_VAIN if claimed else Verdict.LACKS


def _shown(capability: Capability, prefix: str, outcomes: Outcomes, unended: str) -> _Shown:
    """The first test that failed decides, then the first that says nothing; else it is there."""
    silent = ""
    for test in capability.shown_by:
        nodeids = outcomes.selected.get(f"{prefix}{test}", ())
        if not nodeids:
            silent = silent or f"{test} was not collected"
        for nodeid in nodeids:
            outcome = outcomes.tests.get(nodeid)
            if outcome is None:
                silent = silent or unended
            elif outcome.outcome == "failed" and not outcome.harness:
                besides = frozenset(outcome.capabilities) - {capability.name}
                return _Shown(there=False, detail=sentence(outcome), besides=besides)
            elif outcome.outcome == "failed":
                silent = silent or f"the harness could not run it: {sentence(outcome)}"
            elif outcome.outcome != "passed":
                silent = silent or sentence(outcome)
    return _Shown(there=None, detail=silent) if silent else _Shown(there=True)


def sentence(outcome: TestOutcome) -> str:
    """The first line of what ended a test, without the types that every test ends by."""
    line = first_line(outcome.text)
    for kind in ("AssertionError", "NotRun", "Skipped"):
        line = line.removeprefix(f"{kind}: ")
    return line
