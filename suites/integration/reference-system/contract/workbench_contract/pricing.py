"""What a design costs and weighs, as the system computes it."""

from __future__ import annotations

from workbench_contract.artifact import Sha256, Usd
from workbench_contract.base import Model
from workbench_contract.estimate import EstimateTotals
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import SubmitRequest
from workbench_contract.problem import Problem


class PriceRequest(SubmitRequest):
    """Price the estimate that lies in the session."""


class PricedRow(Model):
    """A part, made or bought; of one piece."""

    id: str
    quantity: int
    unit_cost_usd: Usd
    unit_weight_g: float


class Priced(Model):
    """What was computed.

    Attributes:
        price_id: names this pricing, as proof.
        parts: made, then bought, in the order of the estimate.
        totals: of one unit.
        findings: numbers that were typed and differ, and what is over a cap or target; with one of them
            nothing is handed over.
        configuration_sha256: of ``manufacturing_config.yaml``.
        written: whether the estimate had other numbers than those that stand in it now.
    """

    price_id: str
    parts: list[PricedRow]
    totals: EstimateTotals
    findings: list[Finding]
    configuration_sha256: Sha256
    written: bool


class PriceRefused(Problem):
    """An estimate that cannot be priced.

    Attributes:
        findings: all of one stage.
    """

    stage: Stage
    findings: list[Finding]
