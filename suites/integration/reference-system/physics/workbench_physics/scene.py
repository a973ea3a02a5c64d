"""A scene: a model with the moved object, its zones, and sensors for all that a run is judged by.

Lengths of objectives are millimetres, of a model metres. Zones are boxes that nothing collides with; how far
the object's geometry is from each is measured by MuJoCo at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from workbench_contract.objectives import (
    Box,
    Control,
    Dof,
    MovedBox,
    MovedObject,
    MovedSphere,
    MovingPart,
    Objectives,
    PartType,
)
from workbench_foundation import faults
from workbench_physics import commands
from workbench_physics.commands import Floats
from workbench_physics.errors import SceneError

_M_PER_MM = 1e-3
#: Of the moved object, whose material nobody names: that of water.
_DENSITY_KG_M3 = 1000.0
#: Farther is not measured.
_FAR_M = 1_000.0
#: A dof's axis and the joint's, as a share of 1.
_PARALLEL = 1e-6
_OURS = "workbench/"
_OBJECT = f"{_OURS}object"
#: For the planted fault `zones-by-centre` alone.
_CENTRE = f"{_OURS}centre"

_JOINT_KINDS = {mujoco.mjtJoint.mjJNT_HINGE: True, mujoco.mjtJoint.mjJNT_SLIDE: False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Motor:
    """An actuator with what it is told.

    Attributes:
        index: in the model.
        name: of the actuator.
        control: none when it is told nothing.
        to_model: factor from a command, as it was configured, to the model's control.
        most: greatest force or torque either way (low, high); none when it is not limited.
    """

    index: int
    name: str
    control: Control | None
    to_model: float
    most: tuple[float, float] | None

    def commanded(self, times_s: Floats) -> Floats:
        """As it was configured; nothing is 0."""
        if self.control is None:
            return np.zeros_like(times_s)
        return commands.commanded(self.control, times_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A compiled scene.

    Attributes:
        spec: what it was compiled from.
        model: of MuJoCo.
        bodies: names, without the world, in the order of their positions.
        motors: one for each actuator, in the order of the model.
        goal: column of the goal's distance in the sensors; none without objectives.
        forbidden: name of each forbid zone, and its column.
        positions: columns of the bodies' positions, three each.
        forces: columns of the motors' forces.
        bounds_m: corners of the simulation's bounds.
        moved: where the object's free joint is among the positions, and its sizes as MuJoCo has them.
    """

    spec: Any
    model: Any
    bodies: list[str]
    motors: list[Motor]
    positions: slice
    forces: slice
    goal: int | None = None
    forbidden: list[tuple[str, int]] = field(default_factory=list)
    bounds_m: tuple[Floats, Floats] | None = None
    moved: tuple[int, Floats, Any] | None = None


def read(xml: str, assets: Mapping[str, bytes] | None = None) -> Any:
    """A model's specification.

    Args:
        assets: files that it names, besides those in the working folder.

    Raises:
        SceneError: it is none.
    """
    try:
        return mujoco.MjSpec.from_string(xml, assets=dict(assets or {}))
    except ValueError as error:
        raise SceneError(_told(error)) from error


def prepared(
    spec: Any, objectives: Objectives | None, controls: dict[str, Control], *, scale: float = 1.0
) -> Scene:
    """Compile a specification, with the object, zones and motors of objectives.

    Args:
        spec: is changed.
        objectives: none for a scene that has no goal.
        controls: by the name of their actuator, besides those of objectives.
        scale: of all lengths of the object.

    Raises:
        SceneError: it does not compile, or lacks what moves, or has the moved object already.
    """
    for name in (each.name for each in spec.bodies):
        if objectives and name == objectives.moved_object.label:
            detail = f"it has a body {name!r}, which is put there as the moved object. Leave it out"
            raise SceneError(detail)
    if objectives is not None:
        _put_object(spec, objectives.moved_object, scale)
        _put_zones(spec, objectives)
    for index, body in enumerate(spec.bodies):
        if index:
            body.name = body.name or f"body-{index}"
            spec.add_sensor(
                name=f"{_OURS}position/{index}",
                type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
                objtype=mujoco.mjtObj.mjOBJ_XBODY,
                objname=body.name,
            )
    for index, actuator in enumerate(spec.actuators):
        actuator.name = actuator.name or f"actuator-{index}"
        spec.add_sensor(
            name=f"{_OURS}force/{index}",
            type=mujoco.mjtSensor.mjSENS_ACTUATORFRC,
            objtype=mujoco.mjtObj.mjOBJ_ACTUATOR,
            objname=actuator.name,
        )
    try:
        model = spec.compile()
    except ValueError as error:
        raise SceneError(_told(error)) from error
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    told = dict(controls)
    if objectives is not None:
        _check_moving_parts(model, objectives.moving_parts)
        for part in objectives.moving_parts:
            if part.name in controls:
                detail = f"the control of {part.name!r} is the benchmark's. Leave it as it is"
                raise SceneError(detail)
            if part.control is not None:
                told[part.name] = part.control
    described = _described(spec, model, objectives, told)
    if faults.on("motor-unclamped"):
        model.actuator_forcelimited[:] = 0
    return described


