"""What the fault runner reports to people and machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_core.assurance.planted._judge import FaultResult, Verdict
from harness_core.base.screen import columns, stacked, tinted

if TYPE_CHECKING:
    from harness_core.base.screen import Shown


def render_table(results: Sequence[FaultResult], *, title: str) -> Shown:
    """One line per fault; below each that was not killed, one line per test that shows why."""
    rows = [
        (
            tinted(result.verdict.upper(), good=result.verdict is Verdict.KILLED),
            result.fault.id,
            f"{result.duration_s:.1f} s",
            "\n".join([result.fault.why, *_alive(result)]),
        )
        for result in results
    ]
    killed = sum(result.verdict is Verdict.KILLED for result in results)
    count = f"{killed} of {len(results)} planted faults killed"
    return stacked(title, stacked(columns(rows, right=[2]), count, indent=2))


def _alive(result: FaultResult) -> list[str]:
    """The tests that show why a fault was not killed."""
    if result.verdict is Verdict.KILLED:
        return []
    return [
        f"{test.test}: {test.detail}" for test in result.tests if test.verdict is not Verdict.KILLED
    ]


def to_json(results: Sequence[FaultResult]) -> list[dict[str, object]]:
    """The same as plain data, in the order of the runs."""
    return [
        {
            "id": result.fault.id,
            "requirement": result.fault.requirement,
            "why": result.fault.why,
            "verdict": str(result.verdict),
            "duration_s": round(result.duration_s, 3),
            "tests": [
                {"test": test.test, "verdict": str(test.verdict), "detail": test.detail}
                for test in result.tests
            ],
        }
        for result in results
    ]
