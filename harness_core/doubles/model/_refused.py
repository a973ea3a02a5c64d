"""Calls that the gateway refused for their key: said where a test failed, so that nobody seeks further.

A subject with a wrong key fails in its own words, which tell of a provider that is not there.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.doubles.model._ledger import LedgerEntry

#: What the ledger calls such a refusal → what is said of it.
KEY_MISSING: Final = "key_missing"
WRONG_KEY: Final = "wrong_api_key"
WRONG_BEARER: Final = "wrong_bearer"
_SAID: Final = {
    KEY_MISSING: "without a key",
    WRONG_KEY: "with a wrong x-api-key",
    WRONG_BEARER: "with a wrong bearer token",
}


def refused_keys(
    entries: Iterable[LedgerEntry], *, test: str, since: dt.datetime, held_in: Sequence[str] = ()
) -> str:
    """How many calls of a test were refused for their key, and which key was expected.

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
        if entry.error in _SAID
        and entry.test in {"", test}
        and dt.datetime.fromisoformat(entry.arrived_at) >= since
    )
    if not counted:
        return ""
    total = counted.total()
    how = ", ".join(f"{count} {_SAID[error]}" for error, count in counted.most_common())
    given = f"given in {' or '.join(held_in)}" if held_in else "of this run"
    requests = "1 request" if total == 1 else f"{total} requests"
    return (
        f"the model gateway refused {requests} while this test ran, with 401: {how}; "
        f"it expects the key {given}"
    )
