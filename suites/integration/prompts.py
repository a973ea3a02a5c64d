"""What the prompts of an episode lacked, by the gateway's ledger.

A model whose prompt lacks the task, or a tool, does nothing more; whatever a test then finds comes of
that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from harness_core.doubles.model import LedgerEntry, expect_rehearsed

__all__ = ["lacked", "lost"]

#: In a task of any test of this suite.
_TOKEN: Final = re.compile(r"\bt[0-9a-f]{16}\b")


def lacked(entries: Sequence[LedgerEntry], tokens: Collection[str]) -> list[str]:
    """What the model lacked in the episodes whose tasks hold these tokens.

    Raises:
        HarnessError: it was asked in one of them what was not rehearsed.
    """
    calls = _calls_of(entries, tokens)
    expect_rehearsed(calls)
    return list(dict.fromkeys(call.missing for call in calls if call.missing))


def lost(entries: Sequence[LedgerEntry], tokens: Collection[str]) -> list[str]:
    """What the model was asked instead, when no prompt held one of these tokens."""
    if _calls_of(entries, tokens):
        return []
    # Prompts of other tests hold the tokens of those.
    strange = [
        call
        for call in entries
        if (call.missing or call.unrehearsed) and not _TOKEN.search(call.prompt)
    ]
    wanted = " or ".join(sorted(tokens))
    return [
        call.missing or f"the prompt lacks the task with {wanted}; it says {call.prompt!r}"
        for call in strange[-1:]
    ]


def _calls_of(entries: Sequence[LedgerEntry], tokens: Collection[str]) -> list[LedgerEntry]:
    return [
        call
        for call in entries
        if any(token in call.prompt or token in call.unrehearsed for token in tokens)
    ]
