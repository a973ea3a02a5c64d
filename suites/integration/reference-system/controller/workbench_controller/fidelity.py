"""How far designs are from their plans: of the stored bytes of both, when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.fidelity import (
    Compared,
    ComparedPart,
    CompareRequest,
    Fidelity,
    PartFidelity,
    PlanFidelity,
    PlannedPart,
    Tolerance,
)
from workbench_contract.renders import FINAL
from workbench_controller.handovers import content_of
from workbench_controller.parts import Parts, Refused
from workbench_controller.worker_client import Whose
from workbench_foundation import faults
from workbench_foundation.errors import describe
from workbench_planning import estimate as estimate_file

_STEP = f"{FINAL}/model.step"
_ROW = (
    "SELECT h.handover_id, h.role, h.purpose, h.refuses_plan, e.episode_id, e.session_id, e.trace_id,"
    " e.handover_id AS plan_id FROM handovers h JOIN episodes e USING (episode_id)"
)
_DESIGNS = (
    " WHERE e.handover_id = $1 AND h.role = 'coder' AND h.purpose = 'engineering' AND NOT h.refuses_plan"
)

#: For the planted fault `fidelity-of-first-design` alone.
_first: dict[str, list[PartFidelity]] = {}


async def fidelity_of(parts: Parts, handover_id: str) -> Fidelity:
    """A design beside its plan.

    Raises:
        Refused: there is no such hand-over, it is no design, or the worker does not measure it.
    """
    row = await parts.pool.fetchrow(f"{_ROW} WHERE h.handover_id = $1", handover_id)
    if row is None:
        raise Refused(404, f"cannot find hand-over {handover_id}: there is none. Check the id")
    is_design = AgentRole(row["role"]) is AgentRole.CODER and not row["refuses_plan"]
    if not is_design or Purpose(row["purpose"]) is not Purpose.ENGINEERING:
        detail = f"cannot compare hand-over {handover_id}: it is no design of an engineer"
        raise Refused(409, f"{detail}. Name one that a coder has made of a plan")
    return await _beside_its_plan(parts, row)


async def fidelity_of_plan(parts: Parts, plan_id: str, *, limit: int, offset: int) -> PlanFidelity:
    """The designs that were made of a plan.

    Raises:
        Refused: there is no such plan, or the worker does not measure one of them.
    """
    role = await parts.pool.fetchval("SELECT role FROM handovers WHERE handover_id = $1", plan_id)
    if role != AgentRole.PLANNER.value:
        raise Refused(404, f"cannot find plan {plan_id}: no planner has handed over such. Check the id")
    total = await parts.pool.fetchval(
        f"SELECT count(*) FROM handovers h JOIN episodes e USING (episode_id) {_DESIGNS}", plan_id
    )
    rows = await parts.pool.fetch(
        f"{_ROW} {_DESIGNS} ORDER BY h.accepted_at, h.handover_id LIMIT $2 OFFSET $3",
        *(plan_id, limit, offset),
    )
    designs = [await _beside_its_plan(parts, row) for row in rows]
    judged = [each for each in designs if each.within is not None]
    preserved = [each for each in judged if each.within]
    return PlanFidelity(
        plan_id=plan_id,
        tolerance=parts.settings.tolerance,
        designs=designs,
        total=total,
        judged=len(judged),
        preserved=len(preserved) / len(judged) if judged else None,
        missing="" if judged else "a design of this plan that can be compared with it",
    )


async def _beside_its_plan(parts: Parts, row: Mapping[str, Any]) -> Fidelity:
    compared, missing = await _compared(parts, row)
    found = [_judged(each, parts.settings.tolerance) for each in compared]
    if faults.on("fidelity-of-first-design") and row["plan_id"] is not None:
        found = _first.setdefault(row["plan_id"], found)
    within: bool | None = None
    if any(each.within is False for each in found):
        within = False
    elif found and all(each.within for each in found):
        within = True
    lacking = [missing, *(each.missing for each in found)]
    return Fidelity(
        handover_id=row["handover_id"],
        episode_id=row["episode_id"],
        plan_id=row["plan_id"],
        tolerance=parts.settings.tolerance,
        parts=found,
        within=within,
        missing="; ".join(each for each in lacking if each) if within is None else "",
    )


async def _compared(
    parts: Parts, row: Mapping[str, Any]
) -> tuple[Sequence[ComparedPart], str]:
    """Each part as the worker has measured it, or what is missing for that."""
    if row["plan_id"] is None:
        return [], "a plan that its coder started from"
    data = await content_of(parts.pool, row["plan_id"], estimate_file.FILE)
    estimate, _ = estimate_file.read_estimate(data) if data is not None else (None, [])
    if estimate is None or not estimate.manufactured_parts:
        return [], "parts that are made, in the estimate of its plan"
    step = await content_of(parts.pool, row["handover_id"], _STEP)
    if step is None:
        return [], f"{_STEP} of the design"
    planned = [PlannedPart(id=each.id, features=each.features) for each in estimate.manufactured_parts]
    wanted = CompareRequest(parts=planned, step=step)
    whose = Whose(**{name: row[name] for name in ("episode_id", "session_id", "trace_id")})
    try:
        answer = await parts.worker.post(
            whose, "/benchmark/compare", wanted.model_dump(mode="json"), timeout_s=parts.settings.tool_s
        )
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise Refused(503, f"cannot compare the design: {error.response.text[:500]}") from error
    except httpx.HTTPError as error:
        detail = f"cannot compare the design: the worker does not answer ({describe(error)})"
        raise Refused(503, f"{detail}. Ask again when it serves") from error
    return Compared.model_validate_json(answer.content).parts, ""


def _judged(part: ComparedPart, tolerance: Tolerance) -> PartFidelity:
    within: bool | None = None
    if part.deviation is not None:
        names = ["volume_share", "box_mm", "surface_mm"]
        if faults.on("fidelity-by-volume-alone"):
            names = names[:1]
        within = all(getattr(part.deviation, each) <= getattr(tolerance, each) for each in names)
    elif faults.on("fidelity-missing-as-preserved"):
        within = True
    return PartFidelity(**part.model_dump(), within=within)
