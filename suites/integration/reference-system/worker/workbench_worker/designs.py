"""A design as the scene that it is simulated as: its solids with their joints, where it stands.

Its script only builds; solids are measured and cut into convex pieces by forks that have run none of it, and
pieces that are known by their content are not cut again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from workbench_contract.connections import Connections
from workbench_contract.design import CONNECTIONS
from workbench_contract.handover import GEOMETRY
from workbench_contract.joints import DesignJoint, ExportedMotor, ExportedPart
from workbench_contract.objectives import Control, MovingPart, Objectives
from workbench_foundation import faults
from workbench_making import drives
from workbench_physics import assembly, kinematics
from workbench_physics.errors import SceneError
from workbench_planning import environment
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_worker import planted_designs as planted
from workbench_worker import validity
from workbench_worker.asked import Parts
from workbench_worker.builds import Built, design_in
from workbench_worker.files_api import read_bytes
from workbench_worker.jobs import Job
from workbench_worker.opening import purpose_of
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session

#: Of a part whose material nobody has named, and of an environment: aluminium.
_DENSITY_KG_M3 = 2700.0
#: A part that takes longer to cut is refused.
_CUT_S = 180
#: Without a benchmark a design is dropped from so high.
_DROP_MM = 50.0
#: The body of a design that is one part without a name.
_ONLY = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignScene:
    """A design, ready to be simulated.

    Attributes:
        text: MJCF; without the benchmark's object and zones.
    """

    text: str
    parts: list[ExportedPart]
    joints: list[DesignJoint]
    motors: list[ExportedMotor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a script was built to, as physics needs it.

    Attributes:
        lows_mm: how low each part lies.
    """

    parts: list[assembly.Solid]
    lows_mm: list[float]
    joints: list[DesignJoint]


async def scene_of(
    job: Job,
    worker: Parts,
    model: str,
    *,
    densities: Mapping[str, float] | None,
    objectives: Objectives | None,
    controls: Mapping[str, Control] | None = None,
) -> DesignScene:
    """Build a design, and put its scene together.

    Args:
        densities: kg/m³ by the names of its parts; aluminium where there is none.
        objectives: with them it stands in the environment of the session's benchmark.
        controls: of motors, besides those of the objectives.

    Raises:
        Refused: 409 for a design that cannot be mapped, with what is wrong; 503 where the catalogue is away.
    """
    connections = await asyncio.to_thread(connections_of, job.session)
    around: list[assembly.Solid] = []
    if objectives is not None:
        around = await _environment(job, worker)
    async with design_in(job, worker, model) as built:
        found = await measured(job, worker, built, densities)
    return await put_together(
        job,
        worker,
        model,
        found,
        connections=connections,
        objectives=objectives,
        controls=controls,
        around=around,
    )


async def measured(
    job: Job, worker: Parts, built: Built, densities: Mapping[str, float] | None
) -> Measured:
    """What was built, as physics needs it, while its folder is there.

    Raises:
        Refused: 409 for a solid that cannot be measured or cut into pieces.
    """
    named = _named(built, densities)
    parts, lows = await _solids(job, worker, named, densities or {})
    return Measured(parts=parts, lows_mm=lows, joints=planted.mapped(named.joints, parts))


async def put_together(
    job: Job,
    worker: Parts,
    model: str,
    found: Measured,
    *,
    connections: Connections,
    objectives: Objectives | None,
    controls: Mapping[str, Control] | None = None,
    around: Sequence[assembly.Solid] = (),
) -> DesignScene:
    """The scene of what was measured.

    Args:
        around: the environment that it stands in.

    Raises:
        Refused: as :func:`scene_of`.
    """
    parts, joints = found.parts, found.joints
    pairs = [pair.parts for pair in connections.pairs]
    moving = _moving(job.session, objectives)
    try:
        mechanism = kinematics.mechanism(
            [each.name for each in parts], joints, pairs=pairs, grounded=connections.grounded
        )
        motors = await _motors(job.session, worker, connections, joints, moving)
        if objectives is None and faults.on("final-motors-push"):
            moving = []
        told = {part.name: part.control for part in moving} | dict(controls or {})
        text = assembly.mjcf(
            planted.weighed(parts),
            mechanism,
            drives=[
                assembly.Drive(
                    joint=motor.joint,
                    most=motor.most,
                    to_position=_is_position(told.get(motor.joint)),
                )
                for motor in motors
            ],
            environment=list(around),
            floor_mm=min(found.lows_mm) - _DROP_MM if objectives is None else None,
        )
    except SceneError as error:
        raise Refused(409, f"cannot simulate {model!r}: {error}") from error
    return DesignScene(
        text=text,
        parts=[
            ExportedPart(name=each.name, mass_kg=each.mass_kg, pieces=len(each.pieces_mm))
            for each in parts
        ],
        joints=joints,
        motors=motors,
    )


