"""How slow this machine is now: what a deadline against hanging must allow for.

A deadline that is part of a contract is never scaled; it is measured on the product's own clock.
Nor is one that proves an absence: a silence is waited for as long on every machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")

#: Beyond this nothing is a matter of patience any more.
_SLOWEST: Final = 8.0


def slowness() -> float:
    """How many threads want each core, now or over the last minute; between 1 and 8.

    With three of them for each core a piece of work takes about three times as long as alone.
    """
    found = re.search(rb"^procs_running (\d+)$", _STAT.read_bytes(), re.MULTILINE)
    running = int(found[1]) if found else 1
    wanted = max(os.getloadavg()[0], float(running)) / len(os.sched_getaffinity(0))
    return min(_SLOWEST, max(1.0, wanted))


def patience(seconds: float) -> float:
    """What may take so long on a machine with nothing else to do may take this long now.

    Args:
        seconds: the deadline of a calm machine.
    """
    return seconds * slowness()
