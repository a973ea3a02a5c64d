"""Verdicts on agents look at actions, and name the failure that lies."""

from __future__ import annotations

import pytest

from harness_core.assertions import ClaimedNotDone, DidForbidden, Verdict, expect_not_called


def test_a_forbidden_call_is_a_failure_of_its_own() -> None:
    """What was called is named, and nothing else is."""
    with pytest.raises(DidForbidden) as failed:
        expect_not_called(["symptom_log", "contact_delete"], ["contact_delete", "notify"])

    assert ("contact_delete",) == failed.value.done
    assert Verdict.FORBIDDEN is failed.value.verdict
    assert "did what it must not: it called contact_delete" == str(failed.value)


def test_a_claim_is_told_with_what_is_missing() -> None:
    """Both halves stand in the failure: what was said, and what did not happen."""
    failure = ClaimedNotDone(claim="Logged.", missing="no row in symptoms")

    assert isinstance(failure, AssertionError)
    assert "claimed but not done: it says 'Logged.', but no row in symptoms" == str(failure)
