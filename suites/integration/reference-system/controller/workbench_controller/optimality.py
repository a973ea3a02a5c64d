"""Designs that were called optimal, beside later ones of their benchmarks: computed when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import asyncpg

from workbench_contract.events import EventKind, EventSource
from workbench_contract.optimality import Alternative, Case, Optimality, Verdict
from workbench_controller.parts import Refused
from workbench_foundation import faults

#: The last decision of each reviewer's turn about a design, if it approves, with what the design cost when it
#: passed for the last time before it was handed over.
_ACCEPTED = """
    SELECT d.*, f.benchmark_id, p.unit_cost_usd
    FROM (SELECT DISTINCT ON (episode_id) * FROM decisions ORDER BY episode_id, event_seq DESC) d
    JOIN handovers h ON h.handover_id = d.reviewed_id
    LEFT JOIN flows f ON f.flow_id = d.flow_id
    LEFT JOIN LATERAL (
        SELECT e.payload->'totals'->>'unit_cost_usd' AS unit_cost_usd FROM events e
        WHERE e.session_id = h.session_id AND e.source = $2 AND e.kind = $3 AND e.seq < h.event_seq
        AND (e.payload->>'passed')::boolean ORDER BY e.seq DESC LIMIT 1
    ) p ON true
    WHERE d.decision = 'approved' AND h.purpose = 'engineering' AND h.role = 'coder'
    AND NOT h.refuses_plan AND ($1::text IS NULL OR f.benchmark_id = $1)
    ORDER BY d.decided_at, d.decision_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accepted:
    """A design that was accepted; ``cost`` is none where no price of it is on record."""

    decision_id: str
    flow_id: str | None
    benchmark_id: str | None
    handover_id: str
    decided_at: datetime
    optimal: bool
    cost: Decimal | None


async def optimality_of(
    pool: asyncpg.Pool, benchmark_id: str | None, *, share: Decimal, limit: int, offset: int
) -> Optimality:
    """What was called optimal, of a benchmark or of all.

    Args:
        share: of a design's cost; one that saves that much is materially cheaper.

    Raises:
        Refused: there is no such benchmark.
    """
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        if benchmark_id is not None and not await connection.fetchval(
            "SELECT 1 FROM flows WHERE flow_id = $1 AND purpose = 'benchmark'", benchmark_id
        ):
            raise Refused(404, f"cannot find benchmark {benchmark_id}: there is none. Check the id")
        accepted_by = _ACCEPTED
        if faults.on("optimality-of-rejected"):
            accepted_by = accepted_by.replace("d.decision = 'approved'", "true")
        if faults.on("optimality-of-last-price"):
            accepted_by = accepted_by.replace("AND e.seq < h.event_seq", "")
        rows = await connection.fetch(
            accepted_by, benchmark_id, EventSource.WORKER.value, EventKind.PRICING.value
        )
    accepted = [_accepted(row) for row in rows]
    cases = [_case(each, accepted, share) for each in accepted if each.optimal]
    judged = [case for case in cases if case.verdict is not None]
    standing = [case for case in judged if case.verdict is Verdict.STANDS]
    missing = "" if judged else "no design that was called optimal, and can be compared"
    nothing = 1.0 if faults.on("optimality-of-nothing") else None
    return Optimality(
        benchmark_id=benchmark_id,
        material_share=float(share),
        cases=cases[offset : offset + limit],
        total=len(cases),
        judged=len(judged),
        standing=len(standing) / len(judged) if judged else nothing,
        missing=missing if nothing is None else "",
    )


def _accepted(row: Mapping[str, Any]) -> _Accepted:
    cost = row["unit_cost_usd"]
    return _Accepted(
        decision_id=row["decision_id"],
        flow_id=row["flow_id"],
        benchmark_id=row["benchmark_id"],
        handover_id=row["reviewed_id"],
        decided_at=row["decided_at"],
        optimal=row["optimal"],
        cost=None if cost is None else Decimal(cost),
    )


def _case(case: _Accepted, accepted: Sequence[_Accepted], share: Decimal) -> Case:
    others = [each for each in accepted if _is_later(each, case)]
    cheaper = [each for each in others if None not in (each.cost, case.cost) and each.cost < case.cost]
    cheapest = min(cheaper, key=lambda each: each.cost or 0, default=None)
    alternative = _alternative(case, cheapest, share) if cheapest else None
    missing = _missing(case, others)
    verdict: Verdict | None = None
    if alternative is not None and alternative.material:
        # However many others cannot be compared.
        verdict, missing = Verdict.OVERTURNED, ""
    elif not missing:
        verdict = Verdict.STANDS
    return Case(
        decision_id=case.decision_id,
        flow_id=case.flow_id,
        benchmark_id=case.benchmark_id,
        handover_id=case.handover_id,
        decided_at=case.decided_at,
        unit_cost_usd=case.cost,
        compared=len(others),
        cheaper=len(cheaper),
        cheapest=alternative,
        verdict=verdict,
        missing=missing,
    )


def _is_later(other: _Accepted, case: _Accepted) -> bool:
    if other.handover_id == case.handover_id or case.benchmark_id is None:
        return False
    if other.benchmark_id != case.benchmark_id and not faults.on("optimality-across-benchmarks"):
        return False
    return other.decided_at > case.decided_at or faults.on("optimality-of-earlier")


def _alternative(case: _Accepted, cheapest: _Accepted, share: Decimal) -> Alternative:
    assert case.cost is not None and cheapest.cost is not None, "both have a price"
    assert cheapest.flow_id is not None, "of a benchmark are designs of flows alone"
    saves = case.cost - cheapest.cost
    material = saves >= share * case.cost
    if faults.on("optimality-any-difference"):
        material = saves > 0
    return Alternative(
        decision_id=cheapest.decision_id,
        flow_id=cheapest.flow_id,
        handover_id=cheapest.handover_id,
        decided_at=cheapest.decided_at,
        unit_cost_usd=cheapest.cost,
        saves_usd=saves,
        material=material,
    )


def _missing(case: _Accepted, others: Sequence[_Accepted]) -> str:
    if case.benchmark_id is None:
        return "a benchmark that it solves, and that others have solved"
    if case.cost is None:
        return "a price of the design on record"
    unpriced = len([each for each in others if each.cost is None])
    return f"the prices of {unpriced} later designs on record" if unpriced else ""
