"""The logs of what a run holds: the last lines, and what comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import trio

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.wait import until
from harness_core.system.staging._runs import RunSeen, living_runs, runs_seen

__all__ = ["Follower", "chosen", "show_logs"]

Say = Callable[[str], None]


class Follower:
    """Prints several logs as they grow, each line with the name of its part.

    Args:
        logs: name of a part → its log file.
        say: gets each line.
        lines: how many of the lines that are there already are printed first, per log.
    """

    def __init__(self, logs: Mapping[str, Path], *, say: Say, lines: int) -> None:
        self._logs = logs
        self._say = say
        self._width = max(map(len, logs), default=0)
        self._read = dict.fromkeys(logs, 0)
        self._unfinished = dict.fromkeys(logs, b"")
        self._print_new(most=lines)

    async def follow(self, ended: Callable[[], bool]) -> None:
        """Print what comes until ``ended`` is true; the last lines are printed as well."""

        async def step() -> bool:
            over = ended()
            self._print_new()
            return over

        await until(step)

    def _print_new(self, *, most: int | None = None) -> None:
        for name, path in self._logs.items():
            try:
                with path.open("rb") as file:
                    file.seek(self._read[name])
                    data = file.read()
            except FileNotFoundError:
                continue
            self._read[name] += len(data)
            *lines, self._unfinished[name] = (self._unfinished[name] + data).split(b"\n")
            for line in lines if most is None else lines[max(0, len(lines) - most) :]:
                self._say(f"{name:{self._width}} | {line.decode('utf-8', 'replace')}")


def show_logs(
    names: Sequence[str],
    *,
    run: str | None,
    root: Path | None,
    follow: bool,
    lines: int,
    say: Say,
) -> None:
    """Print the logs of parts.

    Args:
        names: of parts; all of them when empty.
        run: id of the run, or its beginning; may be left out when one of ``root`` holds something.
        root: the tree whose runs count when none is named; ``None`` for those of every tree.
        follow: go on until the run ends, or Ctrl-C.
        lines: how many of the last lines are printed, per part.
        say: gets each line.

    Raises:
        BadInput: no such run or part, or several to choose from.
    """
    holding = [seen for seen in runs_seen() if seen.parts]
    held = chosen(holding, run, root=root, command="harness logs --run")
    logs = {part.name: Path(part.log) for part in held.parts if part.log}
    for name in names:
        if name not in logs:
            expected = f"one of {', '.join(logs)}"
            raise BadInput("harness logs", key="NAME", found=name, expected=expected)
    follower = Follower({name: logs[name] for name in names or logs}, say=say, lines=lines)
    if follow:
        trio.run(follower.follow, lambda: held.id not in living_runs())


def chosen(runs: Sequence[RunSeen], run: str | None, *, root: Path | None, command: str) -> RunSeen:
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
    listed = ", ".join(
        f"{seen.id} ({f'{seen.holds}, in {seen.root}' if seen.holds else seen.state})"
        for seen in matching or runs
    )
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
