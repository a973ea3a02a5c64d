"""Calls for which the model had no turn: they end a test, and say nothing about the product."""

from __future__ import annotations

from collections.abc import Iterable

from harness_core.base.errors import HarnessError
from harness_core.doubles.model._ledger import LedgerEntry


def expect_rehearsed(calls: Iterable[LedgerEntry]) -> None:
    """What the model had no turn for, or could not read, says nothing about the product.

    Raises:
        HarnessError: shows the prompt.
    """
    if ours := next((call.unrehearsed for call in calls if call.unrehearsed), ""):
        raise HarnessError(
            "rehearse what the model does",
            observed=ours,
            next_step="Give the message its turns, route(…), use(…), say(…): docs/gateway.md",
        )
