"""A call for which nothing was rehearsed ends the test as an error of the harness."""

from __future__ import annotations

import pytest

from harness_core.base.errors import HarnessError
from harness_core.doubles.model import LedgerEntry, expect_rehearsed


def called(**changes: str) -> LedgerEntry:
    """A call of the model."""
    return LedgerEntry(
        sequence=1,
        arrived_at="2026-10-24T12:00:00+00:00",
        mode="rehearsed",
        kind="messages",
        model="claude-sonnet-4-5",
        status=200,
        **changes,
    )


def test_a_call_without_a_turn_is_shown():
    """The error holds the prompt, and where turns are written down."""
    calls = [called(), called(unrehearsed="no turn was rehearsed for this prompt: 'Make a part.'")]
    with pytest.raises(HarnessError, match=r"cannot rehearse .*'Make a part\.'.*docs/gateway\.md"):
        expect_rehearsed(calls)


def test_what_the_prompt_lacked_is_no_error_of_the_harness():
    """That is the product's failure, and no call is left without a turn for it."""
    expect_rehearsed([called(), called(missing="the tool 'lint' was not offered")])
