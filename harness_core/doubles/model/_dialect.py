"""The wire formats of the gateway: how a request is read and an answer written.

Everything between is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness_core.doubles.model._openai import chat_body, chat_chunks, chat_error, parse_chat
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply, message_body
from harness_core.doubles.model._request import MessagesRequest, parse_request
from harness_core.doubles.model._stream import message_events


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format.

    Attributes:
        kind: what the ledger calls a call in this format.
        parse: reads a request; raises ``Refusal`` 400 with the field named.
        whole: the body of an answer that is not streamed, for a model and with an id.
        events: the same answer as a stream, for a request and with an id.
        error: the body of a refusal.
    """

    kind: str
    parse: Callable[[Mapping[str, Any]], MessagesRequest]
    whole: Callable[[Reply, str, str], dict[str, Any]]
    events: Callable[[Reply, MessagesRequest, str], Iterator[bytes]]
    error: Callable[[Refusal], dict[str, Any]]


#: The Anthropic Messages API.
MESSAGES: Final = Dialect(
    kind="messages",
    parse=parse_request,
    whole=message_body,
    events=message_events,
    error=Refusal.body,
)

#: OpenAI's ``/v1/chat/completions``, with function tools.
CHAT: Final = Dialect(
    kind="chat_completions",
    parse=parse_chat,
    whole=chat_body,
    events=chat_chunks,
    error=chat_error,
)
