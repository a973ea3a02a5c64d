"""What a driver lets its users do, by name: the same here and across a host's socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import trio

from harness_core.bridge import Loop, at_home
from harness_core.errors import BadInput, HarnessError
from harness_core.services import Place
from harness_core.stack._part import VERBS, Part, State

__all__ = ["Control", "PartsControl"]

#: One look at one service: a paused one accepts and never answers.
_LOOK_S = 2.0


class Control(Protocol):
    """Takes services away and gives them back; may be awaited in any loop."""

    async def act(self, service: str, verb: str) -> None:
        """``start``, ``stop``, ``kill``, ``pause``, ``resume`` or ``restart`` a service."""

    async def look(self) -> Mapping[str, str]:
        """One look at every service: empty where it serves, else what is seen instead."""

    async def states(self) -> Mapping[str, State]:
        """What is known of every service without asking it."""

    async def processes(self, service: str) -> Sequence[str]:
        """The command lines of a service's processes now."""

    async def mend(self) -> Sequence[str]:
        """Bring back whatever does not run; says what that was."""


class PartsControl:
    """Control of parts in this process.

    Args:
        parts: by name, in the order in which they can be brought back.
        loop: the loop they live on.
        say: told what is found.

    Attributes:
        loop: the loop they live on.
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        *,
        loop: Loop,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.loop = loop
        self._parts = parts
        self._say = say

    @at_home
    async def act(self, service: str, verb: str) -> None:
        """Do something to a service.

        A start that is cut off leaves it down; the rest takes no time and is always done whole.

        Raises:
            BadInput: no such service, or no such verb.
            HarnessError: it cannot be done.
        """
        part = self._part(service)
        if verb not in VERBS:
            known = ", ".join(sorted(VERBS))
            raise BadInput("stack", key="verb", found=verb, expected=f"one of {known}")
        steps = {"restart": ("stop", "start")}.get(verb, (verb,))
        for step in steps:
            await trio.lowlevel.checkpoint_if_cancelled()
            with trio.CancelScope(shield=step != "start"):
                await getattr(part, step)()

    def _part(self, service: str) -> Part:
        part = self._parts.get(service)
        if part is None:
            known = ", ".join(self._parts)
            raise BadInput("stack", key="service", found=service, expected=f"one of {known}")
        return part

    @at_home
    async def processes(self, service: str) -> Sequence[str]:
        """The command lines of a service's processes now."""
        return await self._part(service).processes()

    @at_home
    async def look(self) -> Mapping[str, str]:
        """Look at every service, side by side."""
        seen: dict[str, str] = {}

        async def one(part: Part) -> None:
            seen[part.name] = f"no answer within {_LOOK_S:g} s"
            with trio.move_on_after(_LOOK_S):
                await part.refresh()
                death = part.death()
                seen[part.name] = death.observed if death else await part.look()

        async with trio.open_nursery() as nursery:
            for part in self._parts.values():
                nursery.start_soon(one, part)
        return {name: seen[name] for name in self._parts}

    def places(self) -> Mapping[str, Place]:
        """Where every service runs."""
        return {name: part.place for name, part in self._parts.items()}

    def known_states(self) -> Mapping[str, State]:
        """Whether every service runs, as of the last look."""
        return {name: part.state for name, part in self._parts.items()}

    @at_home
    async def states(self) -> Mapping[str, State]:
        """What is known of every service."""
        for part in self._parts.values():
            await part.refresh()
        return self.known_states()

    @at_home
    async def mend(self) -> Sequence[str]:
        """Resume what is paused, start what is down, restart what runs and does not serve."""
        found: list[str] = []
        for name, part in self._parts.items():
            await part.refresh()
            death, state = part.death(), part.state
            if state in {State.RUNNING, State.COMPLETED}:
                continue
            found.append(death.observed if death else f"{name} was {state}")
            if state is State.PAUSED:
                await part.resume()
            else:
                await self._start(part)
        return found

    async def _start(self, part: Part) -> None:
        try:
            await part.start()
        except HarnessError as error:
            raise HarnessError(
                f"bring {part.name} back",
                observed=error.observed,
                next_step="The stack is not what it was: run again",
                tail=error.tail,
                log=error.log,
            ) from error
