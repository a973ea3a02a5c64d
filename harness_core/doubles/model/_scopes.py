"""Which test a call belongs to.

One scope at a time is enough for a single runner. Workers that share a gateway open scopes that
recognise their own calls by a text only their test could have written.
"""

from __future__ import annotations

from typing import Final

from harness_core.base.reading import Table

#: Scopes that recognise their own calls, kept at once; the oldest go first.
_SCOPES_KEPT: Final = 1000


class Scope(Table, frozen=True):
    """A test that is running.

    Attributes:
        test: its id; empty for none.
        contains: calls whose prompt holds this text are its own.
    """

    test: str
    contains: str = ""


class Scopes:
    """The scopes of a run."""

    def __init__(self) -> None:
        self._current = ""
        self._recognising: list[Scope] = []

    def set(self, scope: Scope) -> None:
        """Open a scope; without a way to recognise its calls it takes all that nobody claims."""
        if scope.contains:
            self._recognising = [*self._recognising, scope][-_SCOPES_KEPT:]
        else:
            self._current = scope.test

    def clear(self) -> None:
        """Close all."""
        self._current = ""
        self._recognising = []

    def of(self, text: str) -> str:
        """The test a call with this text belongs to; the scope opened last wins."""
        claims = (each.test for each in reversed(self._recognising) if each.contains in text)
        return next(claims, self._current)
