"""What a person can send to a staged ecosystem: the scenarios, and any text where a model understands it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import structs

from harness_core.assertions import TOKEN_FIELD, E2EScenario, fill, new_token
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Link, Told
from harness_core.system.staging import Offer, Way
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.handle import REHEARSED, Ecosystem, Sent
from suites.e2e.observe.journey import FINAL_STATES, gather
from suites.e2e.scenarios import SCENARIOS

__all__ = ["Letters", "letters"]

#: Of an offer, on the page; a scenario may be of two pages.
_SHOWN_CHARS: Final = 200

#: Messages that can be looked after at a time.
_SENT: Final = 100


def letters(ecosystem: Ecosystem, subject: Subject) -> Letters:
    """``messages`` of the suite's ``suite.toml``."""
    del subject
    return Letters(ecosystem)


class Letters:
    """Messages to the switchboard.

    Args:
        ecosystem: where they are sent.
    """

    def __init__(self, ecosystem: Ecosystem) -> None:
        self._ecosystem = ecosystem
        self._rows = {row.id: row for row in SCENARIOS if row.input_prompt != TOKEN_FIELD}
        self._sent: dict[str, Sent] = {}
        self.free_text = ecosystem.gateway.mode != REHEARSED

    def offers(self) -> Sequence[Offer]:
        """The scenarios, by the butlers that they are for."""
        return [
            Offer(id=row.id, title=row.description, text=_shown(row), group=_group(row))
            for row in sorted(self._rows.values(), key=_group)
        ]

    async def send(self, offer: str, text: str) -> str:
        """Send a scenario, with a token of its own, or a text.

        Raises:
            AssertionError: the switchboard did not accept it.
        """
        if offer and offer not in self._rows:
            raise BadInput("send", key="offer", found=offer, expected="the id of a scenario")
        model = None
        if offer:
            row = self._rows[offer]
            text, model = fill((row.input_prompt, row.model), new_token())
        sent = await self._ecosystem.send(text, model)
        self._sent[sent.request_id] = sent
        for old in list(self._sent)[:-_SENT]:
            del self._sent[old]
        return sent.request_id

    async def way(self, message: str) -> Way:
        """What the message has left so far, in every database and at the model."""
        if message not in self._sent:
            raise BadInput("way", key="message", found=message, expected="one that was sent here")
        journey = await gather(self._ecosystem, self._sent[message])
        states = [str(row["lifecycle_state"]) for row in journey.inbox]
        ended = bool(states) and all(state in FINAL_STATES for state in states)
        return Way(story=tuple(_told(journey.chain().story(), ended=ended)), ended=ended)


def _told(story: Iterator[Told], *, ended: bool) -> Iterator[Told]:
    """A story of what may be under way still: then what has not come is no failure."""
    for row in story:
        if not isinstance(row, Link):
            yield row
            continue
        source = "you" if row.source == "test" else row.source
        state = row.state if ended or row.state == "held" else "missing"
        target = row.target if ended or row.label != "inbox" else "its end"
        yield structs.replace(row, source=source, target=target, state=state)


def _shown(row: E2EScenario) -> str:
    text = row.input_prompt.replace(f" ({TOKEN_FIELD})", "").replace(TOKEN_FIELD, "…")
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _group(row: E2EScenario) -> str:
    return " and ".join(row.expected_butlers) or "nobody"
