"""A host in a thread of this process: for pytest's controller and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

from harness_core.bridge import Loop, open_loop
from harness_core.evidence import Evidence
from harness_core.hosting._host import Environment, Host, open_host
from harness_core.process import Run, open_run

__all__ = ["HeldHost", "hold_host"]


class HeldHost:
    """A host that runs in a thread; built only by :func:`hold_host`.

    Attributes:
        run: the run that holds the environment.
        path: the control socket.
    """

    def __init__(self, loop: Loop, run: Run, host: Host) -> None:
        self._loop = loop
        self._host = host
        self.run = run
        self.path: Path = host.path

    def open_now(self) -> None:
        """Open the environment now, instead of when the first user asks.

        Raises:
            HarnessError: it could not be opened.
        """
        self._loop.run(self._host.environment)

    def wait_until_stopped(self) -> None:
        """Wait until somebody asks the host to end."""
        self._loop.run(self._host.stopping.wait)

    def ask_to_stop(self) -> None:
        """What :meth:`wait_until_stopped` waits for, from a signal handler's thread."""

        async def stop() -> None:
            self._host.stopping.set()

        self._loop.run(stop)


@contextmanager
def hold_host(
    opener: Callable[[Run, Loop], AbstractAsyncContextManager[Environment]],
    *,
    title: str,
    evidence: Evidence,
    say: Callable[[str], None] = lambda _text: None,
) -> Iterator[HeldHost]:
    """Open a run and a host in a thread, for the block.

    Args:
        opener: opens the environment of that run; is given the loop it lives on.
        title: what ``harness ps`` calls it.
        evidence: directory for the logs of the run.
        say: told what was found broken.

    Raises:
        HarnessError: at the end: something leaked, or could not be closed.
    """
    with (
        open_loop() as loop,
        loop.hold(open_run(evidence=evidence)) as run,
        loop.hold(open_host(run, lambda: opener(run, loop), title=title, say=say)) as host,
    ):
        yield HeldHost(loop, run, host)
