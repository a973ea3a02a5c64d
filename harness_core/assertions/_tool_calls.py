"""Loose judgement on what an agent called: the tools that had to be used were used, and worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def expect_tool_calls(
    calls: Mapping[str, Sequence[Mapping[str, Any]]], expected: Sequence[str]
) -> None:
    """Assert that every expected tool was called successfully by a session.

    Order and repetition are the agent's business; so are further calls.

    Args:
        calls: butler → its recorded calls, each with ``name`` and, when the tool failed, a true
            ``is_error``.
        expected: ``tool`` (any of the butlers) or ``butler.tool``; the tool may have a dot in its
            own name (``health.route.execute``).

    Raises:
        AssertionError: names the missing tool and lists what was called instead.
    """
    for wanted in expected:
        matching = [
            call
            for butler, of_butler in calls.items()
            for call in of_butler
            if wanted in {call.get("name"), f"{butler}.{call.get('name')}"}
        ]
        worked = [call for call in matching if not call.get("is_error")]
        assert worked, (
            f"tool {wanted} was called {len(matching)} time(s), never with success; "
            f"calls recorded: {_listed(calls)}"
        )


def _listed(calls: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    lines = [
        f"{butler}.{call.get('name')}{' (failed)' if call.get('is_error') else ''}"
        for butler, of_butler in calls.items()
        for call in of_butler
    ]
    return ", ".join(lines) or "none"