def begun(scene: Scene, centre_mm: tuple[float, float, float] | None) -> Any:
    """The state that a run begins with.

    The model is the same in all runs: what they have in common is computed once, and is bit for bit the
    same in each.

    Args:
        centre_mm: of the moved object; none in a scene that has none.
    """
    data = mujoco.MjData(scene.model)
    if scene.moved is not None and centre_mm is not None:
        at = scene.moved[0]
        data.qpos[at : at + 3] = [value * _M_PER_MM for value in centre_mm]
    return data


def _described(
    spec: Any, model: Any, objectives: Objectives | None, told: dict[str, Control]
) -> Scene:
    motors = [_motor(model, index, told) for index in range(model.nu)]
    unknown = sorted(set(told) - {motor.name for motor in motors})
    if unknown:
        known = ", ".join(motor.name for motor in motors) or "none"
        raise SceneError(f"no actuator is named {unknown[0]!r}; there are: {known}")
    watched = [model.sensor(f"{_OURS}position/{index}") for index in range(1, model.nbody)]
    first = int(watched[0].adr[0]) if watched else 0
    forces = _column(model, "force/0") if motors else 0
    scene = {
        "spec": spec,
        "model": model,
        "bodies": [model.body(int(sensor.objid[0])).name for sensor in watched],
        "motors": motors,
        "positions": slice(first, first + 3 * len(watched)),
        "forces": slice(forces, forces + len(motors)),
    }
    if objectives is None:
        return Scene(**scene)
    joint = model.joint(_OBJECT)
    geom = model.geom(_OBJECT)
    bounds = objectives.simulation_bounds
    return Scene(
        **scene,
        goal=_column(model, "goal"),
        forbidden=[
            (zone.name or f"forbid_zones[{index}]", _column(model, f"forbid/{index}"))
            for index, zone in enumerate(objectives.forbid_zones)
        ],
        bounds_m=(np.array(bounds.min_mm) * _M_PER_MM, np.array(bounds.max_mm) * _M_PER_MM),
        moved=(int(joint.qposadr[0]), np.array(geom.size), mujoco.mjtGeom(int(geom.type[0]))),
    )


def _column(model: Any, name: str) -> int:
    return int(model.sensor(f"{_OURS}{name}").adr[0])


def _put_object(spec: Any, moved: MovedObject, scale: float) -> None:
    body = spec.worldbody.add_body(
        name=moved.label, pos=[value * _M_PER_MM for value in moved.start_mm]
    )
    body.add_freejoint(name=_OBJECT)
    if faults.on("scale-of-balls-alone") and not isinstance(moved, MovedSphere):
        scale = 1.0
    factor = scale * _M_PER_MM
    if isinstance(moved, MovedSphere):
        kind, size = mujoco.mjtGeom.mjGEOM_SPHERE, [moved.size.radius_mm, 0, 0]
    elif isinstance(moved, MovedBox):
        kind = mujoco.mjtGeom.mjGEOM_BOX
        size = [moved.size.x_mm / 2, moved.size.y_mm / 2, moved.size.z_mm / 2]
    else:
        kind = mujoco.mjtGeom.mjGEOM_CYLINDER
        size = [moved.size.radius_mm, moved.size.height_mm / 2, 0]
    if faults.on("zones-by-centre"):
        body.add_geom(name=_CENTRE, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-6, 0, 0], contype=0,
                      conaffinity=0, mass=0)  # fmt: skip
    if faults.on("cylinder-in-its-box") and kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        body.add_geom(name=_CENTRE, type=mujoco.mjtGeom.mjGEOM_BOX, contype=0, conaffinity=0, mass=0,
                      size=[value * factor for value in (size[0], size[0], size[1])])  # fmt: skip
    body.add_geom(
        name=_OBJECT, type=kind, size=[value * factor for value in size], density=_DENSITY_KG_M3
    )


