"""Memory of processes and of all below them, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from harness_core.process import children, descendants

__all__ = ["memory_of"]

_KB: Final = 1024


def memory_of(pids: Collection[int]) -> dict[int, int]:
    """Bytes of each process with all its descendants; what several share counts in parts (PSS).

    Args:
        pids: processes; one that is gone has no memory.
    """
    among = children()
    return {pid: sum(map(_bytes, (pid, *descendants(pid, among)))) for pid in pids}


def _bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended, or is another user's
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * _KB
    return 0
