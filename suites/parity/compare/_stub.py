"""A subprocess layer that records every call, answers from a model of the tool, and can fail.

A stand-in for a container engine or a virtual machine that is not there. It is allowed because the
same scenarios run against the real ones in the live lane, and because it *refuses*: an invocation
that its model of the tool does not know fails the test instead of passing quietly.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, Protocol

__all__ = ["Call", "CommandStub", "Reply", "SimulatedCrash", "Tool", "UnknownInvocation"]


#: Linux takes no longer argument, and no longer entry of an environment, its NUL included.
_WORD_BYTES: Final = 131_072


class UnknownInvocation(AssertionError):  # noqa: N818 - what the product did, as pytest shows it
    """The launcher ran a command that the tool does not have, or not in this way."""


class SimulatedCrash(BaseException):
    """The launcher dies here: nothing it does afterwards reaches a tool.

    Not an ``Exception``, so that no handler of the launcher takes it for a failing command. Unlike
    a real SIGKILL it runs ``finally`` blocks; those may touch files, but no tool.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command that the launcher ran.

    Attributes:
        argv: as any process on the host can read it.
        env: the environment it was given.
        stdin: what it was fed.
        inherited: what it could read from a descriptor that it inherited.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    inherited: bytes = b""

    @property
    def tool(self) -> str:
        """The name of the command, without its folder."""
        return PurePath(self.argv[0]).name

    def __str__(self) -> str:
        return " ".join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a command answered."""

    returncode: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


class Tool(Protocol):
    """A model of one command line tool."""

    def run(self, call: Call) -> Reply:
        """Answer as the tool would, and remember what it would have done.

        Raises:
            UnknownInvocation: the tool has no such command, flag or argument.
        """
        ...  # pragma: no cover


class CommandStub:
    """Runs commands on models of tools.

    Args:
        tools: name of the command → its model.
        folder: where they are, for commands that are run with an environment: one whose ``PATH`` does
            not name it finds none.

    Attributes:
        calls: every call, in order, refused ones included.
        refused: what was refused, also when the launcher swallowed it.
        missing: tools that are not installed.
    """

    def __init__(self, tools: Mapping[str, Tool], *, folder: str = "") -> None:
        self.calls: list[Call] = []
        self.refused: list[UnknownInvocation] = []
        self.missing: set[str] = set()
        self._tools = dict(tools)
        self._folder = folder
        self._failures: dict[int, Reply | Callable[[Call], Reply]] = {}
        self._crash_at: int | None = None
        self._crash_after = False
        self._dead = False

    def fail_at(self, number: int, *, reply: Reply | Callable[[Call], Reply] | None = None) -> None:
        """Let one call fail without any effect.

        Args:
            number: which call from now on, counted from 1.
            reply: what it answers, or makes of the call; exit status 1 and a line on stderr, which is
                no UTF-8, when left out.
        """
        default = Reply(returncode=1, stderr=b"simulated failure: d\xe9j\xe0 vu\n")
        self._failures[len(self.calls) + number] = reply or default

    def crash_at(self, number: int, *, after: bool = False) -> None:
        """Let the launcher die at one call.

        Args:
            number: which call from now on, counted from 1.
            after: the command has taken effect before the launcher dies.
        """
        self._crash_at = len(self.calls) + number
        self._crash_after = after

    def revive(self) -> None:
        """A new launcher process: calls reach the tools again, and failures are withdrawn."""
        self._dead = False
        self._crash_at = None
        self._failures.clear()

    @property
    def crashed(self) -> bool:
        """The launcher has died and was not revived."""
        return self._dead

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
    ) -> Reply:
        """Run one command on the model of its tool.

        Raises:
            UnknownInvocation: no such tool, or it does not know this invocation.
            SimulatedCrash: the launcher dies here as the test asked, or is dead.
            OSError: the tool is not installed, or the kernel takes no such argument.
            ValueError: a NUL in an argument or in the environment, as Python's own.
        """
        if self._dead:
            raise SimulatedCrash
        _check_words([*argv, *(f"{name}={value}" for name, value in (env or {}).items())])
        call = Call(argv=tuple(argv), env=dict(env or {}), stdin=stdin, inherited=inherited)
        self.calls.append(call)
        number = len(self.calls)
        crash = number == self._crash_at
        if crash and not self._crash_after:
            self._dead = True
            raise SimulatedCrash
        if call.tool in self.missing or not self._is_found(call):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), call.argv[0])
        if (failure := self._failures.pop(number, None)) is not None:
            return failure if isinstance(failure, Reply) else failure(call)
        reply = self._answer(call)
        if crash:
            self._dead = True
            raise SimulatedCrash
        return reply

    def _is_found(self, call: Call) -> bool:
        named = "/" in call.argv[0] or not self._folder or not call.env
        return named or self._folder in call.env.get("PATH", "").split(":")

    def check(self) -> None:
        """Fail when anything was refused, also when the launcher took it for a failing command.

        Raises:
            UnknownInvocation: the first refusal.
        """
        if self.refused:
            raise self.refused[0]

    def _answer(self, call: Call) -> Reply:
        try:
            return self._tool(call).run(call)
        except UnknownInvocation as refusal:
            self.refused.append(refusal)
            raise

    def _tool(self, call: Call) -> Tool:
        if call.tool not in self._tools:
            known = ", ".join(sorted(self._tools))
            message = f"the launcher ran {call.tool!r}, expected one of {known}: {call}"
            raise UnknownInvocation(message)
        return self._tools[call.tool]


def _check_words(words: Sequence[str]) -> None:
    """Refuse what no process can be given."""
    for word in words:
        if "\0" in word:
            message = "embedded null byte"
            raise ValueError(message)
        if len(os.fsencode(word)) >= _WORD_BYTES:
            # As Python's own: it names the command, and no word.
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), words[0])
