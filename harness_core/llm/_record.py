"""Mode ``record``: calls go to a provider as in ``live``, and what it answered is kept.

Kept are whole messages and refusals of the request itself (400, 413, 422). What the provider could
not do at that moment (429, 5xx), what it refuses to anybody without a key, and answers that broke
off are passed on and not kept. Questions asked in this run replace what was recorded for them
before; others stay.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.evidence import Redactor
from harness_core.llm._backend import Answer, Backend, Call, Relay, Trouble
from harness_core.llm._cassette import CassetteAnswer, read_volatile, write_recorded
from harness_core.llm._message import Message, StreamReader, message_from_body
from harness_core.llm._normal import Asked, Normaliser
from harness_core.llm._reply import Reply

__all__ = ["RecordBackend"]

#: Statuses that say something about the request, and will again.
_LASTING: Final = frozenset({400, 413, 422})

_OK: Final = 200


class RecordBackend:
    """Passes calls on and keeps the answers.

    Args:
        upstream: whom to ask.
        cassette: the directory to write to; made when it is not there.
        redactor: knows the secrets of the run, none of which is written.
    """

    name = "record"

    def __init__(self, upstream: Backend, *, cassette: Path, redactor: Redactor) -> None:
        self._upstream = upstream
        self.charges = upstream.charges
        self._cassette = cassette
        self._normaliser = Normaliser(redactor=redactor, volatile=read_volatile(cassette))
        self._answers: dict[str, list[CassetteAnswer]] = {}

    async def answer(self, call: Call) -> Answer:
        """Ask the upstream and keep what it says."""
        asked = self._normaliser.asked(
            {**call.request.body, "model": call.request.model}, now=call.now
        )
        answer = await self._upstream.answer(call)
        if isinstance(answer, Reply | Trouble):
            return answer  # made here, not by a provider
        return _Tap(answer, keep=lambda kept: self._keep(asked, kept))

    def _keep(self, asked: Asked, answer: CassetteAnswer) -> None:
        if answer.message is not None:
            message = answer.message
            content = [
                {key: value for key, value in part.items() if (key, kind) != ("id", "tool_use")}
                for part in message.content
                for kind in [part.get("type")]
            ]
            answer = CassetteAnswer(
                message=Message(
                    content=tuple(asked.named(content)),
                    stop_reason=message.stop_reason,
                    stop_sequence=message.stop_sequence,
                    usage=message.usage,
                )
            )
        else:
            answer = CassetteAnswer(status=answer.status, error=asked.named(answer.error))
        answers = self._answers.setdefault(asked.key, [])
        answers.append(answer)
        write_recorded(self._cassette, asked.request, tuple(answers))


class _Tap:
    """An answer that is passed on and read on the way."""

    def __init__(self, relay: Relay, *, keep: Any) -> None:
        self._relay = relay
        self._keep = keep

    @property
    def status(self) -> int:
        return self._relay.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._relay.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        streaming = self.headers.get("content-type", "").startswith("text/event-stream")
        reader, whole = StreamReader(), bytearray()
        async for chunk in self._relay.chunks():
            if streaming:
                # Kept before its last bytes go out: who has the answer may rely on the cassette.
                before = reader.message
                reader.feed(chunk)
                if reader.message is not None and before is None:
                    self._keep(CassetteAnswer(message=reader.message))
            else:
                whole += chunk
            yield chunk
        if not streaming:
            self._keep_whole(bytes(whole))

    def _keep_whole(self, content: bytes) -> None:
        try:
            body = json.loads(content)
        except ValueError:
            return
        if not isinstance(body, dict):
            return
        if self.status == _OK and (message := message_from_body(body)) is not None:
            self._keep(CassetteAnswer(message=message))
        elif self.status in _LASTING:
            error = body.get("error")
            text = error.get("message") if isinstance(error, dict) else None
            self._keep(CassetteAnswer(status=self.status, error=str(text or "refused")))

    async def aclose(self) -> None:
        await self._relay.aclose()
