"""What the worker adds to what a coder hands over: a benchmark's package, a design's final files.

Made of the very bytes that are handed over, after they were accepted and before that is said: what cannot be
made whole is not handed over.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench_contract.connections import Connections
from workbench_contract.design import CONNECTIONS
from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.events import EventKind
from workbench_contract.handover import OpenRequest
from workbench_contract.package import VIEWS
from workbench_contract.renders import (
    FINAL,
    FINAL_PICTURES,
    FINAL_VIDEO,
    Pictures,
    Video,
)
from workbench_foundation import faults
from workbench_planning import objectives as objectives_file
from workbench_planning import package
from workbench_worker import filmed, planted, renders, validity
from workbench_worker.asked import Parts
from workbench_worker.builds import design_in
from workbench_worker.built_designs import Design, left_in
from workbench_worker.designs import (
    Measured,
    connections_in,
    connections_of,
    measured,
    put_together,
)
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.surveys import Surveyed

#: The script of a design that is handed over.
_SCRIPT = "model.py"
_YAW_DEG, _PITCH_DEG = 300.0, 25.0


def is_ours(opened: OpenRequest, path: str) -> bool:
    """Whether a path of a coder's session is the worker's to write, whatever the agent has left there."""
    if opened.role is not AgentRole.CODER:
        return False
    if path.startswith(f"{FINAL}/"):
        return True
    if faults.on("package-left-by-agent"):
        return False
    return opened.purpose is Purpose.BENCHMARK and package.belongs(path)


async def added(
    worker: Parts, job: Job, opened: OpenRequest, files: Mapping[str, bytes], found: Surveyed
) -> dict[str, bytes]:
    """The files that are handed over besides, path to bytes; none but of a coder's design.

    Raises:
        Refused: they cannot be made; nothing is handed over then.
    """
    if opened.role is not AgentRole.CODER:
        return {}
    if opened.purpose is Purpose.BENCHMARK:
        return await _package(worker, job, files, found)
    return await _final(worker, job, opened, files)


async def _package(
    worker: Parts, job: Job, files: Mapping[str, bytes], found: Surveyed
) -> dict[str, bytes]:
    data = files[objectives_file.FILE]
    objectives, _ = objectives_file.read_objectives(data)
    if found.design is None or objectives is None:
        raise Refused(409, "cannot hand over the benchmark: its environment was not built. Try again")
    made = await renders.pictures_of(worker, job, found.design, renders.all_views())
    pictures, views = renders.described(made, VIEWS)
    _recorded(job.session, "package", made.from_store, views)
    whole = package.put_together(data, objectives, found.geometry, pictures, views)
    wrong = planted.packaged(files, objectives, found.geometry, pictures, views)
    if wrong is not None:
        return dict(wrong)
    lacking = package.lacking({**files, **whole}, found.geometry)
    if lacking:
        detail = f"cannot hand over the benchmark: its package lacks {', '.join(lacking)}"
        raise Refused(409, f"{detail}. Submit it again")
    return whole


async def _final(
    worker: Parts, job: Job, opened: OpenRequest, files: Mapping[str, bytes]
) -> dict[str, bytes]:
    session = job.session
    last = validity.kept(session)
    try:
        built = await _built(worker, job, files, last.densities_kg_m3 if last else None)
    except Refused as refused:
        # Where no plan was handed over, a coder may leave what is no design.
        if validity.is_due(opened) or refused.status != 409 or job.cancelled.is_set():
            raise
        return {}
    design = built.design
    exported = await renders.exported(worker, job, design)
    final = {f"{FINAL}/{name}": data for name, data in exported.items()}
    try:
        final[f"{FINAL}/scene.xml"] = await _scene(worker, job, built)
    except Refused as refused:
        if validity.is_due(opened) or refused.status != 409 or job.cancelled.is_set():
            raise
    made = await renders.pictures_of(worker, job, design, renders.all_views())
    pictures, views = renders.described(made, f"{FINAL}/renders")
    _recorded(session, "final", made.from_store, views)
    final |= views
    final[FINAL_PICTURES] = _json(Pictures.model_validate(pictures))
    return final | await _video(worker, job)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """What a script was built to, once: all that is handed over besides is of it.

    Attributes:
        measured: for its scene; why it has none, else.
    """

    design: Design
    measured: Measured | Refused
    connections: Connections


async def _built(
    worker: Parts, job: Job, files: Mapping[str, bytes], densities: Mapping[str, float] | None
) -> _Built:
    """What the script is built to, of the bytes that are handed over.

    Where it is made of more, links say, it is built where it has passed: in its session.
    """
    try:
        return await _built_of(worker, job, files, densities)
    except Refused as refused:
        if refused.status != 409 or job.cancelled.is_set():
            raise
    return await _built_of(worker, job, None, densities)


async def _built_of(
    worker: Parts,
    job: Job,
    files: Mapping[str, bytes] | None,
    densities: Mapping[str, float] | None,
) -> _Built:
    if files is None:
        connections = await asyncio.to_thread(connections_of, job.session)
    else:
        data = files.get(CONNECTIONS)
        connections = connections_in(data) if data is not None else Connections(pairs=[])
    async with design_in(job, worker, _SCRIPT, files=files) as built:
        design = await asyncio.to_thread(left_in, filmed.outside(job, built.folder), built.names)
        found: Measured | Refused
        try:
            found = await measured(job, worker, built, densities)
        except Refused as refused:
            found = refused
    return _Built(design=design, measured=found, connections=connections)


async def _scene(worker: Parts, job: Job, built: _Built) -> bytes:
    if isinstance(built.measured, Refused):
        raise built.measured
    scene = await put_together(
        job, worker, _SCRIPT, built.measured, connections=built.connections, objectives=None
    )
    return scene.text.encode()


async def _video(worker: Parts, job: Job) -> dict[str, bytes]:
    """Of the last simulation of the design as it is, if that left trajectories: its first run."""
    simulation = _last_simulation(job.session)
    if simulation is None:
        return {}
    made = await renders.video_of(
        worker, job, simulation, 0, yaw_deg=_YAW_DEG, pitch_deg=_PITCH_DEG
    )
    data = made.files["0.mp4"]
    path = f"{FINAL}/run.mp4"
    told = {
        "path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "simulation": simulation,
        "run": 0,
    }
    _recorded(job.session, "final", made.from_store, {path: data})
    return {path: data, FINAL_VIDEO: _json(Video.model_validate(told | dict(made.about)))}


def _last_simulation(session: Session) -> str | None:
    found = None
    kinds = (EventKind.PRICING, EventKind.SIMULATION_RESULT)
    for event in session.events.all(*kinds):
        if event.kind is EventKind.PRICING:
            # What was simulated before may have been another design.
            found = None
        elif event.payload["ok"]:
            found = event.payload["job_id"]
    return found if found is not None and filmed.is_kept(session, found) else None


def _recorded(
    session: Session, kind: str, from_store: bool, files: Mapping[str, bytes]
) -> None:
    listed = [
        {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
        for path, data in files.items()
    ]
    if not faults.on("render-without-event"):
        payload = {"kind": kind, "from_store": from_store, "files": listed}
        session.record(EventKind.RENDERED, payload)


def _json(model: Any) -> bytes:
    return (str(model.model_dump_json(indent=2)) + "\n").encode()
