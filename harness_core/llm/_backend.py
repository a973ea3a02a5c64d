"""What a mode of the gateway is: one method that answers a call.

Each mode implements :class:`Backend`; a further one is one more class and one more line in
``_cli.py``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness_core.llm._faults import Fault
from harness_core.llm._reply import Reply
from harness_core.llm._request import MessagesRequest

__all__ = ["Answer", "Backend", "Call", "Relay", "Trouble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request on its way to a backend.

    Attributes:
        request: the parsed request.
        raw: its body as received.
        path: path and query as received, e.g. ``/v1/messages?beta=true``.
        headers: request headers, names in lower case, the caller's key removed.
        test: scope at arrival.
        now: time of arrival, with a zone.
    """

    request: MessagesRequest
    raw: bytes
    path: str
    now: dt.datetime
    headers: Mapping[str, str] = field(default_factory=dict)
    test: str = ""


class Relay(Protocol):
    """An answer that arrives from elsewhere while it is passed on."""

    @property
    def status(self) -> int:
        """HTTP status of the upstream."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers to pass on."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""

    async def aclose(self) -> None:
        """Give the connection back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An answer that is a fault (a transcript may hold one)."""

    fault: Fault


Answer = Reply | Relay | Trouble


class Backend(Protocol):
    """A mode.

    Attributes:
        name: what the ledger calls it.
        charges: its calls cost real money and count against the budget.
    """

    name: str
    charges: bool

    async def answer(self, call: Call) -> Answer:
        """Answer one call.

        Raises:
            Refusal: the answer is an error of the protocol.
        """
