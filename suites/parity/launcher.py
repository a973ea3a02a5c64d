"""What a scenario asks of a launcher, whichever it is: the boundary of contract "bottle".

An adapter file (``backends.py`` for the reference) makes these out of a launcher's own API and names
its backends in ``BACKENDS``. Nothing else knows the launcher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from suites.parity.compare import Allowance
from suites.parity.world import World

__all__ = ["Backend", "Bottle", "ExecResult", "Launcher"]


class ExecResult(Protocol):
    """What a script in the guest answered."""

    @property
    def returncode(self) -> int:
        """Its exit status."""

    @property
    def stdout(self) -> str:
        """Its output, unchanged."""

    @property
    def stderr(self) -> str:
        """Its errors, unchanged."""


class Bottle(Protocol):
    """A running bottle."""

    @property
    def identity(self) -> str:
        """The name of its state directory."""

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        """The command on the host that runs ``argv`` in the guest."""

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        """Run it; its exit status."""

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        """Run a shell script in the guest."""

    def cp_in(self, host: Path, guest: str) -> None:
        """Copy a file or folder into the guest."""

    def close(self) -> None:
        """Remove the guest; again and again does nothing more."""


class Launcher(Protocol):
    """A launcher wired to one world."""

    #: What it raises on purpose; anything else that leaves it is a crash.
    errors: tuple[type[Exception], ...]

    def start(self, name: str, *, backend: str | None) -> AbstractContextManager[Bottle]:
        """Launch the bottle of a manifest; ``None`` leaves the choice to the launcher."""

    def resume(self, identity: str) -> AbstractContextManager[Bottle]:
        """Launch a preserved bottle again, on the backend it was recorded with."""

    def preserve(self, identity: str) -> None:
        """Mark a bottle's state to outlive it."""

    def active(self, backend: str) -> list[str]:
        """Identities that a backend takes for running bottles of its own."""

    def cleanup(self) -> None:
        """Remove what crashed launches left."""

    def propose(self, identity: str, *, image: str, justification: str) -> str:
        """Queue a capability-block proposal; its id."""

    def pending(self) -> list[str]:
        """Ids of proposals that wait."""

    def approve(self, proposal: str) -> None:
        """Approve one, which applies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One row of an adapter: a backend of the launcher under test.

    Attributes:
        name: as ``--backend`` and the metadata have it.
        tool: the command it drives, as the model in ``tools/`` is named.
        open: the launcher, wired to a world.
        applies_proposals: it can change the image of a bottle; otherwise it must refuse to.
        allowances: documented differences between this backend and the others.
        live: the gate that says whether it can run for real here.
        in_process: the launcher is a library: what it does to files and what it holds can be seen
            from the test's own process. One that is a program needs files that are really there.
    """

    name: str
    tool: str
    open: Callable[[World], Launcher]
    applies_proposals: bool
    allowances: tuple[Allowance, ...] = ()
    live: str
    in_process: bool = True
