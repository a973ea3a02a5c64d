"""What a campaign tells people and machines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harness_core.assurance.mutation._campaign import each_result
from harness_core.assurance.mutation._choice import wilson
from harness_core.assurance.mutation._store import Store
from harness_core.assurance.mutation._verdict import Verdict
from harness_core.base.screen import columns, stacked, tinted

if TYPE_CHECKING:
    from harness_core.base.screen import Shown

#: What a share is of: mutants that a test could have noticed.
_JUDGED = (Verdict.KILLED, Verdict.KILLED_BADLY, Verdict.SURVIVED, Verdict.NOT_COVERED)


def render_survivors(store: Store) -> Shown:
    """What survived, with its diff and the tests that passed; then how many became what."""
    parts: list[Shown | str] = []
    for mutant, result in each_result(store):
        if result.verdict in {Verdict.SURVIVED, Verdict.KILLED_BADLY, Verdict.NO_VERDICT}:
            place = f"{mutant['file']}:{mutant['line']} {mutant['function']}"
            row = (tinted(result.verdict.upper(), good=False), str(mutant["id"]), place)
            diff = str(mutant["diff"]) if result.verdict is Verdict.SURVIVED else ""
            parts.append(columns([row]))
            detail = f"{result.detail} ({result.test})" if result.test else result.detail
            parts.append(stacked(f"{mutant['operator']}: {mutant['what']}", detail, diff, indent=2))
    return stacked(*parts, render_summary(store))


def render_summary(store: Store) -> Shown:
    """How many became what, and what share of all mutants that says is killed by assertion."""
    counts = Counter(result.verdict for result in store.results().values())
    rows = [
        (tinted(str(verdict), good=verdict is Verdict.KILLED), str(counts[verdict]))
        for verdict in Verdict
        if counts[verdict]
    ]
    meta = store.meta
    title = f"mutants of {meta['suite']}: {meta['chosen']}, of {meta['mutants']}"
    if meta.get("shard"):
        title += f", shard {meta['shard']}"
    inner = stacked(columns(rows, right=[1]), _share(counts, meta), indent=2)
    return stacked(title, inner, *meta.get("without_agent", "").splitlines())


def _share(counts: Counter[Verdict], meta: dict[str, str]) -> str:
    killed, of = counts[Verdict.KILLED], sum(counts[verdict] for verdict in _JUDGED)
    if not of:
        return "no mutant was judged"
    low, high = wilson(killed, of)
    text = f"{killed} of {of} killed by assertion: {killed / of:.0%}"
    whole = meta["chosen"] == "all" and not meta.get("shard")
    return text if whole else f"{text} (of all, {low:.0%} to {high:.0%} with 95 % confidence)"


def to_json(store: Store) -> dict[str, Any]:
    """The same as plain data."""
    counts = Counter(result.verdict for result in store.results().values())
    killed, of = counts[Verdict.KILLED], sum(counts[verdict] for verdict in _JUDGED)
    return {
        **store.meta,
        "counts": {str(verdict): counts[verdict] for verdict in Verdict},
        "killed_of_judged": [killed, of],
        "interval_95": list(wilson(killed, of)),
        "mutants": [
            {
                **mutant,
                "verdict": str(result.verdict),
                "detail": result.detail,
                "test": result.test,
                "tests_run": result.tests_run,
                "tests_covering": result.tests_covering,
                "duration_s": result.duration_s,
            }
            for mutant, result in each_result(store)
        ],
    }
