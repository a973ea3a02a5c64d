"""Temporary files and directories that this process makes, watched by an audit hook of Python.

A hook cannot be taken away again, so there is one for the process, and it costs one comparison
per event while there is no watch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_EVENTS: Final = frozenset({"tempfile.mkdtemp", "tempfile.mkstemp"})

#: Path → the test that made it; one dictionary for each who watches.
_watchers: list[dict[str, str]] = []
_installed: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watchers and event in _EVENTS:
        # The event names the path before it is made, also when another one has it already.
        path = os.fsdecode(arguments[0])
        for made in _watchers:
            made[path] = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


@contextmanager
def watching() -> Iterator[dict[str, str]]:
    """The paths that ``tempfile`` makes during the block, each with the test that was running."""
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    made: dict[str, str] = {}
    _watchers.append(made)
    try:
        yield made
    finally:
        # By identity: two that watch may have seen the same.
        _watchers[:] = [other for other in _watchers if other is not made]
