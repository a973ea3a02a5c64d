"""The runs of this user on this machine and what they hold, for people and for machines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from harness_core.base.errors import HarnessError, NotReady
from harness_core.base.evidence import Redactor
from harness_core.base.screen import columns, plain
from harness_core.process import RunLedger, command_line, ledgers
from harness_core.system.staging._host import SOCKET, ask, read_card

__all__ = ["PartSeen", "RunSeen", "living_runs", "render", "runs_seen"]

#: Longest command line shown in a table.
_COMMAND_CHARS: Final = 60

_HEADS: Final = ("NAME", "STATE", "PID/CONTAINER", "ADDRESS", "DATABASE")


class PartSeen(Struct, frozen=True, kw_only=True):
    """One part of what a run holds, as its environment describes it.

    Attributes:
        name: what ``harness logs`` takes.
        kind: what it is.
        state: ``running``, ``paused``, ``down`` or how it ended.
        address: where it is reached.
        pid: of its process on this machine; ``None`` when it has none.
        container: id of its container; empty when it is none.
        log: its log file; empty when it has none yet.
        urls: where else it is reached, by what that is; passwords left out unless asked for.
        secrets: variable → value, only when asked for.
    """

    name: str
    kind: str
    state: str
    address: str
    pid: int | None
    container: str = ""
    log: str
    urls: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}


class RunSeen(Struct, frozen=True, kw_only=True):
    """A run as ``harness ps`` shows it.

    Attributes:
        id: of the run.
        pid: of the process that opened it; 0 when its ledger cannot be read.
        state: ``up``, ``booting``, ``ending`` or ``silent`` (it does not answer) for one that holds
            an environment, ``running`` for another one, ``dead`` for what a sweep may remove.
        holds: the suite whose environment it holds; empty for none.
        staged: a person holds it (``harness up``), and may take it down.
        root: the tree that it belongs to; empty for a run that holds nothing.
        age_s: since it began to hold it, in seconds.
        command: the command line of the process; empty when it is dead.
        parts: what it holds.
    """

    id: str
    pid: int
    state: str
    holds: str
    staged: bool
    root: str
    age_s: float
    command: str
    parts: tuple[PartSeen, ...]


def runs_seen(*, reveal: bool = False) -> tuple[RunSeen, ...]:
    """Every run of this user on this machine, by id.

    Args:
        reveal: show passwords and keys.
    """
    return tuple(_seen(ledger, reveal=reveal) for ledger in ledgers())


def living_runs() -> frozenset[str]:
    """The ids of the runs whose process lives, without asking it."""
    return frozenset(ledger.id for ledger in ledgers() if ledger.owner_alive())


def _seen(ledger: RunLedger, *, reveal: bool) -> RunSeen:
    alive, card = ledger.owner_alive(), read_card(ledger.directory)
    pid = next(iter(ledger.entries()), {}).get("pid")
    pid = pid if isinstance(pid, int) else 0
    state = "running" if alive else "dead"
    parts: tuple[PartSeen, ...] = ()
    if alive and card is not None:
        state, parts = _held(ledger.directory / SOCKET, reveal=reveal)
    return RunSeen(
        id=ledger.id,
        pid=pid,
        state=state,
        holds=card.title if card else "",
        staged=card is not None and card.staged,
        root=card.root if card else "",
        age_s=round(time.time() - card.since, 1) if card else 0.0,
        command=" ".join(command_line(pid)) if alive and pid else "",
        parts=parts,
    )


def _held(socket: Path, *, reveal: bool) -> tuple[str, tuple[PartSeen, ...]]:
    try:
        found = ask(socket, "describe")
    except NotReady:
        return "silent", ()
    except HarnessError:  # it is just ending, or it never came up
        return "ending", ()
    if found is None:
        return "booting", ()
    parts = msgspec.convert(found["parts"], tuple[PartSeen, ...])
    return "up", parts if reveal else tuple(map(_without_secrets, parts))


def _without_secrets(part: PartSeen) -> PartSeen:
    redact = Redactor().redact
    urls = {key: redact(value) for key, value in part.urls.items()}
    return structs.replace(part, urls=urls, secrets={})


def render(runs: Sequence[RunSeen]) -> list[str]:
    """The runs as lines of a table."""
    if not runs:
        return ["nothing runs"]
    lines = []
    for run in runs:
        what = f"{run.holds} {run.state}" if run.holds else run.state
        where = f"  in {run.root}" if run.root else ""
        age, hint = "", "remove what it left: harness sweep"
        if run.state != "dead":
            age = f" for {timedelta(seconds=int(run.age_s))}" if run.age_s else ""
            long = len(run.command) > _COMMAND_CHARS
            hint = f"{run.command[: _COMMAND_CHARS - 3]}..." if long else run.command
        lines.append(f"{run.id}  {what}{age}  pid {run.pid}{where}  {hint}")
        lines.extend(f"  {line}" for line in _part_lines(run.parts))
    return lines


def _part_lines(parts: Sequence[PartSeen]) -> list[str]:
    if not parts:
        return []
    rows = [
        (
            part.name,
            part.state,
            part.container or str(part.pid or "-"),
            part.address,
            part.urls.get("database", ""),
        )
        for part in parts
    ]
    # Never wrapped: addresses are there to be copied.
    lines = plain(columns(rows, heads=_HEADS)).splitlines()
    secrets = [(part.name, *pair) for part in parts for pair in part.secrets.items()]
    return [*lines, *(f"{name}: {key}={value}" for name, key, value in secrets)]
