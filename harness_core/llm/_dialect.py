"""The wire formats of the gateway behind one protocol.

A format says how a request is read and an answer written; everything between is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from harness_core.llm._refusal import Refusal
from harness_core.llm._reply import Reply, message_body
from harness_core.llm._request import MessagesRequest, parse_request
from harness_core.llm._sse import message_events

__all__ = ["Dialect", "MessagesDialect"]


class Dialect(Protocol):
    """A wire format.

    Attributes:
        kind: what the ledger calls a call in this format.
    """

    kind: str

    def parse(self, raw: bytes, *, counting: bool = False) -> MessagesRequest:
        """Read a request; raises ``Refusal`` 400 with the field named."""

    def whole(self, reply: Reply, *, model: str, message_id: str) -> dict[str, Any]:
        """The body of an answer that is not streamed."""

    def events(self, reply: Reply, *, request: MessagesRequest, message_id: str) -> Iterator[bytes]:
        """The same answer as a stream."""

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of a refusal."""


class MessagesDialect:
    """The Anthropic Messages API."""

    kind = "messages"

    def parse(self, raw: bytes, *, counting: bool = False) -> MessagesRequest:
        """Read a request; raises ``Refusal`` 400 with the field named."""
        return parse_request(raw, counting=counting)

    def whole(self, reply: Reply, *, model: str, message_id: str) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        return message_body(reply, model=model, message_id=message_id)

    def events(self, reply: Reply, *, request: MessagesRequest, message_id: str) -> Iterator[bytes]:
        """The same answer as a stream."""
        return message_events(reply, model=request.model, message_id=message_id)

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of a refusal."""
        return refusal.body()
