"""A stack that another process of this machine holds, or another thread of this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness_core.hosting import Line
from harness_core.stack._description import Description
from harness_core.stack._handle import Stack
from harness_core.stack._held import LOOK, PROCESSES, STATES
from harness_core.stack._part import State

if TYPE_CHECKING:
    from harness_core.evidence import Evidence

__all__ = ["attach_stack"]

#: Shorter passwords are words of the compose file, and words of its logs.
_REDACTABLE = 12


@asynccontextmanager
async def attach_stack(host: Path, *, evidence: Evidence) -> AsyncIterator[Stack]:
    """A handle on the stack behind a host's socket; the first to ask has it booted.

    Args:
        host: the socket.
        evidence: whose redactor learns the secrets of the stack.

    Raises:
        HarnessError: it could not be booted; every user is told the same.
    """
    description = Description.from_json(await _ask(host, "describe"))
    database = urlsplit(description.database_url).password or ""
    for secret in (description.gateway_key, description.gateway_token, database):
        if len(secret) >= _REDACTABLE:
            evidence.redactor.add(secret)
    stack = Stack(description, _RemoteControl(host))
    try:
        yield stack
    finally:
        await stack.close()


class _RemoteControl:
    """Control across a host's socket."""

    def __init__(self, host: Path) -> None:
        self._host = host

    async def act(self, service: str, verb: str) -> None:
        """Do something to a service."""
        await _ask(self._host, "act", part=service, verb=verb)

    async def look(self) -> Mapping[str, str]:
        """Look at every service."""
        found: Mapping[str, str] = await _ask(self._host, "act", part="", verb=LOOK)
        return found

    async def states(self) -> Mapping[str, State]:
        """What is known of every service."""
        told: Mapping[str, str] = await _ask(self._host, "act", part="", verb=STATES)
        return {name: State(state) for name, state in told.items()}

    async def processes(self, service: str) -> Sequence[str]:
        """The command lines of a service's processes now."""
        found: Sequence[str] = await _ask(self._host, "act", part=service, verb=PROCESSES)
        return found

    async def mend(self) -> Sequence[str]:
        """Bring back whatever does not run."""
        found: Sequence[str] = await _ask(self._host, "mend")
        return found


async def _ask(host: Path, word: str, **fields: Any) -> Any:
    """Ask on a connection of its own, so that several tasks may ask at once."""
    with Line(host) as line:
        return await line.ask_in_task(word, **fields)
