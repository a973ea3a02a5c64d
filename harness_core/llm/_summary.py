"""The ledger for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_core.llm._ledger import Sum, Totals

_HEAD: Final = ("test", "calls", "tokens in", "tokens out", "USD")

#: Longer names of tests lose their beginning, which they share.
_NAME_CHARS: Final = 60

_NO_TEST: Final = "(outside tests)"


def cost_summary(totals: Totals) -> str:
    """A small table: calls, tokens and USD per test, the total, and what the money means."""
    rows = [
        _row(_name(test), group) for test, group in sorted(totals.by_test.items()) if group.calls
    ]
    rows.append(_row("total", totals.overall))
    widths = [max(len(row[at]) for row in (_HEAD, *rows)) for at in range(len(_HEAD))]
    lines = [f"model calls ({totals.mode or 'no mode'})", _line(_HEAD, widths)]
    lines += [_line(row, widths) for row in rows]
    lines.insert(-1, "  ".join("-" * width for width in widths))
    lines.append(_money(totals))
    if totals.overall.unpriced:
        lines.append(
            f"{totals.overall.unpriced} call(s) are not in these sums: their model has no known price"
        )
    if totals.budget_exceeded:
        lines.append("BUDGET EXCEEDED: calls were refused; the results above are partial")
    return "\n".join(lines)


def _money(totals: Totals) -> str:
    if totals.overall.charged_usd:
        return f"spent {totals.spent_usd:.4f} of {totals.budget_usd:.4f} USD"
    return f"nothing was spent: mode {totals.mode}; USD is what a provider would have asked"


def _name(test: str) -> str:
    if not test:
        return _NO_TEST
    return test if len(test) <= _NAME_CHARS else "…" + test[-(_NAME_CHARS - 1) :]


def _row(name: str, group: Sum) -> tuple[str, ...]:
    return (
        name,
        str(group.calls),
        str(group.input_tokens),
        str(group.output_tokens),
        f"{group.usd:.5f}",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([first, *rest]).rstrip()
