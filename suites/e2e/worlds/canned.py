"""Messages whose way is plain, each with a token by which its traces are known."""

from __future__ import annotations

import dataclasses
from typing import Final

from harness_core.assertions import new_token
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem

__all__ = ["TOOL_OF", "Message", "to_general", "to_health", "to_relationship", "to_two"]

#: Texts that only a model call with the tools of this butler contains.
TOOL_OF: Final = {
    "general": "entity_create",
    "health": "symptom_log",
    "relationship": "reminder_create",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message and the row it leaves when it is carried out.

    Attributes:
        text: what is sent.
        token: the word in it that only this message has.
        butlers: those it is for.
    """

    text: str
    token: str
    butlers: tuple[str, ...]

    async def left_its_row(self, ecosystem: Ecosystem, butler: str) -> bool:
        """Whether the work of one butler was done: its row is there."""
        table, column = _ROWS[butler]
        rows = await ecosystem[butler].database.rows(
            f"SELECT 1 FROM {table} WHERE {column} LIKE %s",
            (f"%{self.token}%",),
        )
        return bool(rows)

    async def expect_row(self, ecosystem: Ecosystem, butler: str) -> None:
        """The row of one butler is there."""
        table, column = _ROWS[butler]
        await ecosystem[butler].database.expect_row(table, where={column: Contains(self.token)})


#: Where each butler's part of these messages ends up.
_ROWS: Final = {
    "general": ("entities", "name"),
    "health": ("symptoms", "notes"),
    "relationship": ("reminders", "message"),
}


def to_health() -> Message:
    """For health alone."""
    token = new_token()
    return Message(
        text=f"I have a headache, severity 6 ({token})", token=token, butlers=("health",)
    )


def to_relationship() -> Message:
    """For relationship alone."""
    token = new_token()
    text = f"Remind me to call Bob about {token}"
    return Message(text=text, token=token, butlers=("relationship",))


def to_general() -> Message:
    """For general alone."""
    token = new_token()
    text = f'Put "oat milk {token}" on the shopping list'
    return Message(text=text, token=token, butlers=("general",))


def to_two() -> Message:
    """For health and relationship."""
    token = new_token()
    text = f"I have a headache, severity 4 ({token}). Also remind me to call Bob about {token}"
    return Message(text=text, token=token, butlers=("health", "relationship"))
