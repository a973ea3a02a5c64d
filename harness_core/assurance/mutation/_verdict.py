"""From what the tests and the agents of one mutant said to what that proves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from harness_core.assurance.planted import Outcomes, became

#: Characters of a failure that are kept; the evidence has the rest.
_KEPT_CHARS: Final = 400


class Verdict(StrEnum):
    """What the run of a mutant proves."""

    KILLED = "killed"
    KILLED_BADLY = "killed badly"
    SURVIVED = "survived"
    NOT_COVERED = "not covered"
    EQUIVALENT = "equivalent"
    STILLBORN = "stillborn"
    NO_VERDICT = "no verdict"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one mutant.

    Attributes:
        mutant: its id.
        verdict: what was proved.
        detail: why, in a sentence.
        test: the test that killed it; empty for none.
        tests_run: how many tests ended.
        tests_covering: how many there are that execute it.
        duration_s: seconds that the run took.
    """

    mutant: str
    verdict: Verdict
    detail: str
    test: str = ""
    tests_run: int = 0
    tests_covering: int = 0
    duration_s: float = 0.0


def judge_mutant(  # noqa: PLR0911, PLR0913 - one return for each verdict
    mutant: str,
    *,
    tests: Sequence[str],
    covering: int,
    outcomes: Outcomes,
    messages: Iterable[Mapping[str, Any]],
    limit_s: float | None,
    duration_s: float,
) -> Result:
    """Judge one run.

    Args:
        mutant: its id.
        tests: those that were to run; all of them pass without the mutant.
        covering: how many tests execute it.
        outcomes: what became of them.
        messages: of the agents, in the processes of the product.
        limit_s: the time limit that ended the run; ``None`` when it ended by itself.
        duration_s: how long it took.
    """
    said = list(messages)

    def result(verdict: Verdict, detail: str, test: str = "") -> Result:
        return Result(
            mutant=mutant,
            verdict=verdict,
            detail=detail[:_KEPT_CHARS],
            test=test,
            tests_run=len(outcomes.tests),
            tests_covering=covering,
            duration_s=round(duration_s, 3),
        )

    stale = next((message["stale"] for message in said if "stale" in message), "")
    if stale:
        return result(Verdict.NO_VERDICT, f"the code is not that of the index: {stale}")
    stillborn = next((message["stillborn"] for message in said if "stillborn" in message), "")
    if stillborn:
        return result(Verdict.STILLBORN, f"the product {stillborn}")
    loaded = any(message.get("loaded") == mutant for message in said)
    killed = next((test for test, each in outcomes.tests.items() if each.is_kill), None)
    if killed is not None and loaded:
        return result(Verdict.KILLED, outcomes.tests[killed].text.strip(), killed)
    if not loaded:
        return result(
            Verdict.NO_VERDICT,
            "no process of the product imported the damaged file from its source",
        )
    failed = [test for test, outcome in outcomes.tests.items() if outcome.outcome != "passed"]
    if failed:
        return result(Verdict.KILLED_BADLY, became(outcomes.tests[failed[0]]), failed[0])
    if limit_s is not None:
        return result(Verdict.KILLED_BADLY, f"no end within {limit_s:.0f} s")
    if not set(tests) <= set(outcomes.tests):
        missing = len(set(tests) - set(outcomes.tests))
        return result(
            Verdict.NO_VERDICT, f"{missing} of {len(tests)} tests did not run to their end"
        )
    return result(Verdict.SURVIVED, f"{len(tests)} of {covering} covering tests passed")
