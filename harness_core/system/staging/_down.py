"""``harness down``: ask a held environment to stop; sweep one whose holder is dead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness_core.base.errors import HarnessError, NotReady
from harness_core.base.wait import until_blocking
from harness_core.process import ledgers, sweep
from harness_core.system.staging._host import SOCKET, ask
from harness_core.system.staging._logs import chosen
from harness_core.system.staging._runs import RunSeen, living_runs, runs_seen

__all__ = ["take_down"]

#: Butlers finish their sessions for up to 30 s, one after the other the rest ends in seconds.
_DOWN_S: Final = 90.0


def take_down(
    run: str | None, *, every: bool, root: Path | None, say: Callable[[str], None]
) -> None:
    """Take down one staged environment, or every one.

    Args:
        run: id of the run, or its beginning; may be left out when there is one of ``root``.
        every: all of them, of every tree.
        root: the tree whose environments count when none is named; ``None`` for every tree.
        say: gets a line for what is done.

    Raises:
        BadInput: no such run, or several to choose from.
        HarnessError: it belongs to a test run, or does not end.
    """
    runs = runs_seen()
    staged = [seen for seen in runs if seen.staged]
    if every:
        for seen in staged:
            _take_down(seen, say=say)
        if not staged:
            say("nothing is staged")
        return
    candidates = staged if run is None else runs
    seen = chosen(candidates, run, root=root, command="harness down")
    if not seen.staged and seen.state != "dead":
        raise HarnessError(
            f"take down {seen.id}",
            observed=f"it is no staged environment but {seen.command or 'a run'}",
            next_step=f"End that process (pid {seen.pid}) itself; it takes down what it made",
        )
    _take_down(seen, say=say)


def _take_down(seen: RunSeen, *, say: Callable[[str], None]) -> None:
    if seen.state == "dead":
        report = sweep()
        say(f"{seen.id} was dead; removed {len(report.removed)} thing(s) that dead runs left")
        for problem in report.problems:
            say(problem)
        return
    for ledger in ledgers():
        if ledger.id == seen.id:
            # One that ends at once may hang up before it has answered: its end is what counts.
            with suppress(HarnessError):
                ask(ledger.directory / SOCKET, "stop")
    try:
        until_blocking(
            lambda: seen.id not in living_runs(), seconds=_DOWN_S, action=f"see {seen.id} end"
        )
    except NotReady as error:
        raise NotReady(
            f"take down {seen.id}",
            observed=f"asked to stop, pid {seen.pid} still runs: {error.observed}",
            waited_s=error.waited_s,
            next_step=f"Read its output; `kill {seen.pid}`, then `harness sweep`, ends it for good",
        ) from error
    say(f"{seen.id} ({seen.holds}) is down")
