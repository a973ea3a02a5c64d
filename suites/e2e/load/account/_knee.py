"""Where more load brings no more work done: the knee of a ramp, from what each step finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suites.e2e.load.account._percentiles import Timings

__all__ = ["Step", "knee", "steps_table"]

#: A step keeps up when it finishes at least this share of what came in during it.
_KEEPS_UP: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rate of a ramp, while it was offered.

    Attributes:
        rate_per_s: messages offered per second, whatever became of those before.
        sent: messages that were sent in it.
        finished: messages, of this step or an earlier one, that reached their end in it.
        backlog: messages under way at its end.
        late_ms: how far behind its time the sender itself was, at worst.
        ingest: from a message to its answer.
        whole: from a message to its end.
    """

    rate_per_s: float
    sent: int
    finished: int
    backlog: int
    late_ms: float
    ingest: Timings
    whole: Timings

    @property
    def keeps_up(self) -> bool:
        """Whether about as much was finished as came in."""
        return self.finished >= _KEEPS_UP * self.sent


def knee(steps: Sequence[Step]) -> str:
    """Where the knee of a ramp is, in words; for people, never for a verdict.

    Args:
        steps: in the order of their rates.
    """
    kept = 0
    while kept < len(steps) and steps[kept].keeps_up:
        kept += 1
    if not steps:
        return "no step was run"
    if kept == 0:
        return f"below {steps[0].rate_per_s:g} messages/s, the first rate"
    if kept == len(steps):
        return f"not reached at {steps[-1].rate_per_s:g} messages/s, the last rate"
    best = max(step.finished / step.sent * step.rate_per_s for step in steps if step.sent)
    return (
        f"between {steps[kept - 1].rate_per_s:g} and {steps[kept].rate_per_s:g} messages/s "
        f"(at most {best:.2f} messages/s were finished)"
    )


def steps_table(steps: Sequence[Step]) -> str:
    """One line for each step, for people."""
    head = "  offered/s  sent  finished  backlog  ingest p50/p95 ms  message p50/p95 ms  sender late ms"
    return "\n".join([head, *map(_line, steps)])


def _line(step: Step) -> str:
    return (
        f"  {step.rate_per_s:9g} {step.sent:5} {step.finished:9} {step.backlog:8} "
        f"{_pair(step.ingest):>18} {_pair(step.whole):>19} {step.late_ms:15.0f}"
    )


def _pair(timings: Timings) -> str:
    if not timings.samples_ms:
        return "none"
    return f"{timings.at(50):.0f}/{timings.at(95):.0f}"
