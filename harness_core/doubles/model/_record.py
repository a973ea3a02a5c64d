"""Mode ``record``: calls go to a provider as in ``live``, and what it answered is kept.

Kept are whole messages and refusals of the request itself (400, 413, 422). What the provider could
not do at that moment (429, 5xx), what it refuses for its key, and answers that broke
off are passed on and not kept. Questions asked in this run replace what was recorded for them
before; others stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Call, Relay
from harness_core.doubles.model._cassette import CassetteAnswer, asker, write_recorded
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.model._stream import AnswerReader

#: Statuses that say something about the request, and will again.
_LASTING: Final = frozenset({400, 413, 422})

_OK: Final = 200


class RecordBackend:
    """Passes calls on and keeps the answers.

    Args:
        live: asks the provider.
        cassette: the directory to write to; made when it is not there.
        redactor: knows the secrets of the run, none of which is written.
    """

    name = "record"
    charges = True

    def __init__(self, live: LiveBackend, *, cassette: Path, redactor: Redactor) -> None:
        self._live = live
        self._cassette = cassette
        self._asked = asker(cassette, redactor)
        self._answers: dict[str, list[CassetteAnswer]] = {}

    async def answer(self, call: Call) -> Relay:
        """Ask the provider and keep what it answers."""
        asked = self._asked(call)
        response = (await self._live.answer(call)).response

        def keep(reader: AnswerReader) -> None:
            if (kept := _kept(response.status_code, reader)) is not None:
                answers = self._answers.setdefault(asked.key, [])
                answers.append(asked.named(kept))
                write_recorded(self._cassette, asked.request, answers)

        return Relay(response=response, seen=keep)


def _kept(status: int, reader: AnswerReader) -> CassetteAnswer | None:
    if status == _OK and (reply := reader.reply) is not None:
        # The ids of tool calls are made up when they are replayed.
        content = [
            {key: block[key] for key in block if key != "id" or block["type"] != "tool_use"}
            for block in reply.content
        ]
        return CassetteAnswer(
            content=content,
            stop_reason=reply.stop_reason,
            stop_sequence=reply.stop_sequence,
            usage=reply.usage,
        )
    return CassetteAnswer(status=status, error=reader.problem) if status in _LASTING else None
