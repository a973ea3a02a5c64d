"""``harness up``: boot an environment, show where everything is, follow its logs, stop on request."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from harness_core.base.evidence import Evidence
from harness_core.base.groups import lone_error
from harness_core.process import Run, open_run
from harness_core.system.options import Options
from harness_core.system.staging._host import Host, open_host
from harness_core.system.staging._logs import Follower
from harness_core.system.staging._messages import Messages
from harness_core.system.staging._openers import Opener
from harness_core.system.staging._runs import render, runs_seen
from harness_core.system.staging._words import Environment
from harness_core.system.subject import Subject

__all__ = ["SAID", "Beside", "hold"]

Say = Callable[[str], None]

#: Opened for as long as something is held, e.g. a page of it: ``beside(run, socket, say=…)``; yields a
#: line that is said once more when all is up.
Beside = Callable[..., AbstractAsyncContextManager[str]]

#: Where among the evidence all stands that a person was told.
SAID: Final = "up.log"


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
    messages: Callable[[Any, Any], Messages] | None = None,
    beside: Beside | None = None,
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
        messages: makes, of what is up and the subject, what can be sent; left out when nothing can.
        beside: opened before it boots, and closed when it is down.

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
                    (beside or _nothing)(run, host.path, say=say) as last,
                ):
                    nursery.start_soon(_obey, signals, host, say)
                    nursery.start_soon(_end_boot, host, booting)

                    def note(line: str) -> None:
                        evidence.append(SAID, f"{_now()} {line}")
                        say(line)

                    opening = opener(run, subject, options=options, evidence=evidence, say=note)
                    async with opening as environment:
                        host.messages = messages(environment, subject) if messages else None
                        host.environment = environment
                        was_up = True
                        await _show(host, environment, run.id, say=say, quiet=quiet, last=last)
                        note("stopping: every part may finish what it is doing")
                        await host.settle()
            nursery.cancel_scope.cancel()
    say("stopped; nothing is left" if was_up else "stopped before it was up; nothing is left")
    return was_up


@asynccontextmanager
async def _nothing(run: Run, socket: Path, *, say: Say) -> AsyncIterator[str]:
    """What is opened beside it when nothing is."""
    del run, socket, say
    yield ""


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


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
    host: Host, environment: Environment, run_id: str, *, say: Say, quiet: bool, last: str
) -> None:
    seen = [run for run in await trio.to_thread.run_sync(runs_seen) if run.id == run_id]
    for line in render(seen):
        say(line)
    say(
        f"from another terminal: harness ps (--reveal shows passwords), logs NAME -f, down; "
        f"end it here with Ctrl-C ({host.path.parent.name})"
    )
    if last:
        say(last)
    if quiet:
        await host.stopping.wait()
        return
    logs = {part["name"]: Path(part["log"]) for part in environment.describe()["parts"]}
    there = {name: path for name, path in logs.items() if path.is_file()}
    await Follower(there, say=say, lines=0).follow(host.stopping.is_set)
