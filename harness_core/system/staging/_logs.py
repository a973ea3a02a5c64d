"""The logs of what a run holds: the last lines, and what comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.wait import until
from harness_core.system.staging._registry import find_runs
from harness_core.system.staging._seen import PartSeen, Seen, runs_seen

__all__ = ["Follower", "show_logs"]

#: Most that is read of one log at one look.
_READ_BYTES: Final = 1024 * 1024

Say = Callable[[str], None]


class Follower:
    """Reads several logs as they grow; each line is told with the name of its part.

    Args:
        logs: name of a part → its log file.
        say: told each line.
        lines: how many of the lines that are there already are told first, per log.
    """

    def __init__(self, logs: Sequence[tuple[str, Path]], *, say: Say, lines: int) -> None:
        self._say = say
        self._width = max((len(name) for name, _ in logs), default=0)
        self._logs = dict(logs)
        self._read: dict[str, int] = {}
        self._rest: dict[str, bytes] = {}
        for name, path in logs:
            self._begin(name, path, lines=lines)

    def look(self) -> None:
        """Tell what has come since the last look."""
        for name, path in self._logs.items():
            try:
                with path.open("rb") as file:
                    file.seek(self._read[name])
                    data = file.read(_READ_BYTES)
            except FileNotFoundError:
                continue
            self._read[name] += len(data)
            *whole, self._rest[name] = (self._rest[name] + data).split(b"\n")
            self._tell(name, whole)

    def _begin(self, name: str, path: Path, *, lines: int) -> None:
        data = path.read_bytes() if path.exists() else b""
        *whole, self._rest[name] = data.split(b"\n")
        self._read[name] = len(data)
        self._tell(name, whole[-lines:] if lines else ())

    def _tell(self, name: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._say(f"{name:{self._width}} | {line.decode('utf-8', 'replace')}")

    async def follow(self, ended: Callable[[], Awaitable[bool]]) -> None:
        """Tell what comes until ``ended`` says so; the last words are told as well."""

        async def step() -> bool:
            over = await ended()
            self.look()
            return over

        await until(step)


def show_logs(
    names: Sequence[str],
    *,
    run: str | None,
    root: Path | None,
    follow: bool,
    lines: int,
    say: Say,
) -> None:
    """Tell the logs of parts.

    Args:
        names: of parts; all of them when empty.
        run: id of the run, or its beginning; may be left out when one of ``root`` holds something.
        root: the tree whose runs count when none is named; ``None`` for those of every tree.
        follow: go on until the run ends, or Ctrl-C.
        lines: how many of the last lines are told, per part.
        say: told each line.

    Raises:
        BadInput: no such run or part, or several to choose from.
    """
    holding = [seen for seen in runs_seen() if seen.parts]
    held = chosen(holding, run, root=root, command="harness logs --run")
    parts = _named(held, names)
    follower = Follower([(part.name, Path(part.log)) for part in parts], say=say, lines=lines)
    if follow:

        async def ended() -> bool:
            return held.id not in {found.id for found in find_runs() if found.alive}

        trio.run(follower.follow, ended)


def chosen(runs: Sequence[Seen], run: str | None, *, root: Path | None, command: str) -> Seen:
    """The one run that is meant.

    Args:
        runs: to choose from.
        run: its id, or the beginning of that; ``None`` for the only one of ``root``.
        root: the tree whose runs count when none is named; ``None`` for those of every tree.
        command: what takes the id as its next word.

    Raises:
        BadInput: none of that id, or there are several; lists them.
        HarnessError: there are none at all, or none of this tree.
    """
    if run is not None:
        matching = [seen for seen in runs if seen.id.startswith(run)]
    else:
        matching = [seen for seen in runs if root is None or seen.root == str(root.resolve())]
    if len(matching) == 1:
        return matching[0]
    action = f"find the run that `{command.removesuffix(' --run')}` is for"
    if not runs:
        raise HarnessError(
            action,
            observed="no run of this user holds anything",
            next_step="Start one: harness up (or nox -s staging)",
        )
    listed = ", ".join(_shown(seen) for seen in matching or runs)
    if run is None and not matching:
        raise HarnessError(
            action,
            observed=f"no run of {root} holds anything; of other trees there are {listed}",
            next_step=f"Name one of them ({command} ID), or start one here: harness up",
        )
    raise BadInput(
        command,
        found=run or f"{len(matching)} runs to choose from",
        expected=f"one of {listed}",
        next_step=f"Name one: {command} ID" if run is None else "",
    )


def _shown(seen: Seen) -> str:
    return (
        f"{seen.id} ({seen.holds}, in {seen.root})" if seen.holds else f"{seen.id} ({seen.state})"
    )


def _named(held: Seen, names: Sequence[str]) -> list[PartSeen]:
    with_log = {part.name: part for part in held.parts if part.log}
    for name in names:
        if name not in with_log:
            raise BadInput(
                "harness logs", key="NAME", found=name, expected=f"one of {', '.join(with_log)}"
            )
    return [with_log[name] for name in names or with_log]
