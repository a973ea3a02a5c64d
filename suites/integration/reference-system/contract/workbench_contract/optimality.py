"""What reviewers called optimal, beside what was accepted for less since."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from workbench_contract.artifact import Usd
from workbench_contract.base import Model


class Verdict(StrEnum):
    """``stands``: nothing materially cheaper was accepted since. ``overturned``: something was."""

    STANDS = "stands"
    OVERTURNED = "overturned"


class Alternative(Model):
    """A design of the same benchmark that was accepted later, for less.

    Attributes:
        decision_id: that accepted it.
        saves_usd: beside the design that was called optimal.
        material: whether that is the material share of its cost, or more.
    """

    decision_id: str
    flow_id: str
    handover_id: str
    decided_at: datetime
    unit_cost_usd: Usd
    saves_usd: Usd
    material: bool


class Case(Model):
    """A decision that called a design optimal.

    Attributes:
        handover_id: the design.
        unit_cost_usd: as it was computed when it passed; none where no price of it is on record.
        compared: designs of the same benchmark that were accepted later.
        cheaper: how many of them cost less.
        cheapest: of these; the first that was accepted where several cost the same.
        verdict: none where it cannot be told.
        missing: what would be needed for it; empty where there is one.
    """

    decision_id: str
    flow_id: str | None
    benchmark_id: str | None
    handover_id: str
    decided_at: datetime
    unit_cost_usd: Usd | None
    compared: int
    cheaper: int
    cheapest: Alternative | None
    verdict: Verdict | None
    missing: str


class Optimality(Model):
    """A page of such cases, in the order in which they were decided.

    Attributes:
        benchmark_id: of the designs; none for all.
        material_share: of the cost of a design, as configured.
        total: of all cases.
        judged: how many of all have a verdict.
        standing: share of these that stand; none of none.
        missing: what would be needed for that share; empty where there is one.
    """

    benchmark_id: str | None
    material_share: float
    cases: list[Case]
    total: int
    judged: int
    standing: float | None
    missing: str
