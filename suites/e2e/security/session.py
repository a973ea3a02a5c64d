"""A session in the middle of its work, observed from outside: its processes, files and directories.

The model's answer to one session is held back, so that the session stays where it is; what the
kernel knows of its processes is read then. Nothing of the product is asked.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import HarnessError
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.process import command_line, descendants
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import Journey, follow

__all__ = ["Channel", "ProcessSeen", "SessionSeen", "hold_session"]

#: From the message to the target's session asking its model; two sessions on a loaded machine.
_REACHED_S: Final = 30.0

#: After the session's row is complete, its process and directories may take this long to go.
_GONE_S: Final = 5.0

#: A file larger than this is no configuration.
_FILE_BYTES: Final = 1_000_000

#: Variables whose values are directories of the session.
_PLACES: Final = ("HOME", "CLAUDE_CONFIG_DIR", "TMPDIR")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSeen:
    """One process of a session, as the kernel shows it."""

    pid: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path

    def text(self) -> str:
        """Which process it is, without its arguments: they may hold what is searched for."""
        return f"pid {self.pid} ({Path(self.argv[0]).name if self.argv else 'unknown'})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """How a session reaches an MCP server.

    Attributes:
        url: of the server.
        headers: what it sends along, by which the server may know it.
    """

    url: str
    headers: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SessionSeen:
    """One session, while it worked and after its end.

    Attributes:
        processes: that were below the butler's own while the session was held, and not before.
        places: directory → its octal mode as others meet it, parents included.
        files: files below its directories → their text.
        left_places: directories that are still there after its end.
        left_files: entries of the butler's directory for temporary files that were not there before.
        left_processes: processes that are still there after its end.
        journey: what the message left that caused it.
    """

    butler: Butler
    processes: tuple[ProcessSeen, ...]
    places: Mapping[Path, int]
    files: Mapping[Path, str]
    left_places: tuple[Path, ...]
    left_files: tuple[str, ...]
    left_processes: tuple[str, ...]
    journey: Journey

    def channels(self) -> tuple[Channel, ...]:
        """The MCP servers that it was given, as its command line and its files name them."""
        texts = [word for process in self.processes for word in process.argv]
        return tuple(
            Channel(url=server["url"], headers=dict(server.get("headers") or {}))
            for text in (*texts, *self.files.values())
            for server in _servers_in(text)
        )


async def hold_session(
    ecosystem: Ecosystem,
    text: str,
    *,
    butler: str,
    tool: str,
    token: str,
    for_ever: bool = False,
) -> SessionSeen:
    """Send a message, hold the session it causes on ``butler``, observe it, let it go.

    Args:
        ecosystem: where to.
        text: the message; holds ``token``.
        butler: whose session it is to cause.
        tool: a tool of that butler, which the session is offered and no classification is.
        token: a word of this message alone.
        for_ever: its model never answers, so that its butler has to end it.

    Raises:
        HarnessError: a session asks the model, and no process of it can be seen.
    """
    target = ecosystem[butler]
    before = set(descendants(target.pid))
    entries = _entries(target)
    held = Fault(kind="hold", times=20, contains=token, also=tool)
    client = ecosystem.gateway.client
    async with client.fault(held) as number:
        sent = await ecosystem.send(text)

        async def reached() -> bool:
            return await client.fault_met(number) > 0

        with deadline(f"see a session of {butler} ask the model", seconds=_REACHED_S):
            await until(reached)
        processes = tuple(_seen(pid) for pid in descendants(target.pid) if pid not in before)
        places = _places(processes)
        files = dict(_files(places))
        if not processes:
            raise HarnessError(
                f"observe a session of {butler}",
                observed=f"no process below pid {target.pid} while it asks the model",
                next_step="A subject whose sessions are no child processes lists no 'session-process'",
            )
        journey = await follow(ecosystem, sent) if for_ever else None
    journey = journey or await follow(ecosystem, sent)

    async def gone() -> bool:
        return not (_alive(processes) or _existing(places) or _entries(target) - entries)

    try:
        with deadline("see the end of a session", seconds=_GONE_S):
            await until(gone)
    except HarnessError:
        pass  # what is left is the test's to judge
    return SessionSeen(
        butler=target,
        processes=processes,
        places=places,
        files=files,
        left_places=_existing(places),
        left_files=tuple(sorted(_entries(target) - entries)),
        left_processes=_alive(processes),
        journey=journey,
    )


def _seen(pid: int) -> ProcessSeen:
    process = Path("/proc", str(pid))
    pairs = process.joinpath("environ").read_bytes().split(b"\0")
    environment = dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs if pair)
    return ProcessSeen(
        pid=pid,
        argv=tuple(command_line(pid)),
        environment=environment,
        directory=process.joinpath("cwd").readlink(),
    )


def _places(processes: Iterable[ProcessSeen]) -> dict[Path, int]:
    named = {
        Path(process.environment[variable])
        for process in processes
        for variable in _PLACES
        if process.environment.get(variable)
    }
    named.update(process.directory for process in processes)
    return {place: _open_to_others(place) for place in sorted(named) if place.is_dir()}


def _open_to_others(place: Path) -> int:
    """What group and others may do in a directory: nothing, when one above is closed to them."""
    mode = 0o077
    for directory in (place, *place.parents):
        bits = stat.S_IMODE(directory.stat().st_mode) & 0o077
        mode = mode & bits if directory == place else mode
        if not bits & 0o011:
            return 0
    return mode


def _files(places: Iterable[Path]) -> Iterable[tuple[Path, str]]:
    for place in places:
        for path in place.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _FILE_BYTES:
                yield path, path.read_text(encoding="utf-8", errors="replace")


def _servers_in(text: str) -> list[Mapping[str, Any]]:
    """The servers of a configuration of Claude Code, in its own words; none of another text."""
    if "mcpServers" not in text:
        return []
    try:
        known = json.loads(text)["mcpServers"]
    except (ValueError, KeyError, TypeError):
        return []
    return [server for server in known.values() if isinstance(server, Mapping) and "url" in server]


def _existing(places: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(place for place in places if place.exists())


def _alive(processes: Iterable[ProcessSeen]) -> tuple[str, ...]:
    return tuple(
        process.text() for process in processes if tuple(command_line(process.pid)) == process.argv
    )


def _entries(butler: Butler) -> set[str]:
    directory = Path(butler.environment["TMPDIR"])
    return {path.name for path in directory.iterdir()}
