"""A model gateway as a test sees it: what it is rehearsed to do, what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, overload

from harness_core.base.bridge import Loop, View, in_sync
from harness_core.base.errors import BadInput
from harness_core.base.reading import Misfit
from harness_core.doubles.model import Fault, Gateway, LedgerEntry, Totals
from harness_core.doubles.turns import Rehearsal, Turn, read_rehearsals


class ModelGateway:
    """A server that answers as a model's provider does; given by the fixture ``model_gateway``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code.

    Attributes:
        url: base URL, for clients of the Messages API.
        api_key: the key it takes; worth nothing elsewhere.
        mode: ``rehearsed``, ``live``, ``record`` or ``replay``, as ``--llm`` says.
    """

    def __init__(self, gateway: Gateway, *, since: int, loop: Loop) -> None:
        self.url = gateway.url
        self.api_key = gateway.api_key
        self.mode = gateway.mode
        self._client = gateway.client
        self._since = since
        self._loop = loop

    @property
    def sync(self) -> SyncModelGateway:
        """The same methods, which wait for their answer."""
        return SyncModelGateway(self, self._loop)

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: what Anthropic's and OpenAI's own clients read."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.api_key,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": self.api_key,
        }

    @overload
    async def rehearse(self, message: str, *turns: Turn | tuple[Turn, ...]) -> None: ...
    @overload
    async def rehearse(self, message: Rehearsal, *turns: Rehearsal) -> None: ...
    async def rehearse(self, message: str | Rehearsal, *turns: Any) -> None:
        """Say what the model does when it is asked about a message; the latest counts.

            await model_gateway.rehearse("Who are you?", say("A model."))

        Args:
            message: what the prompt must hold; may have placeholders. Or whole rehearsals.
            turns: what the model does, in order: ``say``, ``use``, ``route`` and the others of
                ``harness_core.doubles.turns``.

        Raises:
            BadInput: no turn, or one that is none; or a gateway in another mode than ``rehearsed``.
        """
        if isinstance(message, Rehearsal):
            await self._client.rehearse(message, *turns)
            return
        if not turns:
            expected = "at least one turn: say(…), use(…), route(…)"
            raise BadInput("rehearse", key="turns", found=None, expected=expected)
        try:
            rehearsal = Rehearsal(message=message, turns=tuple(turns))
        except Misfit as misfit:
            raise misfit.bad_input("rehearse") from None
        await self._client.rehearse(rehearsal)

    async def rehearse_file(self, path: Path) -> None:
        """The rehearsals of a TOML file (docs/how-to/gateway.md)."""
        await self._client.rehearse(*read_rehearsals(path))

    async def calls(self) -> tuple[LedgerEntry, ...]:
        """Every call since the test began, in order of arrival: prompt, answer, tokens, cost, refusal."""
        return await self._client.ledger(since=self._since)

    async def totals(self) -> Totals:
        """All of this process of the run added up, and how its budget stands."""
        return await self._client.totals()

    def fault(self, fault: Fault) -> AbstractAsyncContextManager[int]:
        """Trouble for the calls of an ``async with`` block that match it; gives its number."""
        return self._client.fault(fault)

    async def add_fault(self, fault: Fault) -> int:
        """Trouble for the next calls that match it, until the end of the test; returns its number."""
        return await self._client.add_fault(fault)

    async def fault_met(self, number: int) -> int:
        """How many calls have met a fault."""
        return await self._client.fault_met(number)


class SyncModelGateway(View[ModelGateway]):
    """The methods of :class:`ModelGateway` for code without a loop."""

    rehearse_file = in_sync(ModelGateway.rehearse_file)
    calls = in_sync(ModelGateway.calls)
    totals = in_sync(ModelGateway.totals)
    add_fault = in_sync(ModelGateway.add_fault)
    fault_met = in_sync(ModelGateway.fault_met)

    @overload
    def rehearse(self, message: str, *turns: Turn | tuple[Turn, ...]) -> None: ...
    @overload
    def rehearse(self, message: Rehearsal, *turns: Rehearsal) -> None: ...
    def rehearse(self, message: str | Rehearsal, *turns: Any) -> None:
        """See :meth:`ModelGateway.rehearse`."""
        handle: Any = self._handle
        self._loop.run(lambda: handle.rehearse(message, *turns))

    def fault(self, fault: Fault) -> AbstractContextManager[int]:
        """Trouble for the calls of a ``with`` block that match it; gives its number."""
        return self._loop.hold(self._handle.fault(fault))
