"""Mode ``record``: calls go to a provider as in ``live``, and what it answered is kept.

Kept are whole messages and refusals of the request itself (400, 413, 422). What the provider could
not do at that moment (429, 5xx), what it refuses to anybody without a key, and answers that broke
off are passed on and not kept. Questions asked in this run replace what was recorded for them
before; others stay.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Answer, Backend, Call, Relay
from harness_core.doubles.model._cassette import CassetteAnswer, read_volatile, write_recorded
from harness_core.doubles.model._normal import Normaliser
from harness_core.doubles.model._stream import AnswerReader

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
        asked = self._normaliser.asked(call.request.body, now=call.now)
        answer = await self._upstream.answer(call)
        if not isinstance(answer, Relay):
            return answer  # made here, not by a provider
        status = answer.status

        def keep(reader: AnswerReader) -> None:
            kept = _kept(status, reader)
            if kept is None:
                return
            answers = self._answers.setdefault(asked.key, [])
            answers.append(asked.named(kept))
            write_recorded(self._cassette, asked.request, answers)

        return replace(answer, seen=keep)


def _kept(status: int, reader: AnswerReader) -> CassetteAnswer | None:
    if status == _OK and (reply := reader.reply) is not None:
        # The ids of tool calls are made up when they are replayed.
        content = [
            {
                key: value
                for key, value in block.items()
                if (key, block.get("type")) != ("id", "tool_use")
            }
            for block in reply.content
        ]
        return CassetteAnswer(
            content=content,
            stop_reason=reply.stop_reason,
            stop_sequence=reply.stop_sequence,
            usage=reply.usage,
        )
    return CassetteAnswer(status=status, error=reader.problem) if status in _LASTING else None