def _judged_geom(objectives: Objectives) -> str:
    """What of the moved object is held against zones."""
    boxed = faults.on("cylinder-in-its-box") and objectives.moved_object.shape == "cylinder"
    return _CENTRE if boxed or faults.on("zones-by-centre") else _OBJECT


def _put_zones(spec: Any, objectives: Objectives) -> None:
    judged = _judged_geom(objectives)
    _put_zone(spec, "goal", objectives.goal_zone, (0.1, 0.8, 0.1, 0.3), judged)
    for index, zone in enumerate(objectives.forbid_zones):
        _put_zone(spec, f"forbid/{index}", zone, (0.8, 0.1, 0.1, 0.3), judged)


def _put_zone(spec: Any, name: str, zone: Box, colour: tuple[float, ...], judged: str) -> None:
    low, high = np.array(zone.min_mm) * _M_PER_MM, np.array(zone.max_mm) * _M_PER_MM
    spec.worldbody.add_geom(
        name=f"{_OURS}{name}",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=list((high - low) / 2),
        pos=list((low + high) / 2),
        contype=0,
        conaffinity=0,
        mass=0,
        group=4,
        rgba=list(colour),
    )
    spec.add_sensor(
        name=f"{_OURS}{name}",
        type=mujoco.mjtSensor.mjSENS_GEOMDIST,
        objtype=mujoco.mjtObj.mjOBJ_GEOM,
        objname=judged,
        reftype=mujoco.mjtObj.mjOBJ_GEOM,
        refname=f"{_OURS}{name}",
        cutoff=_FAR_M,
    )


def _motor(model: Any, index: int, told: dict[str, Control]) -> Motor:
    """Raises SceneError for a control that the actuator cannot follow."""
    name = model.actuator(index).name
    control = told.get(name)
    limited = bool(model.actuator_forcelimited[index])
    low, high = (float(value) for value in model.actuator_forcerange[index])
    most = (low, high) if limited else None
    factor = 1.0
    if control is not None:
        servo = model.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_AFFINE
        if commands.is_position(control):
            if not servo:
                detail = f"{name!r} is told a position ({control.mode}) and is no position actuator"
                raise SceneError(f"{detail}. Make it one, or tell it a level")
            rotates = bool(_JOINT_KINDS.get(_joint_kind(model, index)))
            if wrong := commands.wrong_with(control, rotates=rotates):
                raise SceneError(f"{name!r} is told {wrong}")
            factor = float(np.pi / 180) if rotates else _M_PER_MM
        else:
            if servo or most is None:
                kind = "is a position actuator" if servo else "has no forcerange"
                detail = f"{name!r} is told a level ({control.mode}) and {kind}"
                raise SceneError(f"{detail}. Make it a motor with a forcerange")
            gain = float(model.actuator_gainprm[index][0]) or 1.0
            factor = most[1] / gain
    return Motor(index=index, name=name, control=control, to_model=factor, most=most)


def _joint_kind(model: Any, actuator: int) -> Any:
    joint = int(model.actuator_trnid[actuator][0])
    return mujoco.mjtJoint(int(model.jnt_type[joint])) if joint >= 0 else None


def _check_moving_parts(model: Any, parts: list[MovingPart]) -> None:
    """Raises SceneError when a part that moves is not there, or moves otherwise."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    joints = {model.joint(index).name: index for index in range(model.njnt)}
    actuators = {model.actuator(index).name for index in range(model.nu)}
    for part in parts:
        if part.name not in joints:
            detail = f"no joint is named {part.name!r}, which the objectives name as a moving part"
            raise SceneError(f"{detail}. Add it")
        index = joints[part.name]
        kind = _JOINT_KINDS.get(mujoco.mjtJoint(int(model.jnt_type[index])))
        axis = np.abs(data.xaxis[index])
        otherwise = kind is not part.dof.rotates or axis[_axis_of(part.dof)] < 1 - _PARALLEL
        if otherwise and not faults.on("dofs-unjudged"):
            detail = f"the joint {part.name!r} does not {part.dof.value}, as the objectives say"
            raise SceneError(f"{detail}. Turn it")
        if part.type is PartType.MOTOR and part.name not in actuators:
            detail = f"no actuator is named {part.name!r}, which the objectives name as a motor"
            raise SceneError(f"{detail}. Add it")


def _axis_of(dof: Dof) -> int:
    return "xyz".index(dof.value[-1])


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
