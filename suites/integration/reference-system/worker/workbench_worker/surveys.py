"""The geometry of a benchmark's environment, built and measured when its coder hands it over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import GEOMETRY, OpenRequest
from workbench_planning import environment
from workbench_planning import objectives as objectives_file
from workbench_planning.text import finding
from workbench_worker import filmed
from workbench_worker.asked import Parts
from workbench_worker.builds import built_in
from workbench_worker.built_designs import Design, left_in
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """What was found of the geometry that a benchmark's coder leaves.

    Attributes:
        findings: against it.
        geometry: its solids, by the model ``EnvironmentSolid``.
        design: the same, as they were built.
    """

    findings: tuple[Finding, ...] = ()
    geometry: tuple[Mapping[str, Any], ...] = ()
    design: Design | None = None


async def surveyed(
    worker: Parts, job: Job, opened: OpenRequest, files: Mapping[str, bytes]
) -> Surveyed:
    """Build and measure the geometry that a benchmark's coder leaves; of anybody else there is none.

    It is built of the very bytes that are handed over, in a folder where nothing else of the session is.
    """
    if (opened.role, opened.purpose) != (AgentRole.CODER, Purpose.BENCHMARK) or GEOMETRY not in files:
        return Surveyed()
    given = {each.path: each.content for each in opened.files}
    objectives, _ = objectives_file.read_objectives(given.get(objectives_file.FILE, b""))
    if objectives is None:
        found = "a session that no objectives were handed to"
        return Surveyed(findings=(_wrong(found, "one that starts from a planner's hand-over"),))
    own = {path: data for path, data in files.items() if environment.belongs(path)}
    try:
        async with built_in(job, worker, GEOMETRY, files=own) as (folder, names):
            design = await asyncio.to_thread(left_in, filmed.outside(job, folder), names)
            answer = await worker.pool.ask(
                job,
                "survey",
                folder=folder,
                names=[name or "part" for name in names],
                objectives=objectives.model_dump_json(),
            )
    except Refused as refused:
        if refused.status != 409 or job.cancelled.is_set():
            raise
        return Surveyed(findings=(_wrong(refused.detail, "a script that leaves solids"),))
    return Surveyed(
        findings=tuple(Finding.model_validate(each) for each in answer["findings"]),
        geometry=tuple(answer["geometry"]),
        design=design,
    )


def _wrong(found: str, expected: str) -> Finding:
    return finding(GEOMETRY, "", found, expected, stage=Stage.PRICE)
