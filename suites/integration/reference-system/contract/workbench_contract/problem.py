"""A refusal."""

from __future__ import annotations

from workbench_contract.base import Model


class Problem(Model):
    """Why a request was not carried out; one sentence for people."""

    detail: str
