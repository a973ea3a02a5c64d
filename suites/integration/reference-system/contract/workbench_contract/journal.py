"""What an agent writes into its journal, and which observations it rests on."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from workbench_contract.base import Model, Text
from workbench_contract.events import EventSource

#: The longest text of one part of an entry.
PART_CHARS = 4_000


def _told(text: str) -> str:
    if not text.strip():
        raise ValueError("cannot use this text: it says nothing. Write a sentence")
    return text


_Part = Annotated[Text, AfterValidator(_told), Field(min_length=1, max_length=PART_CHARS)]


class Observation(Model):
    """An event of the episode, by who numbered it and its number."""

    source: EventSource
    seq: int = Field(ge=1, lt=2**63)


def _each_once(observations: list[Observation]) -> list[Observation]:
    named = [(one.source, one.seq) for one in observations]
    if len(set(named)) < len(named):
        raise ValueError("cannot use these observations: one is named twice. Name each once")
    return observations


class JournalEntry(Model):
    """One entry: what was meant to be done, what came of it, what that says, and what is next.

    Attributes:
        observations: the events that it rests on.
    """

    intent: _Part
    result: _Part
    reflection: _Part
    next_step: _Part
    observations: Annotated[
        list[Observation], AfterValidator(_each_once), Field(min_length=1, max_length=50)
    ]
