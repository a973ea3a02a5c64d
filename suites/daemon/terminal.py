"""A terminal whose screen a test can read: a tmux server of its own, one pane, keys in and screen out."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import NotReady
from harness_core.base.wait import deadline, until
from harness_core.process import Run
from suites.daemon.waits import DUE

__all__ = ["Terminal", "open_terminal"]

COLUMNS: Final = 120
ROWS: Final = 40

#: tmux itself answers in milliseconds.
_TMUX_S: Final = 10.0


class Terminal:
    """A pane in which one program runs; built only by :func:`open_terminal`."""

    def __init__(self, socket: Path, environment: Mapping[str, str]) -> None:
        self._socket = socket
        self._environment = dict(environment)

    async def screen(self) -> str:
        """What is on the screen, the lines that have scrolled off included."""
        status, text = await self._tmux("capture-pane", "-p", "-J", "-S", "-400", "-t", "main")
        return text if status == 0 else ""

    async def ended(self) -> bool:
        """Whether the program has ended."""
        status, _ = await self._tmux("has-session", "-t", "main")
        return status != 0

    async def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        await self._tmux("send-keys", "-t", "main", "-l", text)
        await self._tmux("send-keys", "-t", "main", "Enter")

    async def expect(
        self, what: str, shown: Callable[[str], bool], *, seconds: float = 15.0
    ) -> str:
        """Wait until the screen shows something in two readings in a row; returns it.

        One reading may meet a program in the middle of drawing, with a line gone that is there before
        and after.

        Raises:
            AssertionError: it does not within ``seconds``; shows the screen.
        """
        screen, before = "", False

        async def is_shown() -> bool:
            nonlocal screen, before
            screen = await self.screen()
            shown_before, before = before, shown(screen)
            return shown_before and before

        with DUE.waiting(seconds=seconds) as wait:
            try:
                with deadline(f"see {what}", seconds=wait.seconds):
                    await until(is_shown)
                wait.came = True
            except NotReady as error:
                frame = "\n".join(f"  | {line}" for line in screen.rstrip().splitlines())
                raise AssertionError(
                    f"contract 9: after {wait.seconds:g} s{wait.note} the terminal does not show {what}:\n"
                    f"{frame}"
                ) from error
        return screen

    async def start(self, argv: Sequence[str]) -> None:
        """Run a program in the pane; its end ends the pane."""
        command = shlex.join(argv)
        size = ("-x", str(COLUMNS), "-y", str(ROWS))

        async def made() -> bool:
            status, _ = await self._tmux("new-session", "-d", "-s", "main", *size, command)
            return status == 0

        with deadline("start a program in tmux", seconds=_TMUX_S):
            await until(made)

    async def _tmux(self, *words: str) -> tuple[int, str]:
        with deadline(f"run tmux {words[0]}", seconds=_TMUX_S):
            done = await trio.run_process(
                ["tmux", "-S", str(self._socket), *words],
                env=self._environment,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
        return done.returncode, done.stdout.decode(errors="replace")


@asynccontextmanager
async def open_terminal(
    run: Run, argv: Sequence[str], *, environment: Mapping[str, str]
) -> AsyncIterator[Terminal]:
    """Run a program in a terminal of its own; the terminal goes at the end of the block.

    Args:
        run: what the tmux server is a child of.
        argv: the program.
        environment: its whole environment.
    """
    socket = run.directory("tmux") / "socket"
    env = {**environment, "TERM": "screen-256color", "LC_ALL": "C.UTF-8"}
    server = ["tmux", "-S", str(socket), "-f", "/dev/null", "-D"]
    async with run.child(server, name="tmux", env=env) as child:
        terminal = Terminal(socket, env)

        async def listening() -> bool:
            child.check("start tmux")
            return socket.exists()

        with deadline("start tmux", seconds=_TMUX_S, tail=child.tail):
            await until(listening)
        await terminal.start(argv)
        yield terminal
