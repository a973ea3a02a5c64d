"""What a backend and a bottle are; everything that does not depend on which backend it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot_bottle.env import ResolvedEnv
from bot_bottle.errors import BackendError
from bot_bottle.run import Completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What is to be launched."""

    identity: str
    image: str
    env: ResolvedEnv


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one backend is going to launch it."""

    identity: str
    guest: str
    image: str
    env: ResolvedEnv = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a script in the guest answered; bytes that are no UTF-8 are kept as surrogates."""

    returncode: int
    stdout: str
    stderr: str

    @classmethod
    def of(cls, done: Completed) -> ExecResult:
        return cls(
            done.returncode,
            done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="surrogateescape"),
        )


class Bottle(Protocol):
    """A running bottle."""

    identity: str

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        """The command on the host that runs `argv` in the guest as the agent's user."""
        ...

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        """Run it to its end; its exit status."""
        ...

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        """Run a shell script in the guest."""
        ...

    def cp_in(self, host: Path, guest: str) -> None:
        """Copy a file or folder into the guest, to exactly that path.

        Raises:
            BackendError: it is not there, or cannot be copied.
        """
        ...

    def close(self) -> None:
        """Remove the guest; again and again does nothing more.

        Raises:
            BackendError: it could not be removed. Close may be called again.
        """
        ...


class Backend(Protocol):
    """One way of running bottles."""

    name: str

    def prepare(self, spec: Spec) -> Plan:
        """Check what can be checked without starting anything."""
        ...

    def launch(self, plan: Plan) -> AbstractContextManager[Bottle]:
        """Start the guest; it is removed at the end of the block."""
        ...

    def enumerate_active(self) -> list[str]:
        """Identities of this home's guests that run here."""
        ...

    def remove(self, identity: str) -> None:
        """Remove the guest of an identity, if there is one."""
        ...

    def leftovers(self) -> list[str]:
        """Identities of this home's guests, running or not."""
        ...

    def apply_image(self, identity: str, image: str) -> None:
        """Give a running bottle another image.

        Raises:
            RemediationError: it cannot be done; the bottle is as it was.
        """
        ...


@contextmanager
def closing(bottle: Bottle) -> Iterator[Bottle]:
    """Remove the guest at the end of the block."""
    try:
        yield bottle
    finally:
        bottle.close()


def source_of(path: Path) -> Path:
    """A path that can be copied.

    Raises:
        BackendError: nothing is there.
    """
    if not path.exists():
        raise BackendError(f"cannot copy {path}: there is no such file")
    # A path that begins with a dash would be read as a flag.
    return path if path.is_absolute() else Path.cwd() / path
