"""Which test a call belongs to.

One scope at a time is enough for a single runner. Workers that share a gateway open scopes that
recognise their own calls by a text only their test could have written, or by a trace id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Scope", "Scopes"]

#: Scopes that recognise their own calls, kept at once; the oldest go first.
_SCOPES_KEPT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A test that is running.

    Attributes:
        test: its id.
        contains: calls whose prompt holds this text are its own.
        trace_id: calls whose traceparent holds this id are its own.
    """

    test: str
    contains: str = ""
    trace_id: str = ""

    def claims(self, *, text: str, traceparent: str) -> bool:
        """Whether a call is recognisably its own."""
        by_text = bool(self.contains) and self.contains in text
        return by_text or (bool(self.trace_id) and self.trace_id in traceparent)


class Scopes:
    """The scopes of a run."""

    def __init__(self) -> None:
        self._current = ""
        self._recognising: list[Scope] = []

    def set(self, scope: Scope) -> None:
        """Open a scope; without a way to recognise its calls it takes all that nobody claims."""
        if scope.contains or scope.trace_id:
            self._recognising = [*self._recognising, scope][-_SCOPES_KEPT:]
        else:
            self._current = scope.test

    def clear(self) -> None:
        """Close all."""
        self._current = ""
        self._recognising = []

    def of(self, *, text: str, traceparent: str) -> str:
        """The test a call belongs to; the scope opened last wins."""
        for scope in reversed(self._recognising):
            if scope.claims(text=text, traceparent=traceparent):
                return scope.test
        return self._current
