"""What this process opened and left to the garbage collector: connections, files, coroutines.

Python warns of it at the moment of the collection, which is in another test or never. Here the collection is forced when a test ends, and each find names where it was opened:
files and sockets are noted when they are made (PEP 578), at a few microseconds each, coroutines by
Python itself; of anything else ``-X tracemalloc=12`` tells the place, which makes a run of tests
some six times slower and is left to the search for one.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from harness_core.base.errors import HarnessError

#: Frames looked at: from inside the standard library or a driver up to its caller.
_FRAMES: Final = 24
_ORIGIN_FRAMES: Final = 6
#: Places kept; a thing that lives while so many others are opened is named without its place.
_PLACES: Final = 20_000
#: A collection of what one test made takes a millisecond; of a large library, a hundred.
_SLOW_S: Final = 0.005
_WHAT_CHARS: Final = 160
_HARNESS: Final = "/harness_core/"
#: Asked for once: in a hook, and in whatever thread, a test's own file system would answer later.
_HERE: Final = f"{Path.cwd()}/"
_NOT_OURS: Final = ("/site-packages/", "/dist-packages/", "<frozen", "<string>")

#: The places that the audit hook notes now; ``None`` outside of a watch. A hook cannot be removed.
_noted: dict[object, str] | None = None
_hooked = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnclosedThing:
    """One thing that was collected while it was open, or never awaited.

    Attributes:
        what: the thing in Python's words, shortened.
        where: ``file:line`` where it was opened; empty when that is not known.
    """

    what: str
    where: str

    def __str__(self) -> str:
        """The find in one line."""
        return f"{self.what}, opened at {self.where}" if self.where else self.what


class Unclosed:
    """A watch over collections; built only by :func:`watch_unclosed`."""

    def __init__(self) -> None:
        self._found: list[UnclosedThing] = []

    def collect(self, *, last: bool = False) -> tuple[UnclosedThing, ...]:
        """Force a collection; what was found since the last one, each thing once.

        What is there when a collection gets slow, modules for the most part, is passed over by the
        next ones.

        Args:
            last: collect everything once more.
        """
        if last:
            gc.unfreeze()
        began = time.monotonic()
        gc.collect()
        if time.monotonic() - began > _SLOW_S:
            gc.freeze()
        found, self._found = self._found, []
        return tuple(dict.fromkeys(found))

    def note(self, unraisable: Any) -> bool:
        """Take what Python could not raise; whether it speaks of something left open."""
        error = unraisable.exc_value
        never_awaited = isinstance(error, RuntimeWarning) and "never awaited" in str(error)
        if not isinstance(error, ResourceWarning) and not never_awaited:
            return False
        what = str(error).partition("\n")[0]
        if len(what) > _WHAT_CHARS:
            what = f"{what[: _WHAT_CHARS - 1]}…"
        self._found.append(UnclosedThing(what=what, where=_where(_instance(unraisable))))
        return True


def unclosed_error(left: Sequence[UnclosedThing], *, where: str) -> HarnessError:
    """The error for what a test left: one sentence, however many things there are."""
    first, *others = left
    more = f" (and {len(others)} more: {'; '.join(map(str, others))})" if others else ""
    known = all(thing.where for thing in left)
    return HarnessError(
        f"end {where} with everything closed",
        observed=f"{first}{more}",
        next_step=f"Close it where it is opened{'' if known else '; -X tracemalloc=12 finds that'}",
    )


def line_of_caller() -> str:
    """Who called the function that asks: the innermost ``file:line`` that is no library's.

    For objects that warn from their own ``__del__``: kept as ``opened_at``, it is shown as theirs.
    """
    return _choose(_stack(sys._getframe(2)))  # noqa: SLF001 - a stack without its texts: 2 µs


@contextmanager
def watch_unclosed() -> Iterator[Unclosed]:
    """Watch what this process leaves to the collector, until the end of the block.

    Sees what the warning filters turn into errors: ``error::ResourceWarning``, or ``error``.
    """
    global _noted  # noqa: PLW0603
    unclosed = Unclosed()
    outer, origins = _noted, sys.get_coroutine_origin_tracking_depth()
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not unclosed.note(unraisable):
            before(unraisable)

    _hook_once()
    _noted = {} if outer is None else outer
    sys.set_coroutine_origin_tracking_depth(_ORIGIN_FRAMES)
    sys.unraisablehook = hook
    try:
        yield unclosed
    finally:
        sys.unraisablehook = before
        sys.set_coroutine_origin_tracking_depth(origins)
        _noted = outer


def _hook_once() -> None:
    global _hooked  # noqa: PLW0603
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Note where a file or socket is made: files by name, since they do not exist yet."""
    if _noted is None or event not in {"open", "socket.__new__"}:
        return
    key = args[0] if event == "open" else id(args[0])
    if len(_noted) > _PLACES:
        _noted.clear()
    if isinstance(key, str | int):
        _noted[key] = _choose(_stack(sys._getframe(1)))  # noqa: SLF001


def _where(thing: object) -> str:
    if opened_at := getattr(thing, "opened_at", ""):
        return str(opened_at)
    if origin := getattr(thing, "cr_origin", None):
        return _choose([(file, line) for file, line, _function in origin])
    if traced := tracemalloc.get_object_traceback(thing):
        return _choose((frame.filename, frame.lineno) for frame in reversed(traced))
    noted = _noted or {}
    return noted.get(id(thing)) or noted.get(getattr(thing, "name", None)) or ""


def _instance(unraisable: Any) -> object:
    """The object itself: of a ``__del__`` written in Python, its function is what is reported."""
    if getattr(unraisable.object, "__name__", "") == "__del__" and unraisable.exc_traceback:
        return unraisable.exc_traceback.tb_frame.f_locals.get("self")
    return unraisable.object


def _stack(frame: FrameType | None) -> Iterator[tuple[str, int]]:
    for _ in range(_FRAMES):
        if frame is None:
            return
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def _choose(frames: Iterable[tuple[str, int]]) -> str:
    """The innermost line of whoever uses the harness, else of the harness, else of all."""
    found: dict[str, str] = {}
    for file, line in frames:
        if file.startswith(sys.base_prefix) or any(part in file for part in _NOT_OURS):
            rank = "library"
        elif _HARNESS in file and "/tests/" not in file:
            rank = "harness"
        else:
            return f"{_short(file)}:{line}"
        found.setdefault(rank, f"{_short(file)}:{line}")
    return found.get("harness") or found.get("library") or ""


def _short(file: str) -> str:
    return file.removeprefix(_HERE)
