"""The adapter: the reference launcher, as the scenarios ask for it. The only file that knows it.

Another launcher has a file like this one: ``nox -s parity -- --subject my_backends.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Final

from bot_bottle import BottleError, Host
from bot_bottle import Launcher as BotBottle
from bot_bottle.errors import BackendError
from bot_bottle.run import Completed

from suites.parity.launcher import Backend, Bottle
from suites.parity.world import World

__all__ = ["BACKENDS"]


class _Runner:
    """The launcher's subprocess layer, on the commands of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
        attached: bool = False,
    ) -> Completed:
        """Run one command."""
        environ = dict(os.environ) if env is None else env
        try:
            reply = self._world.commands.run(argv, env=environ, stdin=stdin, inherited=inherited)
        except OSError as error:
            # As its own runner tells it.
            message = f"cannot run {argv[0]}: {error.strerror}"
            raise BackendError(message) from error
        if attached:
            return Completed(reply.returncode)  # its output went to the launcher's own
        return Completed(reply.returncode, reply.stdout, reply.stderr)


class _Launcher:
    """The launcher, wired to one world."""

    errors = (BottleError,)

    def __init__(self, world: World) -> None:
        self._launcher = BotBottle(
            Host(
                home=world.home,
                environ=world.environ,
                prompt=world.answer,
                runner=_Runner(world),
                log=world.logger(),
                now=lambda: datetime(2026, 6, 2, 11, 30, tzinfo=UTC),
            )
        )

    def start(self, name: str, *, backend: str | None) -> AbstractContextManager[Bottle]:
        """Launch the bottle of a manifest."""
        return self._launcher.start(name, backend=backend)

    def resume(self, identity: str) -> AbstractContextManager[Bottle]:
        """Launch a preserved bottle again."""
        return self._launcher.resume(identity)

    def preserve(self, identity: str) -> None:
        """Mark a bottle's state to outlive it."""
        self._launcher.preserve(identity)

    def active(self, backend: str) -> list[str]:
        """Identities that a backend takes for running bottles of its own."""
        return self._launcher.active(backend)

    def cleanup(self) -> None:
        """Remove what crashed launches left."""
        self._launcher.cleanup()

    def propose(self, identity: str, *, image: str, justification: str) -> str:
        """Queue a proposal."""
        return self._launcher.propose(identity, image=image, justification=justification).id

    def pending(self) -> list[str]:
        """Ids of proposals that wait."""
        return [proposal.id for proposal in self._launcher.pending()]

    def approve(self, proposal: str) -> None:
        """Approve one."""
        self._launcher.approve(proposal)


BACKENDS: Final = (
    Backend(name="docker", tool="docker", open=_Launcher, applies_proposals=True, live="docker"),
    Backend(
        name="smolmachines", tool="smolvm", open=_Launcher, applies_proposals=False, live="smolvm"
    ),
    Backend(
        name="bubblewrap", tool="bwrap", open=_Launcher, applies_proposals=False, live="bubblewrap"
    ),
)
