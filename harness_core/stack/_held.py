"""A stack as a host holds it: described as data, acted on by name, put right after a crash."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from harness_core.stack._control import PartsControl
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

    def describe(self) -> Mapping[str, Any]:
        """Everything that another process needs to use it, and its services for people."""
        description, control = self.stack.description, self.stack.control
        assert isinstance(control, PartsControl), "a stack is held where its driver runs"
        states, places = control.known_states(), control.places()
        return {
            **description.as_json(),
            "parts": [
                {
                    "name": name,
                    "kind": service.kind,
                    "state": str(states[name]),
                    "address": service.address,
                    **dataclasses.asdict(places[name]),
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
        return {name: str(state) for name, state in (await control.states()).items()}

    async def mend(self) -> Sequence[str]:
        """Put right what a user left broken; says what that was."""
        return await self.stack.control.mend()


@asynccontextmanager
async def hold_stack(opening: AbstractAsyncContextManager[Stack]) -> AsyncIterator[HeldStack]:
    """Open a stack for a host."""
    async with opening as stack:
        yield HeldStack(stack)
