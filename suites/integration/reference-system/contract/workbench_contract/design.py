"""A design that was built, and the verdict whether it can be made, and for how much."""

from __future__ import annotations

from workbench_contract.artifact import Sha256
from workbench_contract.base import Model
from workbench_contract.benchmark import ModelRequest
from workbench_contract.estimate import EstimateTotals
from workbench_contract.findings import Finding
from workbench_contract.pricing import PricedRow

#: Where a design says how its parts hold together, by the model ``Connections``; it may be left out.
CONNECTIONS = "connections.json"


class DesignRequest(ModelRequest):
    """Judge the design that a script leaves: one solid in ``part``, or several in ``parts``, by their ids."""


class DesignJudged(Model):
    """The verdict about a design.

    Attributes:
        price_id: names this pricing, as proof.
        passed: it may be simulated and submitted as it is now.
        parts: made, then bought; none of a design that cannot be priced.
        totals: of one unit.
        findings: all of the first stage that has any.
        record_sha256: of all that the verdict is about.
    """

    price_id: str
    passed: bool
    parts: list[PricedRow]
    totals: EstimateTotals | None
    findings: list[Finding]
    record_sha256: Sha256
