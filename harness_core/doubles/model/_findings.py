"""What the ledger of a test says beside its failure, or in place of it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.base.errors import HarnessError
from harness_core.doubles.model._ledger import LedgerEntry

#: What the ledger calls a call that was refused for its key → what was wrong with that.
KEY_MISSING: Final = "key_missing"
WRONG_KEY: Final = "wrong_api_key"
WRONG_BEARER: Final = "wrong_bearer"
_WRONG: Final = {
    KEY_MISSING: "without a key",
    WRONG_KEY: "with a wrong x-api-key",
    WRONG_BEARER: "with a wrong bearer token",
}


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
            next_step="Give the message its turns, route(…), use(…), say(…): docs/gateway.md",
        )
