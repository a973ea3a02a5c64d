"""Memory of processes and of all below them, as the kernel counts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = ["memory_of"]

_PROC: Final = Path("/proc")

#: After the name in ``/proc/PID/stat``, which may hold blanks: the state, then the parent.
_PARENT_AFTER_NAME: Final = 1
_KB: Final = 1024


def memory_of(pids: Collection[int]) -> dict[int, int]:
    """Bytes of each process with all its descendants; what several share counts in parts (PSS).

    Args:
        pids: processes; one that is gone has no memory.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    return {pid: sum(map(_bytes, _family(pid, children))) for pid in pids}


def _family(pid: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    yield pid
    for child in children.get(pid, ()):
        yield from _family(child, children)


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield int(folder.name), int(fields[_PARENT_AFTER_NAME])
            except (OSError, IndexError, ValueError):  # it has ended meanwhile
                continue


def _bytes(pid: int) -> int:
    try:
        text = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:  # it has ended, or is another user's
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * _KB
    return 0
