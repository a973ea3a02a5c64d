"""The wire formats of the gateway: how a request is read and an answer written.

Everything between is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness_core.doubles.model._openai import chat_parts, openai_error, parse_chat
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply
from harness_core.doubles.model._request import MessagesRequest, parse_request
from harness_core.doubles.model._stream import message_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format.

    Attributes:
        kind: what the ledger calls a call in this format.
        parse: reads a request; raises ``Refusal`` 400 with the field named.
        parts: an answer to a request, with an id: the events of a stream, or one JSON text.
        error: the body of a refusal.
    """

    kind: str
    parse: Callable[[Mapping[str, Any]], MessagesRequest]
    parts: Callable[[Reply, MessagesRequest, str], list[bytes]]
    error: Callable[[Refusal], dict[str, Any]]


#: The Anthropic Messages API.
MESSAGES: Final = Dialect(
    kind="messages", parse=parse_request, parts=message_parts, error=Refusal.body
)

#: OpenAI's ``/v1/chat/completions``, with function tools.
CHAT: Final = Dialect(
    kind="chat_completions", parse=parse_chat, parts=chat_parts, error=openai_error
)
