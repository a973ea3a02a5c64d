"""Who is told of every request that any recorder of this process takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness_core.doubles.http._recorded import Recorded

Watcher = Callable[[Recorded], None]

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` of every request, during the block; it must neither block nor raise."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def notify(request: Recorded) -> None:
    """Tell all of them of a request that was recorded."""
    for watcher in tuple(_watchers):
        watcher(request)
