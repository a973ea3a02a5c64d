"""Mode ``replay``: answers come from a cassette; no key, no network, no cost, and no guessing.

The same question asked again gets the answers in the order in which they were recorded. A question
that was not recorded, or not so often, is refused and remembered; the refusal names the recorded
request that is closest and what differs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Answer, Call
from harness_core.doubles.model._cassette import (
    CassetteAnswer,
    Recorded,
    read_cassette,
    read_volatile,
)
from harness_core.doubles.model._nearest import nearest
from harness_core.doubles.model._normal import Asked, Normaliser
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import new_id

#: What the ledger calls a call that was not recorded.
_MISS: Final = "cassette_miss"


class ReplayBackend:
    """Answers out of a cassette.

    Args:
        cassette: its directory.
        redactor: knows the secrets of the run; they are no part of a question.

    Attributes:
        misses: calls that were not recorded, in words.

    Raises:
        BadInput: the cassette is missing, empty or malformed.
    """

    name = "replay"
    charges = False

    def __init__(self, cassette: Path, *, redactor: Redactor) -> None:
        self.misses: list[str] = []
        self._recorded = read_cassette(cassette)
        self._normaliser = Normaliser(redactor=redactor, volatile=read_volatile(cassette))
        self._used: Counter[str] = Counter()

    async def answer(self, call: Call) -> Answer:
        """Answer as recorded.

        Raises:
            Refusal: 500 for a question that was not recorded; or the refusal that was recorded.
        """
        asked = self._normaliser.asked(call.request.body, now=call.now)
        number = self._used[asked.key]
        recorded = self._recorded.get(asked.key)
        if recorded is None or number >= len(recorded.answers):
            raise self._miss(asked, recorded)
        self._used[asked.key] += 1
        answer: CassetteAnswer = asked.filled(recorded.answers[number])
        if answer.status is not None:
            raise Refusal(answer.status, answer.error or "")
        return answer.reply(
            tuple(
                {**block, "id": new_id("toolu", call.raw, call.now, number, at)}
                if block["type"] == "tool_use"
                else block
                for at, block in enumerate(answer.content or ())
            )
        )

    def _miss(self, asked: Asked, recorded: Recorded | None) -> Refusal:
        if recorded is None:
            known = ((each.name, each.request) for each in self._recorded.values())
            problem = nearest(asked.request, known)
        else:
            problem = (
                f"{recorded.name} holds {len(recorded.answers)} answer(s) to this request, and it"
                " was asked once more"
            )
        message = f"cannot replay this call: {problem}. Record the cassette again: --llm record."
        self.misses.append(problem)
        # Without the header, clients would ask again and again for minutes.
        return Refusal(500, message, headers={"x-should-retry": "false"}, reason=_MISS)
