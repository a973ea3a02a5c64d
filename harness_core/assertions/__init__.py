"""Scenarios as data: one frozen row says what to send and what must be true afterwards.

- ``_rows.py``: :class:`E2EScenario`, :class:`DbAssertion`, the rows people write.
- ``_check.py``: :func:`check_scenarios`, every mistake in a table of rows, found at collection.
- ``_golden.py``: :func:`golden`, an outcome with stable names for what differs in each run.
- ``_said.py``: :class:`Said`, what must be said at the end, judged loosely.
- ``_sequential.py``: :class:`SequentialTest`, whether something that succeeds mostly is good enough.
- ``_token.py``: :func:`fill`, the unguessable token that ties an effect to this very run.
- ``_tool_calls.py``: :func:`expect_tool_calls`, the loose judgement on what an agent called.
- ``exploring``: generated steps against a running product, by Hypothesis (extra ``explore``).
- ``_verdict.py``: :class:`Verdict`, what a trial says; claimed but not done, and done though
  forbidden.
"""

from harness_core.assertions._check import check_scenarios
from harness_core.assertions._golden import GOLDEN, Mask, golden
from harness_core.assertions._rows import DbAssertion, E2EScenario, Golden
from harness_core.assertions._said import Said
from harness_core.assertions._sequential import SequentialPlan, SequentialTest
from harness_core.assertions._token import TOKEN_FIELD, fill, new_token, tokens_in
from harness_core.assertions._tool_calls import expect_tool_calls
from harness_core.assertions._verdict import (
    ClaimedNotDone,
    DidForbidden,
    Verdict,
    expect_not_called,
)

__all__ = [
    "GOLDEN",
    "TOKEN_FIELD",
    "ClaimedNotDone",
    "DbAssertion",
    "DidForbidden",
    "E2EScenario",
    "Golden",
    "Mask",
    "Said",
    "SequentialPlan",
    "SequentialTest",
    "Verdict",
    "check_scenarios",
    "expect_not_called",
    "expect_tool_calls",
    "fill",
    "golden",
    "new_token",
    "tokens_in",
]
