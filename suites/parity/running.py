"""One command of a launcher that is a program: its output, its prompts, its end.

While a command is waited for, the tools that it runs are answered by the same thread: a launcher
never runs beside its test, and what happens when is the test's to decide.
"""

from __future__ import annotations

import os
import re
import select
import subprocess  # lint: allow driver: the launcher under test is a program
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from harness_core.base.slowness import patience
from suites.parity.compare import Call, Reply
from suites.parity.tools.relay import Relay

__all__ = ["ENDS_S", "PATIENCE_S", "Running", "pump"]

#: What a command may take; only one that hangs needs all of it.
PATIENCE_S: Final = 120.0

#: What it may take to end once its bottle was ended.
ENDS_S: Final = 20.0


class Running:
    """A command that was started.

    Args:
        argv: the whole command line.
        env: its whole environment.
        prompt: what it asks; the first group is what a user reads.
        answer: what is typed at a prompt, with its end, ``None`` when the terminal is closed. One
            that may not ask has an empty input.

    Attributes:
        argv: the command line.
        status: how it ended, negative for a signal; 0 as long as it has not.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        prompt: re.Pattern[str],
        answer: Callable[[str], bytes | None] | None,
    ) -> None:
        self.argv = tuple(argv)
        self.status = 0
        self._prompt = prompt
        self._answer = answer
        self._process = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL if answer is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._end = os.pidfd_open(self._process.pid)
        streams = (self._process.stdout, self._process.stderr)
        self._texts = {stream.fileno(): b"" for stream in streams if stream is not None}
        self._out, self._err = self._texts
        self._open = {*self._texts}
        self._typed = b""
        self._asked = 0
        for descriptor in self._texts:
            os.set_blocking(descriptor, False)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)

    @property
    def stdout(self) -> str:
        """What it printed so far; bytes that are no UTF-8 are kept as surrogates."""
        return self._texts[self._out].decode(errors="surrogateescape")

    @property
    def stderr(self) -> str:
        """Its errors and prompts so far."""
        return self._texts[self._err].decode(errors="surrogateescape")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    def waits_for(self) -> tuple[list[int], list[int]]:
        """Descriptors by which something happens to it: to be read, and to be written."""
        if self.is_over:
            return [], []
        stdin = self._process.stdin
        writes = [stdin.fileno()] if stdin is not None and not stdin.closed and self._typed else []
        return [self._end, *self._open], writes

    def go_on(self, ready: Sequence[int]) -> None:
        """Take what happened."""
        if self.is_over:
            return
        for descriptor in self._open & set(ready):
            self._read(descriptor)
        if self._end in ready:
            self._process.wait()
            for descriptor in tuple(self._open):
                self._read(descriptor)
            self._close()
            return
        self._ask()
        self._type()

    def kill(self) -> None:
        """End it as SIGKILL does; one that has ended stays as it is."""
        if not self.is_over:
            self._process.kill()
            self._process.wait()
            self._close()

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            while part := os.read(descriptor, 1 << 16):
                self._texts[descriptor] += part
            self._open.discard(descriptor)

    def _ask(self) -> None:
        """Answer what it asks."""
        stdin = self._process.stdin
        if self._answer is None or stdin is None or stdin.closed:
            return
        while found := self._prompt.search(self.stderr, self._asked):
            self._asked = found.end()
            typed = self._answer(found[1])
            if typed is None:
                stdin.close()
                return
            self._typed += typed

    def _type(self) -> None:
        stdin = self._process.stdin
        if self._typed and stdin is not None and not stdin.closed:
            with suppress(BlockingIOError, BrokenPipeError):
                written = os.write(stdin.fileno(), self._typed)
                self._typed = self._typed[written:]

    def _close(self) -> None:
        self.status = self._process.returncode
        os.close(self._end)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def pump(
    running: Running,
    others: Sequence[Running],
    relay: Relay,
    answer: Callable[[Call], Reply],
    *,
    until: Callable[[], bool],
    patience_s: float = PATIENCE_S,
) -> None:
    """Let a command go on until it is at its end, or something else holds.

    Args:
        running: the command.
        others: commands that stay meanwhile, and are heard as well.
        relay: the tools that all of them run.
        answer: what a tool answers.
        until: what else ends the waiting.
        patience_s: how long nothing need happen, on a calm machine.

    Raises:
        AssertionError: nothing happens any more.
    """
    everybody = [running, *(each for each in others if each is not running)]
    while not (running.is_over or until()):
        waits = [each.waits_for() for each in everybody]
        reads = [relay.fileno(), *(one for each, _ in waits for one in each)]
        writes = [one for _, each in waits for one in each]
        readable, writable, _ = select.select(reads, writes, [], patience(patience_s))
        assert readable or writable, (
            f"a command of the launcher comes to its end: expected one within {patience_s:.0f} s, "
            f"found {' '.join(running.argv[:6])} still there, which said {running.stderr!r}"
        )
        if relay.fileno() in readable:
            relay.serve(answer)
        for each in everybody:
            each.go_on([*readable, *writable])
