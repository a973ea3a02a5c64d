"""Turns: what has the same key begins in the order in which it came, however long each takes before."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from types import TracebackType
from typing import Self


class Turns:
    """Hands out turns; a key costs nothing while nobody has a turn of it."""

    def __init__(self) -> None:
        self._last: dict[Hashable, Turn] = {}

    def take(self, key: Hashable) -> Turn:
        """The turn behind all that were taken of this key, to be used with ``with``."""
        turn = Turn(self._last, key)
        self._last[key] = turn
        return turn


class Turn:
    """One place in a row; leaving it lets the next one go, whatever became of this."""

    def __init__(self, last: dict[Hashable, Turn], key: Hashable) -> None:
        self._last = last
        self._key = key
        before = last.get(key)
        self._before = before._passed if before else None
        self._passed = asyncio.Event()

    async def come(self) -> None:
        """Wait for the one before."""
        if self._before is not None:
            await self._before.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._passed.set()
        if self._last.get(self._key) is self:
            del self._last[self._key]
