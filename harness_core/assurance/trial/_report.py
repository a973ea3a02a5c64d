"""What a trial of capabilities reports to people and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_core.assurance.trial._judge import Verdict
from harness_core.assurance.trial._run import Trial
from harness_core.base.screen import columns, stacked, tinted

if TYPE_CHECKING:
    from harness_core.base.screen import Shown

_GOOD: Final = frozenset({Verdict.HOLDS, Verdict.COULD, Verdict.LACKS})


def render_trial(trial: Trial) -> Shown:
    """One line per capability, what is wrong first; or what became of the start."""
    name, file = trial.subject.name, trial.subject.path.name
    if trial.not_started:
        title = (
            f"{name} ({file}) does not start, so that no capability of {trial.suite.name} was tried"
        )
        return stacked(title, stacked(trial.not_started, indent=2))
    order = list(Verdict)
    tried = sorted(trial.tried, key=lambda each: order.index(each.verdict))
    # An empty column would cost the one before it its last letter.
    reasons = any(each.detail for each in tried)
    rows = [
        (tinted(str(each.verdict), good=each.verdict in _GOOD), each.name)
        + ((each.detail,) if reasons else ())
        for each in tried
    ]
    counts = [
        f"{number} {verdict}"
        for verdict in order
        if (number := sum(each.verdict is verdict for each in tried))
    ]
    title = f"capabilities of {trial.suite.name} that {name} ({file}) has"
    summary = ", ".join(counts) or f"it starts; {trial.suite.name} declares no capabilities"
    return stacked(title, stacked(columns(rows), summary, indent=2))


def to_json(trial: Trial) -> dict[str, object]:
    """The same as plain data, in the order of the suite.toml."""
    return {
        "suite": trial.suite.name,
        "subject": trial.subject.name,
        "file": str(trial.subject.path),
        "starts": not trial.not_started,
        "not_started": trial.not_started,
        "capabilities": [
            {
                "name": each.name,
                "claimed": each.claimed,
                "verdict": str(each.verdict),
                "detail": each.detail,
            }
            for each in trial.tried
        ],
    }
