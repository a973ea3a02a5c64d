"""The logs of what a run holds: the last lines, and what comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from harness_core.errors import BadInput, HarnessError
from harness_core.hosting import find_runs
from harness_core.staging._seen import PartSeen, Seen, runs_seen
from harness_core.wait import until

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


def show_logs(names: Sequence[str], *, run: str | None, follow: bool, lines: int, say: Say) -> None:
    """Tell the logs of parts.

    Args:
        names: of parts; all of them when empty.
        run: id of the run, or its beginning; may be left out when only one holds something.
        follow: go on until the run ends, or Ctrl-C.
        lines: how many of the last lines are told, per part.
        say: told each line.

    Raises:
        BadInput: no such run or part, or several to choose from.
    """
    held = chosen([seen for seen in runs_seen() if seen.parts], run, what="harness logs")
    parts = _named(held, names)
    follower = Follower([(part.name, Path(part.log)) for part in parts], say=say, lines=lines)
    if follow:

        async def ended() -> bool:
            return held.id not in {found.id for found in find_runs() if found.alive}

        trio.run(follower.follow, ended)


def chosen(runs: Sequence[Seen], run: str | None, *, what: str) -> Seen:
    """The one run that is meant.

    Raises:
        BadInput: none of that id, or there are several.
        HarnessError: there are none at all.
    """
    matching = [seen for seen in runs if run is None or seen.id.startswith(run)]
    if len(matching) == 1:
        return matching[0]
    if not runs:
        raise HarnessError(
            f"find what `{what}` means",
            observed="nothing is held by any run of this user",
            next_step="Start it: harness up (or nox -s staging)",
        )
    listed = ", ".join(f"{seen.id} ({seen.holds or 'a run'})" for seen in matching or runs)
    raise BadInput(
        what,
        key="RUN",
        found=run if run is not None else f"{len(matching)} runs to choose from",
        expected=f"one of {listed}",
    )


def _named(held: Seen, names: Sequence[str]) -> list[PartSeen]:
    with_log = {part.name: part for part in held.parts if part.log}
    for name in names:
        if name not in with_log:
            raise BadInput(
                "harness logs", key="NAME", found=name, expected=f"one of {', '.join(with_log)}"
            )
    return [with_log[name] for name in names or with_log]
