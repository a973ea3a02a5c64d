"""Mode ``replay``: answers come from a cassette; no key, no network, no cost, and no guessing.

The same question asked again gets the answers in the order in which they were recorded. A question
that was not recorded, or not so often, is refused and remembered; the refusal names the recorded
request that is closest and what differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness_core.evidence import Redactor
from harness_core.llm._backend import Answer, Call
from harness_core.llm._cassette import CassetteAnswer, Recorded, read_cassette, read_volatile
from harness_core.llm._message import Message
from harness_core.llm._nearest import SHOWN, nearest
from harness_core.llm._normal import Asked, Normaliser
from harness_core.llm._refusal import Refusal
from harness_core.llm._reply import new_id

__all__ = ["MISS", "ReplayBackend"]

#: What the ledger calls a call that was not recorded.
MISS: Final = "cassette_miss"


class ReplayBackend:
    """Answers out of a cassette.

    Args:
        cassette: its directory.
        redactor: knows the secrets of the run; they are no part of a question.

    Raises:
        BadInput: the cassette is missing, empty or malformed.
    """

    name = "replay"
    charges = False

    def __init__(self, cassette: Path, *, redactor: Redactor) -> None:
        self._directory = cassette
        self._recorded = read_cassette(cassette)
        self._normaliser = Normaliser(redactor=redactor, volatile=read_volatile(cassette))
        self._used: dict[str, int] = {}
        self._misses: list[str] = []

    def unmatched(self) -> tuple[str, ...]:
        """Calls that were not recorded."""
        return tuple(self._misses)

    async def answer(self, call: Call) -> Answer:
        """Answer as recorded.

        Raises:
            Refusal: 500 for a question that was not recorded; or the refusal that was recorded.
        """
        body = {**call.request.body, "model": call.request.model}
        asked = self._normaliser.asked(body, now=call.now)
        number = self._used.get(asked.key, 0)
        recorded = self._recorded.get(asked.key)
        if recorded is None or number >= len(recorded.answers):
            raise self._miss(asked, recorded)
        self._used[asked.key] = number + 1
        return _replayed(recorded.answers[number], asked, call, number)

    def _miss(self, asked: Asked, recorded: Recorded | None) -> Refusal:
        if recorded is not None:
            problem = (
                f"{recorded.name} holds {len(recorded.answers)} answer(s) to this request, and it"
                " was asked once more"
            )
        else:
            problem = self._closest(asked)
        message = f"cannot replay this call: {problem}. Record the cassette again: --llm record."
        self._misses.append(problem)
        # Without the header, clients would ask again and again for minutes.
        return Refusal(500, message, headers={"x-should-retry": "false"}, reason=MISS)

    def _closest(self, asked: Asked) -> str:
        found = nearest(asked.request, ((r.name, r.request) for r in self._recorded.values()))
        if found is None:  # a cassette is never empty
            return f"{self._directory} holds no request"
        name, apart = found
        told = "; ".join(str(difference) for difference in apart[:SHOWN])
        more = f"; and {len(apart) - SHOWN} more" if len(apart) > SHOWN else ""
        return f"the nearest recorded request is {name}, which differs in {told}{more}"


def _replayed(answer: CassetteAnswer, asked: Asked, call: Call, number: int) -> Answer:
    if answer.message is None:
        raise Refusal(answer.status, asked.filled(answer.error))
    told = answer.message
    message = Message(
        content=tuple(asked.filled(list(told.content))),
        stop_reason=told.stop_reason,
        stop_sequence=told.stop_sequence,
        usage=told.usage,
    )
    ids = (new_id("toolu", call.raw, call.now, number, at) for at in range(message.tool_calls))
    return message.as_reply(tool_ids=tuple(ids))
