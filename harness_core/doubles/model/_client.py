"""The control API from the harness's side, typed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import msgspec
import trio

from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput, Unavailable
from harness_core.doubles.http import HttpClient, Unanswered
from harness_core.doubles.model._faults import Fault
from harness_core.doubles.model._ledger import LedgerEntry, Totals
from harness_core.doubles.turns import Rehearsal

#: The control API answers from memory; a gateway that does not within this is gone.
_TIMEOUT_S: Final = 10.0


class GatewayClient:
    """Steers and reads one gateway; every method may be awaited in any event loop.

    Args:
        url: the gateway's base URL.
        token: its control token.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._http = HttpClient(
            self.url,
            name="the model gateway",
            headers={"authorization": f"Bearer {token}"},
            seconds=_TIMEOUT_S,
        )

    async def set_scope(self, test: str) -> None:
        """Book the calls that arrive from now on on the test with this id; on none when empty."""
        await self._ask("POST", "scope", json={"test": test})

    async def ledger(self, *, since: int = 0) -> tuple[LedgerEntry, ...]:
        """Entries after a sequence number, in order of arrival."""
        entries = await self._ask("GET", "ledger", params={"since": str(since)})
        return msgspec.convert(entries, tuple[LedgerEntry, ...])

    async def mark(self) -> int:
        """Sequence number of the last call so far, for a later :meth:`ledger` ``since`` it."""
        return int(await self._ask("GET", "mark"))

    async def totals(self) -> Totals:
        """Everything added up, and how the budget stands."""
        return msgspec.convert(await self._ask("GET", "totals"), Totals)

    async def rehearse(self, *rehearsals: Rehearsal) -> None:
        """Say what the model does for some messages, from now on; the latest counts.

        Raises:
            BadInput: a gateway in another mode than ``rehearsed``.
        """
        rows = [each.to_json() for each in rehearsals]
        await self._ask("POST", "rehearsals", json=rows)

    async def forget_rehearsals(self) -> None:
        """Forget all that was rehearsed; nothing happens in another mode."""
        await self._ask("DELETE", "rehearsals")

    async def unmatched(self) -> tuple[str, ...]:
        """Calls that the cassette of mode ``replay`` did not hold, and what each asked."""
        return tuple(await self._ask("GET", "unmatched"))

    async def add_fault(self, fault: Fault) -> int:
        """Plant trouble for the next calls that match it; returns its number."""
        return int(await self._ask("POST", "faults", json=msgspec.to_builtins(fault)))

    async def waiting_faults(self) -> tuple[str, ...]:
        """Every fault that is not spent, in words."""
        planted = await self._ask("GET", "faults")
        return tuple(f"{each['does']}, {each['left']} left" for each in planted if each["left"])

    async def withdraw_fault(self, number: int) -> bool:
        """Forget one fault, spent or not; whether calls of it were left."""
        return bool(await self._ask("DELETE", "faults", params={"number": str(number)}))

    @asynccontextmanager
    async def fault(self, fault: Fault) -> AsyncIterator[int]:
        """Trouble for the calls during the block that match it; afterwards this one is gone."""
        number = await self.add_fault(fault)
        try:
            yield number
        finally:
            await self._end_fault(number)

    @anywhere
    async def _end_fault(self, number: int) -> None:
        with trio.CancelScope(shield=True):
            await self.withdraw_fault(number)

    async def fault_met(self, number: int) -> int:
        """How many calls have met a fault that was not withdrawn yet.

        A call that hangs or is held has met its fault when it arrives: a session is then in the
        middle of its work, whatever the product records of it.
        """
        planted = await self._ask("GET", "faults")
        return sum(int(each["met"]) for each in planted if each["number"] == number)

    async def clear(self) -> None:
        """Forget faults and the scope; the ledger and what was rehearsed stay."""
        await self._ask("POST", "clear")

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        action = f"ask the model gateway for {path}"
        try:
            response = await self._http.request(method, f"/_gateway/{path}", **options)
        except Unanswered as error:
            raise Unavailable(
                action,
                observed=f"{error.how} at {self.url}",
                next_step="See its log among the evidence of the run",
            ) from error
        try:
            body = json.loads(response.body)
        except ValueError:
            body = {"error": response.text[:400]}
        if response.status == HTTPStatus.BAD_REQUEST and "where" in body:
            raise BadInput(body.pop("where"), **{k: v for k, v in body.items() if k != "error"})
        if response.refused:
            raise Unavailable(action, observed=f"{response.status}: {body.get('error')}")
        return body
