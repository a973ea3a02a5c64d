"""Every run of this user and what it holds, for people and for machines."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Redactor
from harness_core.base.screen import columns, plain
from harness_core.system.staging._host import ask
from harness_core.system.staging._registry import RunSeen, find_runs

__all__ = ["PartSeen", "Seen", "render", "runs_seen"]

#: Longest command line shown in a table.
_COMMAND_CHARS: Final = 60

_HEADS: Final = ("NAME", "STATE", "PID/CONTAINER", "ADDRESS", "DATABASE")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartSeen:
    """One part of what a run holds.

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
    container: str
    log: str
    urls: Mapping[str, str]
    secrets: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run as `harness ps` shows it.

    Attributes:
        id: of the run.
        pid: of the process that opened it.
        state: ``up``, ``booting`` or ``ending`` for one that holds an environment, ``running`` for
            another one, ``dead`` for what a sweep may remove.
        holds: the suite whose environment it holds; empty for none.
        staged: a person holds it (``harness up``), and may take it down.
        root: the tree that it belongs to; empty for a run that holds nothing.
        age_s: since it began to hold it, in seconds.
        command: the command line of the process.
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


def runs_seen(*, reveal: bool = False) -> tuple[Seen, ...]:
    """Every run of this user on this machine.

    Args:
        reveal: show passwords and keys.
    """
    return tuple(_seen(run, reveal=reveal) for run in find_runs())


def _seen(run: RunSeen, *, reveal: bool) -> Seen:
    state = "running" if run.alive else "dead"
    parts: tuple[PartSeen, ...] = ()
    if run.alive and run.socket is not None:
        state, parts = _held(run, reveal=reveal)
    return Seen(
        id=run.id,
        pid=run.pid,
        state=state,
        holds=run.title,
        staged=run.staged,
        root=run.root,
        age_s=round(time.time() - run.since, 1) if run.since else 0.0,
        command=" ".join(run.command),
        parts=parts,
    )


def _held(run: RunSeen, *, reveal: bool) -> tuple[str, tuple[PartSeen, ...]]:
    assert run.socket is not None
    try:
        found = ask(run.socket, "describe")
    except HarnessError:  # it is just ending, or it never came up
        return "ending", ()
    if found is None:
        return "booting", ()
    return "up", tuple(_part(row, reveal=reveal) for row in found["parts"])


def _part(row: Mapping[str, Any], *, reveal: bool) -> PartSeen:
    urls = dict(row.get("urls", {}))
    if not reveal:
        redactor = Redactor()
        urls = {key: redactor.redact(value) for key, value in urls.items()}
    return PartSeen(
        name=str(row["name"]),
        kind=str(row["kind"]),
        state=str(row["state"]),
        address=str(row["address"]),
        pid=row["pid"],
        container=str(row.get("container", "")),
        log=str(row["log"]),
        urls=urls,
        secrets=dict(row.get("secrets", {})) if reveal else {},
    )


def render(runs: Sequence[Seen]) -> list[str]:
    """The runs as lines of a table."""
    if not runs:
        return ["nothing runs"]
    lines = []
    for run in runs:
        command = run.command if len(run.command) <= _COMMAND_CHARS else run.command[:57] + "..."
        what = f"{run.holds} {run.state}" if run.holds else run.state
        age = f" for {_age(run.age_s)}" if run.age_s and run.state != "dead" else ""
        hint = "remove what it left: harness sweep" if run.state == "dead" else command
        where = f"  in {run.root}" if run.root else ""
        lines.append(f"{run.id}  {what}{age}  pid {run.pid}{where}  {hint}")
        lines.extend(_part_lines(run.parts))
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
    lines.extend(
        f"{part.name}: {key}={value}" for part in parts for key, value in part.secrets.items()
    )
    return [f"  {line}" for line in lines]


def _age(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
