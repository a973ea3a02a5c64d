"""A message and the turns that a model takes for it; as a value, as JSON and as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from harness_core.base.reading import Table, convert, read_toml
from harness_core.doubles.turns._message import Message, fill_in
from harness_core.doubles.turns._turns import read_turns


class Rehearsal(Table, frozen=True):
    """A message and its turns.

    Attributes:
        message: what the prompt must hold; may have placeholders, ``{token}`` or ``{dose:number}``.
        turns: of type :data:`~harness_core.doubles.turns.Turn`, in order. Those after a
            :class:`~harness_core.doubles.turns.Route` are done by the session of its target, those before
            the first one by whichever session is given the message.
        name: what findings call it.
    """

    message: Annotated[str, Meta(description="what is said, as a text")]
    turns: tuple[Any, ...]
    name: str = ""

    def __post_init__(self) -> None:
        structs.force_setattr(self, "turns", read_turns(self.turns, "turns"))

    def filled(self, text: str) -> Rehearsal | None:
        """This rehearsal for one very text; ``None`` when the text is another message."""
        values = Message(text=self.message).match(text)
        return None if values is None else structs.replace(self.with_values(values), message=text)

    def with_values(self, values: Mapping[str, Any]) -> Rehearsal:
        """This rehearsal with its placeholders filled."""
        filled: Rehearsal = fill_in(self, values)
        return structs.replace(filled, name=self.name)

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire, and as TOML spells it."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        return body


class RehearsalsFile(Table, frozen=True):
    """A file of rehearsals, as it is written.

    Attributes:
        rehearsal: one message each, and the turns for it.
    """

    rehearsal: Annotated[
        list[Rehearsal], Meta(min_length=1, description="[[rehearsal]] tables, nothing else")
    ]


def read_rehearsals(path: Path) -> tuple[Rehearsal, ...]:
    """Read a file of rehearsals: ``[[rehearsal]]`` tables with ``message`` and ``turns``.

    Raises:
        BadInput: the file cannot be read, or a turn of it is wrong.
    """
    return tuple(read_toml(path, RehearsalsFile, expected="a TOML file of rehearsals").rehearsal)


def rehearsals_from_json(rows: object, *, where: str) -> tuple[Rehearsal, ...]:
    """Read a list of what :meth:`Rehearsal.to_json` has written.

    Raises:
        BadInput: names the turn and the key that is wrong.
    """
    return tuple(convert(rows, list[Rehearsal], where=where))
