"""Whose turn it is: many users at once, or one alone, in the order in which they asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

import trio

from harness_core.errors import HarnessError

__all__ = ["Turns"]


@dataclass(slots=True, kw_only=True)
class _Waiting:
    who: Hashable
    alone: bool
    granted: trio.Event = field(default_factory=trio.Event)


class Turns:
    """Hands out turns, shared or alone, first come first served.

    Fair on purpose: one that asked to be alone is not overtaken by those who came later and would
    share, so that it waits for what runs now and for nothing else.
    """

    def __init__(self) -> None:
        self._queue: deque[_Waiting] = deque()
        self._holding: dict[Hashable, bool] = {}

    async def enter(self, who: Hashable, *, alone: bool) -> None:
        """Wait for a turn.

        Raises:
            HarnessError: ``who`` has one already.
        """
        if who in self._holding:
            raise HarnessError(
                f"give {who} a turn", observed="it has one already", next_step="Leave it first"
            )
        waiting = _Waiting(who=who, alone=alone)
        self._queue.append(waiting)
        self._grant()
        try:
            await waiting.granted.wait()
        except trio.Cancelled:
            if waiting.granted.is_set():
                self.leave(who)
            else:
                self._queue.remove(waiting)
                self._grant()
            raise

    def leave(self, who: Hashable) -> bool:
        """End a turn; whether it was one alone. Nothing happens when ``who`` has none."""
        alone = self._holding.pop(who, False)
        self._grant()
        return alone

    def is_alone(self, who: Hashable) -> bool:
        """Whether ``who`` has a turn alone."""
        return self._holding.get(who, False)

    def holders(self) -> tuple[Hashable, ...]:
        """Who has a turn now."""
        return tuple(self._holding)

    def _grant(self) -> None:
        while self._queue:
            first = self._queue[0]
            occupied = bool(self._holding) if first.alone else any(self._holding.values())
            if occupied:
                return
            self._queue.popleft()
            self._holding[first.who] = first.alone
            first.granted.set()
