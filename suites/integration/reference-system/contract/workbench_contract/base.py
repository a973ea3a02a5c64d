"""How all models of the contract are alike: unknown fields are an error on both sides."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A message of the contract; nothing undeclared passes in either direction."""

    model_config = ConfigDict(extra="forbid")
