"""What a run that asks a provider may spend, and probably will: shown before it begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_core.base import limits
from harness_core.system.suites import load_suite

__all__ = ["ModelBudget", "cost_plan", "model_budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBudget:
    """The hard limit of what a suite's models may cost in a run.

    Attributes:
        usd: the limit.
        source: who set it.
    """

    usd: float
    source: str


def model_budget(folder: Path | None, *, given: float | None) -> ModelBudget:
    """The limit that holds: what the command line says, else the suite, else the usual.

    Args:
        folder: of the suite; ``None`` outside of every suite.
        given: with ``--llm-budget-usd``.

    Raises:
        BadInput: the suite's suite.toml is malformed.
    """
    if given is not None:
        return ModelBudget(usd=given, source="--llm-budget-usd")
    own = load_suite(folder).budget_usd if folder is not None else None
    if folder is not None and own is not None:
        return ModelBudget(usd=own, source=f"budget_usd in {folder.name}/suite.toml")
    return ModelBudget(usd=limits.LLM_BUDGET_USD, source="the default")


def cost_plan(
    chosen: Sequence[tuple[str, ModelBudget, Collection[str]]],
    *,
    mode: str,
    known: Mapping[str, float],
) -> list[str]:
    """Lines for a person who is about to spend money.

    Args:
        chosen: name of each suite, its budget, the ids of its tests that are chosen.
        mode: of the gateway.
        known: id of a test → USD it would have cost when it was last run offline.
    """
    lines = []
    for name, budget, tests in chosen:
        priced = [known[test] for test in tests if test in known]
        unknown = len(tests) - len(priced)
        lines.append(
            f"models ({mode}): {name} may spend {budget.usd:.2f} USD ({budget.source}); "
            f"{_counted(len(tests), 'test')} chosen"
        )
        if not priced:
            lines.append("  none of them was run offline here, so what they cost is not known")
            continue
        rest = f"; {_counted(unknown, 'test')} of them not run offline here" if unknown else ""
        total = sum(priced)
        lines.append(f"  once each, at the tokens counted offline: {total:.2f} USD{rest}")
        if total > budget.usd:
            lines.append("  that is more than they may spend: the run will stop before its end")
    if len(chosen) > 1:
        total = sum(budget.usd for _, budget, _ in chosen)
        lines.append(f"  together at most {total:.2f} USD")
    return lines


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
