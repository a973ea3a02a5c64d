"""What a mode of the gateway is: one method that answers a call."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from harness_core.doubles.model._reply import Reply
from harness_core.doubles.model._request import MessagesRequest
from harness_core.doubles.model._stream import AnswerReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request on its way to a backend.

    Attributes:
        request: the parsed request.
        raw: its body as received.
        path: path and query as received, e.g. ``/v1/messages?beta=true``.
        headers: request headers, names in lower case, the caller's key removed.
        now: time of arrival, with a zone.
    """

    request: MessagesRequest
    raw: bytes
    path: str
    now: dt.datetime
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """An answer that arrives from a provider while it is passed on.

    Attributes:
        response: the answer, of which the body was not read yet.
        seen: called once, with the whole answer, before its last bytes are passed on.
    """

    response: httpx.Response
    seen: Callable[[AnswerReader], None] = lambda reader: None  # noqa: ARG005 - nothing is kept


Answer = Reply | Relay


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
