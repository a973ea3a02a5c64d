"""The runs of this user on this machine, and what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_core.process import command_line, ledgers
from harness_core.system.staging._host import CARD, SOCKET

__all__ = ["RunSeen", "find_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """A run, dead or alive.

    Attributes:
        id: of the run.
        pid: of the process that opened it; 0 when its ledger cannot be read.
        alive: whether that process lives; what a dead run left goes with `harness sweep`.
        command: its command line, empty when it is dead.
        title: what it holds; empty for a run that holds nothing.
        staged: a person holds it.
        root: the tree that what it holds belongs to; empty for a run that holds nothing.
        since: when it began to hold it, in seconds since 1970.
        socket: where it can be asked; ``None`` for a run that holds nothing.
    """

    id: str
    pid: int
    alive: bool
    command: tuple[str, ...]
    title: str
    staged: bool
    root: str
    since: float
    socket: Path | None


def find_runs() -> tuple[RunSeen, ...]:
    """Every run of this user, by id."""
    seen = []
    for ledger in ledgers():
        alive = ledger.owner_alive()
        card = _card(ledger.directory / CARD)
        first = next(iter(ledger.entries()), {})
        pid = first.get("pid")
        pid = pid if isinstance(pid, int) else 0
        seen.append(
            RunSeen(
                id=ledger.id,
                pid=pid,
                alive=alive,
                command=tuple(command_line(pid)) if alive and pid else (),
                title=str(card.get("title", "")),
                staged=card.get("staged") is True,
                root=str(card.get("root", "")),
                since=float(card.get("since", 0.0)),
                socket=ledger.directory / SOCKET if card else None,
            )
        )
    return tuple(seen)


def _card(path: Path) -> Mapping[str, Any]:
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return card if isinstance(card, dict) else {}
