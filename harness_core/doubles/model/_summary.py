"""The ledger for a person at a terminal."""

from __future__ import annotations

from harness_core.doubles.model._ledger import Sum, Totals

#: Longer names of tests lose their beginning, which they share.
_NAME_CHARS = 60


def cost_summary(totals: Totals) -> str:
    """A small table: calls, tokens and USD per test, the total, and what the money means."""
    tests = {_name(test): group for test, group in sorted(totals.by_test.items()) if group.calls}
    width = max(map(len, [*tests, "total"]))
    lines = [
        f"model calls ({totals.mode or 'no mode'})",
        f"{'test':{width}}  calls  tokens in  tokens out         USD",
        *(_row(f"{name:{width}}", group) for name, group in tests.items()),
        f"{'-' * width}  -----  ---------  ----------  ----------",
        _row(f"{'total':{width}}", totals.overall),
        f"spent {totals.spent_usd:.4f} of {totals.budget_usd:.4f} USD"
        if totals.overall.charged_usd
        else f"nothing was spent: mode {totals.mode}; USD is what a provider would have asked",
    ]
    if unpriced := totals.overall.unpriced:
        lines.append(f"{unpriced} call(s) are not in these sums: their model has no known price")
    if totals.budget_exceeded:
        lines.append("BUDGET EXCEEDED: calls were refused; the results above are partial")
    return "\n".join(lines)


def _row(name: str, group: Sum) -> str:
    tokens = f"{group.input_tokens:9}  {group.output_tokens:10}"
    return f"{name}  {group.calls:5}  {tokens}  {group.usd:10.5f}"


def _name(test: str) -> str:
    if not test:
        return "(outside tests)"
    return test if len(test) <= _NAME_CHARS else "…" + test[-(_NAME_CHARS - 1) :]
