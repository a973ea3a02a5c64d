"""``todo.md``: the entries that the controller issues, and keeps."""

from __future__ import annotations

from pydantic import Field

from workbench_contract.base import Model, Text


class IssuedEntry(Model):
    """A mandatory entry.

    Attributes:
        id: in the comment at the end of its line.
        text: on one line.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    text: Text = Field(min_length=1, max_length=1_000)
