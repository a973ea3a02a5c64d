"""Something is away for a block, in code with and without a loop."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from harness_core.front.handles._systems import Systems
    from harness_core.system.parts import Parts

#: In order, as a crash, or frozen with its connections open.
How: TypeAlias = Literal["stop", "kill", "pause"]


class Outage(AbstractContextManager[None], AbstractAsyncContextManager[None]):
    """A part is away during a ``with`` or ``async with``, and serves again afterwards.

    The block of either kind ends as :meth:`harness_core.system.parts.Parts.outage` says.
    """

    def __init__(self, system: Parts, name: str, how: How) -> None:
        self._system = system
        self._away = system.outage(name, how)
        self._block = ExitStack()

    def __enter__(self) -> None:
        self._block.enter_context(self._system.loop.hold(self._away))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._block.__exit__(kind, error, traceback)

    async def __aenter__(self) -> None:
        await self._away.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._away.__aexit__(kind, error, traceback)


class Outages:
    """Takes away what the fixtures of this test run: ``with outage("postgres", "kill"): …``.

    Args:
        systems: what they run.
    """

    def __init__(self, systems: Systems) -> None:
        self._systems = systems

    def __call__(self, name: str, how: How = "stop") -> Outage:
        """Of a service of ``stack``, a ``process``, or ``postgres``, ``s3``, ``temporal``, ``valkey``, ``nats``, ``model``.

        It is given back whatever happens in the block; then the block ends when all of its system
        serves again.

        Args:
            name: which.
            how: ``stop``, ``kill`` or ``pause``.

        Raises:
            BadInput: none of that name runs, or two.
        """
        return Outage(self._systems.having(name), name, how)
