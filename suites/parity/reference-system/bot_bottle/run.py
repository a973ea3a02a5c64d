"""The one subprocess layer: every command of every backend goes through a `Runner`."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot_bottle import faults
from bot_bottle.errors import BackendError
from bot_bottle.hidden import Hidden

#: An argument that stands for the descriptor from which `inherited` can be read.
DESCRIPTOR = "{descriptor}"


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command answered."""

    returncode: int
    stdout: bytes = b""
    stderr: bytes = b""


class Runner(Protocol):
    """Runs commands."""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
        attached: bool = False,
    ) -> Completed:
        """Run one command to its end.

        `env` is its whole environment, or `None` for the launcher's. `inherited` can be read from
        the descriptor that takes the place of the first `DESCRIPTOR` in `argv`: arguments that no
        other process must see; what follows is as it is. When `attached` it has the launcher's own input and
        output instead of pipes.
        """
        ...


class SubprocessRunner:
    """Runs them for real."""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
        attached: bool = False,
    ) -> Completed:
        descriptors: list[int] = []
        try:
            if inherited:
                descriptor = os.memfd_create("bot-bottle")
                descriptors.append(descriptor)
                os.write(descriptor, inherited)
                os.lseek(descriptor, 0, os.SEEK_SET)
                at = argv.index(DESCRIPTOR)
                argv = [*argv[:at], str(descriptor), *argv[at + 1 :]]
            if attached:
                status = subprocess.call(
                    list(argv), env=env, pass_fds=descriptors, preexec_fn=_end_with_launcher
                )
                return Completed(_status(status))
            done = subprocess.run(
                list(argv),
                env=env,
                input=stdin,
                capture_output=True,
                pass_fds=descriptors,
                preexec_fn=_end_with_launcher,
            )
            return Completed(_status(done.returncode), done.stdout, done.stderr)
        except FileNotFoundError as error:
            raise BackendError(
                f"cannot run {argv[0]}: it is not installed, or not on PATH"
            ) from error
        except OSError as error:
            raise BackendError(f"cannot run {argv[0]}: {error.strerror}") from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def _end_with_launcher() -> None:
    """Between fork and exec: the command is killed when the launcher is."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _status(returncode: int) -> int:
    """An exit status as a shell has it: 128 and the number of the signal that ended the command."""
    return returncode if returncode >= 0 else 128 - returncode


def checked(
    runner: Runner,
    argv: Sequence[str],
    doing: str,
    *,
    hidden: Hidden,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Run a command that must succeed; its output.

    What it says on stderr becomes part of the error, without what is hidden; its arguments and
    environment do not.
    """
    done = runner.run(argv, env=env)
    if done.returncode != 0:
        message = hidden.taken_out(done.stderr) or f"exit status {done.returncode}"
        if faults.on("secret-in-error"):
            message += f" with {dict(env or {})}"
        raise BackendError(f"cannot {doing}: {argv[0]} says: {message}")
    return done.stdout
