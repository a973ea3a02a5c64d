"""A stack as a host holds it: described as data, acted on by name, put right after a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from harness_core.stack._handle import Stack

__all__ = ["LOOK", "PROCESSES", "STATES", "HeldStack", "hold_stack"]

#: What is asked about all services at once, besides the verbs of each.
LOOK: Final = "look"
STATES: Final = "states"
#: What is asked about one service.
PROCESSES: Final = "processes"


class HeldStack:
    """What a host asks of a stack; a :class:`harness_core.hosting.Environment`.

    Attributes:
        stack: the stack itself.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._states: Mapping[str, str] = {}

    def describe(self) -> Mapping[str, Any]:
        """Everything that another process needs to use it, and its services for people."""
        description = self.stack.description
        return {
            **description.as_json(),
            "parts": [
                {
                    "name": name,
                    "kind": service.kind,
                    "state": self._states.get(name, "running"),
                    "address": service.address,
                    "pid": None,
                    "log": str(next(iter(self.stack.log_files(name)[-1:]), "")),
                    "urls": {"database": description.database_url}
                    if service.kind == "postgres"
                    else {},
                    "secrets": {},
                }
                for name, service in description.services.items()
            ],
        }

    async def act(self, part: str, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Start, stop, kill, pause, resume or restart a service; look at all of them."""
        del arguments
        control = self.stack.control
        if verb == LOOK:
            return dict(await control.look())
        if verb == PROCESSES:
            return list(await control.processes(part))
        if verb != STATES:
            await control.act(part, verb)
        states = await control.states()
        self._states = {name: str(state) for name, state in states.items()}
        return self._states

    async def mend(self) -> Sequence[str]:
        """Put right what a user left broken; says what that was."""
        found = await self.stack.control.mend()
        self._states = {}
        return found


@asynccontextmanager
async def hold_stack(opening: AbstractAsyncContextManager[Stack]) -> AsyncIterator[HeldStack]:
    """Open a stack for a host."""
    async with opening as stack:
        yield HeldStack(stack)
