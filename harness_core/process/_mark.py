"""Marks: what every process below another one carries, wherever it hides (see ``_warden.py``)."""

from __future__ import annotations

import os
import resource
import secrets
from typing import Final

from harness_core.process import _warden

#: Below the highest bit: far above any real limit, and never met twice.
_MARK_BITS: Final = 60

#: ``RLIMIT_LOCKS``, which the resource module does not name.
_RLIMIT_LOCKS: Final = 10


def new_mark() -> int:
    """A mark that no other process has."""
    return secrets.randbits(_MARK_BITS) | 1 << _MARK_BITS


def carry_mark(mark: int) -> int | None:
    """Carry a mark from now on, and with us whatever we start.

    Returns:
        The limit that stood there before, to be given back; ``None`` where a sandbox forbids marks.
    """
    try:
        soft, hard = resource.getrlimit(_RLIMIT_LOCKS)
        resource.setrlimit(_RLIMIT_LOCKS, (mark, hard))
    except (OSError, ValueError):
        return None
    return soft


def carriers(mark: int) -> tuple[int, ...]:
    """Every live process but this one that carries the mark."""
    return tuple(pid for pid in _warden.marked(mark) if pid != os.getpid())
