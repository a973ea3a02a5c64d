"""What a process holds on to, as the kernel counts it: nothing of that may grow with use."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Final

import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.process import descendants
from suites.e2e.ecosystem.butler import Butler

__all__ = ["Vitals", "expect_no_growth", "read_vitals"]

#: What one process may hold more of for a moment: a connection on its way in or out.
_SLACK: Final = 2

#: Until connections that were closed are gone, and pools have settled.
_SETTLES_S: Final = 15.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Of one process.

    Attributes:
        descriptors: open files, sockets among them.
        threads: of the process itself.
        children: processes below it.
        connections: to its database, as the server counts them.
    """

    descriptors: int
    threads: int
    children: int
    connections: int

    def exceeds(self, other: Vitals) -> dict[str, tuple[int, int]]:
        """What there is more of than there was: name → before, now."""
        before, now = dataclasses.asdict(other), dataclasses.asdict(self)
        return {name: (before[name], now[name]) for name in now if now[name] > before[name]}


async def read_vitals(butler: Butler) -> Vitals:
    """What a butler holds now."""
    status = Path(f"/proc/{butler.pid}/status").read_text(encoding="utf-8")
    threads = re.search(r"^Threads:\s*(\d+)$", status, re.MULTILINE)
    row = await butler.database.one(
        "SELECT count(*) AS held FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND application_name <> 'staging-harness'"
    )
    return Vitals(
        descriptors=len(list(Path(f"/proc/{butler.pid}/fd").iterdir())),
        threads=int(threads[1]) if threads else 0,
        children=len(descendants(butler.pid)),
        connections=row["held"],
    )


async def expect_no_growth(butler: Butler, before: Vitals, *, after: str, spare: int = 0) -> None:
    """A butler comes back to what it held before.

    Args:
        butler: which.
        before: what it held.
        after: what happened since, for the failure.
        spare: threads and connections that a pool of the product may have grown by meanwhile.

    Raises:
        AssertionError: it holds more, and keeps it.
    """
    limit = Vitals(
        descriptors=before.descriptors + _SLACK + spare,
        threads=before.threads + _SLACK + spare,
        children=before.children,
        connections=before.connections + spare,
    )
    now = before

    async def back() -> bool:
        nonlocal now
        now = await read_vitals(butler)
        return not now.exceeds(limit)

    with trio.move_on_after(patience(_SETTLES_S)):
        await until(back)
    grown = now.exceeds(limit)
    shown = ", ".join(f"{held} {name}, {may} may be" for name, (may, held) in grown.items())

    assert not grown, (
        f"after {after}, {butler.name} holds on to what it used: {shown}; "
        f"before it was {before}, now it is {now}"
    )
