"""What a ledger says to people: what a run cost, and why a test failed or could not be judged."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.base.errors import HarnessError
from harness_core.doubles.model._ledger import LedgerEntry, Sum, Totals

#: What the ledger calls a call that was refused for its key → what was wrong with that.
KEY_MISSING: Final = "key_missing"
WRONG_KEY: Final = "wrong_api_key"
WRONG_BEARER: Final = "wrong_bearer"
_WRONG: Final = {
    KEY_MISSING: "without a key",
    WRONG_KEY: "with a wrong x-api-key",
    WRONG_BEARER: "with a wrong bearer token",
}

#: Longer names of tests lose their beginning, which they share.
_NAME_CHARS: Final = 60


def refused_keys(
    entries: Iterable[LedgerEntry], *, test: str, since: dt.datetime, held_in: Sequence[str] = ()
) -> str:
    """How many calls of a test were refused for their key, and which key was expected.

    A subject with a wrong key fails in its own words, which speak of a provider that is not there.

    Args:
        entries: of the ledger.
        test: its id; calls that are known to be another's do not count.
        since: when it began.
        held_in: variables of the subject in which it is given the right key.

    Returns:
        One sentence; empty when none was refused.
    """
    counted = Counter(
        entry.error
        for entry in entries
        if entry.error in _WRONG
        and entry.test in {"", test}
        and dt.datetime.fromisoformat(entry.arrived_at) >= since
    )
    if not counted:
        return ""
    total = counted.total()
    how = ", ".join(f"{count} {_WRONG[error]}" for error, count in counted.most_common())
    given = f"given in {' or '.join(held_in)}" if held_in else "of this run"
    requests = "1 request" if total == 1 else f"{total} requests"
    return (
        f"the model gateway refused {requests} while this test ran, with 401: {how}; "
        f"it expects the key {given}"
    )


def expect_rehearsed(calls: Iterable[LedgerEntry]) -> None:
    """Check that no call lacked its turns: such a call ends a test and says nothing of the product.

    Raises:
        HarnessError: shows the prompt.
    """
    if ours := next((call.unrehearsed for call in calls if call.unrehearsed), ""):
        raise HarnessError(
            "rehearse what the model does",
            observed=ours,
            next_step="Give the message its turns, route(…), use(…), say(…): docs/how-to/gateway.md",
        )


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
