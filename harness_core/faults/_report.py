"""What the fault runner tells people and machines."""

from __future__ import annotations

from collections.abc import Sequence

from harness_core.faults._judge import FaultResult, Verdict

__all__ = ["render_table", "to_json"]


def render_table(results: Sequence[FaultResult], *, title: str) -> str:
    """One line per fault; below each that was not killed, one line per test that shows why."""
    id_width = max((len(result.fault.id) for result in results), default=0)
    lines = [title]
    for result in results:
        name = result.fault.id.ljust(id_width)
        lines.append(
            f"  {result.verdict.upper():10}  {name}  {result.duration_s:6.1f} s  {result.fault.why}"
        )
        if result.verdict is not Verdict.KILLED:
            lines.extend(
                f"              {test.test}: {test.detail}"
                for test in result.tests
                if test.verdict is not Verdict.KILLED
            )
    killed = sum(result.verdict is Verdict.KILLED for result in results)
    lines.append(f"  {killed} of {len(results)} planted faults killed")
    return "\n".join(lines)


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
