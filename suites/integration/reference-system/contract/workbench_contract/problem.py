"""A refusal: of what was asked, or of how it was asked."""

from __future__ import annotations

from workbench_contract.base import Model


class Problem(Model):
    """Why a request was not carried out; one sentence for people."""

    detail: str


class MalformedField(Model):
    """What is wrong with a request, and where."""

    loc: list[str | int]
    msg: str
    type: str


class Malformed(Model):
    """A request that is none of its kind."""

    detail: list[MalformedField]
