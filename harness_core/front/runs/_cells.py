"""What a run shows of each contract: the cells of one column of a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness_core.assurance.requirements import Covering, Ledger
from harness_core.front.outcomes import Word
from harness_core.front.runs._run import Ended

#: Of tests that were not chosen, so many are named.
_NAMED: Final = 3


class Shows(StrEnum):
    """What a run shows of one contract."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    BROKEN = "broken"
    KNOWN = "known"
    NOT_RUN = "not run"
    HARNESS = "harness could not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One contract on one product.

    Attributes:
        shows: in a word.
        count: how many cases are broken, or known.
        why: the first line of the first of them, or why it was not run, or not whole.
        test: the case that says so; empty where it is about several.
    """

    shows: Shows
    count: int = 0
    why: str = ""
    test: str = ""

    @property
    def text(self) -> str:
        """``broken (3)``."""
        return f"{self.shows} ({self.count})" if self.count else str(self.shows)


def cells_of(
    ledger: Ledger, tests: Sequence[Covering], ended: Mapping[str, Ended], *, prefix: str
) -> dict[str, Cell]:
    """Contract → what a run shows of it; deferred ones are left out.

    Args:
        ledger: the contracts.
        tests: of the suite.
        ended: what became of cases.
        prefix: of the suite's folder in their ids.
    """
    cases: dict[str, dict[str, Ended]] = {}
    for nodeid, each in ended.items():
        if nodeid.startswith(f"{prefix}/"):
            short = nodeid.removeprefix(f"{prefix}/")
            cases.setdefault(short.partition("[")[0], {})[short] = each
    return {
        row.id: _cell({t.nodeid: cases.get(t.nodeid, {}) for t in tests if row.id in t.ids})
        for row in ledger.covered
    }


def _cell(tests: Mapping[str, Mapping[str, Ended]]) -> Cell:
    """Of one contract: its tests, each with its cases."""
    cases = {case: ended for each in tests.values() for case, ended in each.items()}
    for word, shows in (
        (Word.FAILED, Shows.BROKEN),
        (Word.HARNESS, Shows.HARNESS),
        (Word.KNOWN, Shows.KNOWN),
    ):
        found = [(case, ended) for case, ended in cases.items() if ended.word is word]
        if found:
            case, first = found[0]
            return Cell(shows=shows, count=len(found), why=first.why, test=case)
    missing = [test for test, each in tests.items() if not each]
    reasons = Counter(ended.why for ended in cases.values() if ended.word is Word.NOT_RUN)
    why = [f"{count} of {len(cases)}: {reason}" for reason, count in reasons.most_common()]
    if missing and len(missing) < len(tests):
        named = [*missing[:_NAMED], *(["…"] if len(missing) > _NAMED else [])]
        why.append(f"{len(missing)} of {len(tests)} tests were not chosen: {', '.join(named)}")
    if len(reasons) == 1 and reasons.total() == len(cases) and not missing:
        why = list(reasons)
    if not any(ended.word is Word.PASSED for ended in cases.values()):
        return Cell(shows=Shows.NOT_RUN, why="; ".join(why) or "no test of it was chosen")
    return Cell(shows=Shows.IN_PART if why else Shows.HOLDS, why="; ".join(why))
