"""How all models of the contract are alike: unknown fields are an error on both sides."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("cannot use this text: it holds U+0000. Leave it out")
    return text


#: Text that can be stored: PostgreSQL and paths have no U+0000.
Text = Annotated[str, AfterValidator(_without_nul)]


class Model(BaseModel):
    """A message of the contract; nothing undeclared passes in either direction."""

    model_config = ConfigDict(extra="forbid")
