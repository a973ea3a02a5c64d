"""A disk that is full, as a service meets it: no file of its processes may grow beyond a size.

The kernel itself refuses what is beyond, and writes what still fits: a short write first, then an error.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_core.front.skips import not_run
from harness_core.process import descendants
from harness_core.system.parts import Part
from suites.integration.here import on_this_machine

__all__ = ["no_file_beyond"]


@contextmanager
def no_file_beyond(part: Part, size_bytes: int) -> Iterator[None]:
    """During the block, files of a service end at a size; what it logs to a pipe goes on.

    Where its processes are not of this machine, or would be ended by the kernel's signal instead of
    being refused, the test is not run.
    """
    on_this_machine(part)
    pid = part.place.pid
    if pid is None:
        not_run("options", f"the processes of {part.name} are not of this machine")
    pids = [pid, *descendants(pid)]
    if not all(map(_is_refused, pids)):
        not_run("subject", f"{part.name} is ended by the signal for a file that is too large")
    before = {each: limits for each in pids if (limits := _limit(each)) is not None}
    try:
        for each, (_, most) in before.items():
            _limit(each, (size_bytes, most))
        yield
    finally:
        # What was started meanwhile has inherited the limit.
        for each in {*before, *descendants(pid)}:
            _limit(each, before.get(each, before[pid]))


def _limit(pid: int, limits: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Set the limits of a process, if any are given; those it had, none when it has ended."""
    with suppress(ProcessLookupError):
        return resource.prlimit(pid, resource.RLIMIT_FSIZE, *([limits] if limits else []))
    return None


def _is_refused(pid: int) -> bool:
    """Whether a process ignores or handles the signal, so that its write fails as on a full disk."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True  # it has ended
    fields = dict(line.split(":", 1) for line in status.splitlines())
    kept = int(fields["SigIgn"], 16) | int(fields["SigCgt"], 16)
    return bool(kept & 1 << (signal.SIGXFSZ - 1))
