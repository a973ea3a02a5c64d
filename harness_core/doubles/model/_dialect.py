"""The wire formats of the gateway: how a request is read and an answer written.

Everything between is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.doubles.model._embeddings import (
    EmbeddingReader,
    embedding_parts,
    parse_embeddings,
)
from harness_core.doubles.model._openai import chat_parts, openai_error, parse_chat
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply
from harness_core.doubles.model._request import MessagesRequest, parse_request
from harness_core.doubles.model._responses import Conversations
from harness_core.doubles.model._responses_wire import (
    ResponseReader,
    response_ids,
    response_parts,
)
from harness_core.doubles.model._stream import AnswerReader, message_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format.

    Attributes:
        kind: what the ledger calls a call in this format.
        parse: reads a request; raises ``Refusal`` 400 with the field named.
        parts: an answer to a request, with an id: the events of a stream, or one JSON text.
        error: the body of a refusal.
        reader: reads a provider's answer in this format while it passes.
        ids: of an answer of ours and its blocks, where later requests may name them.
        keep: remembers an answered request by the ids of its answer.
    """

    kind: str
    parse: Callable[[Mapping[str, Any]], MessagesRequest]
    parts: Callable[[Reply, MessagesRequest, str], list[bytes]]
    error: Callable[[Refusal], dict[str, Any]]
    reader: Callable[..., AnswerReader] = AnswerReader
    ids: Callable[[Reply, str], Sequence[str]] = lambda reply, message_id: ()  # noqa: ARG005 - none
    keep: Callable[[MessagesRequest, Reply, Sequence[str]], None] | None = None


#: The Anthropic Messages API.
MESSAGES: Final = Dialect(
    kind="messages", parse=parse_request, parts=message_parts, error=Refusal.body
)

#: OpenAI's ``/v1/chat/completions``, with function tools.
CHAT: Final = Dialect(
    kind="chat_completions", parse=parse_chat, parts=chat_parts, error=openai_error
)

#: OpenAI's ``/v1/embeddings``.
EMBEDDINGS: Final = Dialect(
    kind="embeddings",
    parse=parse_embeddings,
    parts=embedding_parts,
    error=openai_error,
    reader=EmbeddingReader,
)


def responses() -> Dialect:
    """OpenAI's ``/v1/responses``, with function tools and conversations of its own."""
    conversations = Conversations()
    return Dialect(
        kind="responses",
        parse=conversations.parse,
        parts=response_parts,
        error=openai_error,
        reader=ResponseReader,
        ids=response_ids,
        keep=conversations.keep,
    )
