"""Messages sent ahead: while one test judges its message, those of the next ones are under way.

A message spends most of its life in processes that start one after the other, so a run that sends
one at a time leaves half of the machine idle. Each test still judges its own message alone; only
the sending is early. What needs something planted in the model gateway cannot be sent ahead: a test
leaves nothing waiting there. Nothing is sent ahead of a test that is not next in line (something else may
break what the message needs), nor beside other workers, who keep the machine busy themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import pytest

__all__ = ["Ahead"]

T = TypeVar("T")

#: Messages under way besides the one that is judged: with three, two cores have no idle moment.
_WINDOW: Final = 3


class Ahead(Generic[T]):
    """Starts something for a test and for the tests of the same function that follow at once.

    Args:
        parameter: the parameter whose value tells one test of the function from another.
    """

    def __init__(self, parameter: str) -> None:
        self._parameter = parameter
        self._started: dict[str, T] = {}

    async def take(self, item: pytest.Item, start: Callable[[Any, str], Awaitable[T]]) -> T:
        """What was started for a test; it and what comes next is started now if it was not.

        Args:
            item: the test.
            start: given the parameter's value and the test's id.
        """
        for upcoming in (item, *_next_in_line(item)):
            if upcoming.nodeid not in self._started:
                value = upcoming.callspec.params[self._parameter]  # type: ignore[attr-defined]
                self._started[upcoming.nodeid] = await start(value, upcoming.nodeid)
        return self._started[item.nodeid]


def _next_in_line(item: pytest.Item) -> Iterator[Any]:
    """The tests of the same function that run right after this one."""
    if hasattr(item.config, "workerinput"):
        return
    items = item.session.items
    here = items.index(item)
    for upcoming in items[here + 1 : here + 1 + _WINDOW]:
        if getattr(upcoming, "function", None) is not item.function:  # type: ignore[attr-defined]
            return
        yield upcoming
