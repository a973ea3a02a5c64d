"""What two runs have not in common: of two versions, or of two products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness_core.base.screen import columns, stacked
from harness_core.front.runs._run import Ended, Run

if TYPE_CHECKING:
    from harness_core.base.screen import Shown

#: Of tests that took another time, so many are shown, the furthest apart first.
_TIMES: Final = 10

#: Times less apart than this, or in seconds than this, are the same.
_FACTOR: Final = 2.0
_APART_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs.

    Attributes:
        a: the one.
        b: the other.
    """

    a: Run
    b: Run

    @property
    def only_in_a(self) -> Mapping[str, Ended]:
        """Tests that the other run has not."""
        return {test: ended for test, ended in self.a.tests.items() if test not in self.b.tests}

    @property
    def only_in_b(self) -> Mapping[str, Ended]:
        """Tests that the one has not."""
        return {test: ended for test, ended in self.b.tests.items() if test not in self.a.tests}

    @property
    def otherwise(self) -> Mapping[str, tuple[Ended, Ended]]:
        """Tests that ended in another way, or failed with another first line."""
        return {
            test: (one, other)
            for test, (one, other) in self._both().items()
            if (one.word, one.why) != (other.word, other.why)
        }

    @property
    def times(self) -> Mapping[str, tuple[Ended, Ended]]:
        """Tests that took at least twice as long, and a second more, in one of them."""
        found = [
            (test, (one, other))
            for test, (one, other) in self._both().items()
            if abs(one.seconds - other.seconds) >= _APART_S
            and max(one.seconds, other.seconds) >= _FACTOR * min(one.seconds, other.seconds)
        ]
        return dict(sorted(found, key=lambda row: -abs(row[1][0].seconds - row[1][1].seconds)))

    @property
    def differ(self) -> bool:
        """Whether there is more between them than time."""
        return bool(self.only_in_a or self.only_in_b or self.otherwise)

    def _both(self) -> Mapping[str, tuple[Ended, Ended]]:
        shared = [test for test in self.a.tests if test in self.b.tests]
        return {test: (self.a.tests[test], self.b.tests[test]) for test in shared}


def compare(a: Run, b: Run) -> Comparison:
    """Set two runs side by side."""
    return Comparison(a=a, b=b)


def render_comparison(found: Comparison) -> Shown:
    """For people: the sums, what ended otherwise, what only one has, and times."""
    heads = [f"A: {found.a.place}: {found.a.account()}", f"B: {found.b.place}: {found.b.account()}"]
    parts: list[Shown | str] = [*heads, f"ended otherwise: {len(found.otherwise)}"]
    for test, pair in found.otherwise.items():
        cells = [(name, each.word, each.why) for name, each in zip("AB", pair, strict=True)]
        parts += [f"  {test}", stacked(columns(cells), indent=4)]
    for name, only in (("A", found.only_in_a), ("B", found.only_in_b)):
        parts.append(f"only in {name}: {len(only)}")
        if only:
            rows = [(test, each.word, each.why) for test, each in only.items()]
            parts.append(stacked(columns(rows), indent=2))
    if found.times:
        parts.append(f"took twice as long, and {_APART_S:g} s more: {len(found.times)}")
        parts.append(stacked(columns(_time_rows(found), right=[1, 2]), indent=2))
    return stacked(*parts)


def _time_rows(found: Comparison) -> Sequence[tuple[str, str, str]]:
    rows = [
        (test, f"A {one.seconds:.1f} s", f"B {other.seconds:.1f} s")
        for test, (one, other) in found.times.items()
    ]
    left = len(rows) - _TIMES
    return [*rows[:_TIMES], *([(f"and {left} more", "", "")] if left > 0 else [])]