def connections_of(session: Session) -> Connections:
    """How the parts of a session's design hold together, as its file says; nothing without one.

    Raises:
        Refused: 409 for a file that is none.
    """
    try:
        data = read_bytes(session, CONNECTIONS)
    except Refused as refused:
        if refused.status == 404:
            return Connections(pairs=[])
        raise
    return connections_in(data)


def connections_in(data: bytes) -> Connections:
    """The same, as the bytes of the file say.

    Raises:
        Refused: 409 for what is no such file.
    """
    try:
        return Connections.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(409, f"cannot use {CONNECTIONS}: {where}: {first['msg']}. Correct it") from error


def _named(built: Built, densities: Mapping[str, float] | None) -> Built:
    """What was built, its only part by the name that the plan has for it."""
    if built.names != [""]:
        return built
    name = next(iter(densities)) if densities and len(densities) == 1 else _ONLY
    joints = [
        each.model_copy(
            update={"part": each.part or name, "other": each.other or name},
        )
        for each in built.joints
    ]
    return Built(folder=built.folder, names=[name], joints=joints)


async def _environment(job: Job, worker: Parts) -> list[assembly.Solid]:
    """The solids of the benchmark's environment, of the bytes that were handed over; none without one."""
    purpose = purpose_of(job.session)
    own = {each.path: each.content for each in purpose.files if environment.belongs(each.path)}
    if GEOMETRY not in own:
        return []
    async with design_in(job, worker, GEOMETRY, files=own) as built:
        found, _ = await _solids(job, worker, _named(built, None), {})
    return found


async def _solids(
    job: Job, worker: Parts, built: Built, densities: Mapping[str, float]
) -> tuple[list[assembly.Solid], list[float]]:
    """What was built, as physics needs it, and how low each lies in mm."""
    answer = await worker.pool.ask(job, "solids", folder=built.folder, names=built.names)
    found = []
    for number, each in enumerate(answer["solids"]):
        key = planted.key_of(each["key"], each["name"])
        pieces = await asyncio.to_thread(worker.pieces.of, key)
        if pieces is None:
            cut = await worker.pool.ask(
                job,
                "decompose",
                cpu_s=_CUT_S,
                folder=built.folder,
                number=number,
                name=each["name"],
            )
            pieces = cut["pieces"]
            key = planted.key_of(cut["key"], each["name"])
            await asyncio.to_thread(worker.pieces.keep, key, pieces)
        x, y, z = each["centre_mm"]
        found.append(
            assembly.Solid(
                name=each["name"],
                volume_mm3=each["volume_mm3"],
                centre_mm=(x, y, z),
                inertia_mm5=tuple(each["inertia_mm5"]),
                pieces_mm=planted.cut(pieces),
                density_kg_m3=densities.get(each["name"], _DENSITY_KG_M3),
            )
        )
    return found, [each["low_mm"] for each in answer["solids"]]


def _moving(session: Session, objectives: Objectives | None) -> Sequence[MovingPart]:
    """What moves, as it was handed over; else as the objectives say that somebody asks with."""
    purpose = purpose_of(session)
    if validity.is_due(purpose):
        _, goal = validity.handed(purpose)
        known, _ = objectives_file.read_objectives(goal)
        if known:
            return known.moving_parts
    return objectives.moving_parts if objectives else []


async def _motors(
    session: Session,
    worker: Parts,
    connections: Connections,
    joints: Sequence[DesignJoint],
    moving: Sequence[MovingPart],
) -> list[ExportedMotor]:
    """The motors of a design, by the catalogue as it is now."""
    purpose = purpose_of(session)
    bought: Counter[str] | None = None
    if validity.is_due(purpose):
        plan, _ = validity.handed(purpose)
        estimate, _ = estimate_file.read_estimate(plan)
        bought = Counter()
        for row in estimate.cots_parts if estimate else ():
            bought[row.part_id] += row.quantity
    looked = await worker.prices.of(
        list(dict.fromkeys(each.part_id for each in connections.drives))
    )
    findings = drives.check(
        connections, joints, moving, looked.torque_n_m, bought=bought, file=CONNECTIONS
    )
    if findings:
        first = findings[0]
        raise SceneError(f"{first.file}: {first.where}: found {first.found}, expected {first.expected}")
    motors = []
    for each in connections.drives:
        torque = planted.torque(looked, each.part_id)
        motors.append(
            ExportedMotor(
                joint=each.joint,
                part_id=each.part_id,
                catalogue_version=looked.version,
                torque_n_m=torque,
                most=planted.most(each, torque),
            )
        )
    return motors


def _is_position(control: Any) -> bool:
    told = ("waypoint", "hold") if faults.on("oscillate-unplaced") else ("waypoint", "hold", "oscillate")
    return control is not None and control.mode in told
