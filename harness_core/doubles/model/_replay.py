"""Mode ``replay``: answers come from a cassette; no key, no network, no cost, and no guessing.

The same question asked again gets the answers in the order in which they were recorded. A question
that was not recorded, or not so often, is refused and remembered; the refusal names the recorded
request that is closest and what differs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Final

from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Call
from harness_core.doubles.model._cassette import CassetteAnswer, asker, read_cassette
from harness_core.doubles.model._nearest import nearest
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply, Usage, new_id

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
        self._asked = asker(cassette, redactor)
        self._used: Counter[str] = Counter()

    async def answer(self, call: Call) -> Reply:
        """Answer as recorded.

        Raises:
            Refusal: 500 for a question that was not recorded; or the refusal that was recorded.
        """
        asked = self._asked(call)
        number = self._used[asked.key]
        name, recorded = self._recorded.get(asked.key, ("", None))
        if recorded is None:
            known = {name: question.request for name, question in self._recorded.values()}
            raise self._miss(nearest(asked.request, known))
        if number >= len(recorded.answers):
            raise self._miss(
                f"{name} holds {number} answer(s) to this request, and it was asked once more"
            )
        self._used[asked.key] += 1
        answer: CassetteAnswer = asked.filled(recorded.answers[number])
        if answer.status is not None:
            raise Refusal(answer.status, answer.error or "")
        ids = (new_id("toolu", call.raw, call.now, number, at) for at in itertools.count())
        return Reply(
            content=tuple(
                {**block, "id": next(ids)} if block["type"] == "tool_use" else block
                for block in answer.content or ()
            ),
            stop_reason=answer.stop_reason or "end_turn",
            stop_sequence=answer.stop_sequence,
            usage=answer.usage or Usage(),
        )

    def _miss(self, problem: str) -> Refusal:
        message = f"cannot replay this call: {problem}. Record the cassette again: --llm record."
        self.misses.append(problem)
        # Without the header, clients would ask again and again for minutes.
        return Refusal(500, message, headers={"x-should-retry": "false"}, reason=_MISS)
