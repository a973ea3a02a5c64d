"""``harness up``: boot an environment, show where everything is, follow its logs, stop on request."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from harness_core.base.evidence import Evidence
from harness_core.base.groups import lone_error
from harness_core.process import open_run
from harness_core.system.options import Options
from harness_core.system.staging._host import Environment, Host, open_host
from harness_core.system.staging._logs import Follower
from harness_core.system.staging._openers import Opener
from harness_core.system.staging._runs import render, runs_seen
from harness_core.system.subject import Subject

__all__ = ["hold"]

Say = Callable[[str], None]


async def hold(  # noqa: PLR0913 - what `harness up` knows of it
    opener: Opener,
    subject: Subject | None,
    options: Options,
    *,
    title: str,
    root: Path,
    evidence: Evidence,
    say: Say,
    quiet: bool = False,
) -> bool:
    """Hold an environment until Ctrl-C, SIGTERM or ``harness down``, then take it down.

    Args:
        opener: opens the environment, see :func:`opener_of`.
        subject: what is booted; ``None`` for a suite without a subject file.
        options: what is asked of it.
        title: the name of the suite.
        root: the tree of the suite.
        evidence: directory for its logs.
        say: gets a line for what happens.
        quiet: do not follow the logs.

    Returns:
        Whether it was up; ``False`` when it was stopped while it booted.

    Raises:
        HarnessError: it could not be booted, or not be taken down without a leak.
    """
    was_up = False
    booting = trio.CancelScope()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with lone_error(), trio.open_nursery() as nursery:
            with booting:
                async with (
                    open_run(evidence=evidence) as run,
                    open_host(run, title=title, root=root, staged=True) as host,
                ):
                    nursery.start_soon(_obey, signals, host, say)
                    nursery.start_soon(_end_boot, host, booting)
                    opening = opener(run, subject, options=options, evidence=evidence, say=say)
                    async with opening as environment:
                        host.environment = environment
                        was_up = True
                        await _show(host, environment, run.id, say=say, quiet=quiet)
                        say("stopping: every part may finish what it is doing")
            nursery.cancel_scope.cancel()
    say("stopped; nothing is left" if was_up else "stopped before it was up; nothing is left")
    return was_up


async def _obey(signals: Any, host: Host, say: Say) -> None:
    """The first signal asks it to stop; a second one while it stops changes nothing."""
    async for number in signals:
        say(f"got {signal.Signals(number).name}")
        host.stopping.set()


async def _end_boot(host: Host, booting: trio.CancelScope) -> None:
    """Stopped while it boots, it does not boot to the end."""
    await host.stopping.wait()
    if host.environment is None:
        booting.cancel()


async def _show(
    host: Host, environment: Environment, run_id: str, *, say: Say, quiet: bool
) -> None:
    seen = [run for run in await trio.to_thread.run_sync(runs_seen) if run.id == run_id]
    for line in render(seen):
        say(line)
    say(
        f"from another terminal: harness ps (--reveal shows passwords), logs NAME -f, down; "
        f"end it here with Ctrl-C ({host.path.parent.name})"
    )
    if quiet:
        await host.stopping.wait()
        return
    logs = {part["name"]: Path(part["log"]) for part in environment.describe()["parts"]}
    there = {name: path for name, path in logs.items() if path.is_file()}
    await Follower(there, say=say, lines=0).follow(host.stopping.is_set)
