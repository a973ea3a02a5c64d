"""One run: stepped in one go by MuJoCo, judged at every step.

A run ends with the first step in which something ends it. Of several in one step instability wins, then a
forbid zone, then the goal, then the bounds, then a motor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

from workbench_contract.simulation import Outcome
from workbench_foundation import faults
from workbench_physics.commands import Floats
from workbench_physics.errors import SceneError
from workbench_physics.scene import Scene
from workbench_physics.trajectory import Track

#: From the middle of the world; what is further away has left a scene that has no bounds of its own.
_BOUND_M = 5.0
#: A run that ends is stepped further than it counts: by so many, or as many as it has taken, if they are fewer
#: than a piece has at most.
_STEPS_AT_FIRST = 200
_STEPS_AT_ONCE = 1000
#: A motor at its limit, as a share of it, and for how long until it is overloaded.
_LIMIT_SHARE = 0.99
_OVERLOAD_S = 2.0
#: For the planted fault `overload-of-all-runs` alone.
_loaded: dict[int, Any] = {}
#: Noise of adding up steps.
_EXACT = 1e-9
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
_UNSTABLE = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a run ended.

    Attributes:
        steps: that were taken.
        energy_j: kinetic and potential, at the end.
        track: all of it, or its last piece.
        goal_gap_mm: how near the object came to the goal; none without one, at least 0.
    """

    outcome: Outcome
    reason: str
    steps: int
    simulated_s: float
    energy_j: float
    track: Track
    goal_gap_mm: float | None


@dataclass(frozen=True, slots=True)
class _Ending:
    """What ended a run, and with which of the states that were looked at."""

    row: int
    outcome: Outcome
    reason: str


#: In one step the first of these wins.
_ORDER = (
    Outcome.INSTABILITY,
    Outcome.FORBID_HIT,
    Outcome.GOAL_HIT,
    Outcome.OUT_OF_BOUNDS,
    Outcome.MOTOR_OVERLOAD,
)


def steps_of(scene: Scene, duration_s: float) -> int:
    """How many steps a run takes if nothing ends it."""
    return max(1, round(duration_s / scene.model.opt.timestep))


def run(scene: Scene, data: Any, duration_s: float, *, recorded: bool = True) -> Run:
    """Step a scene until something ends it.

    Args:
        data: the state that it begins with.
        recorded: whether its whole track is kept, or the last state alone.

    Raises:
        SceneError: MuJoCo warns of what is no instability.
    """
    model = scene.model
    steps = steps_of(scene, duration_s)
    mujoco.mj_forward(model, data)
    state = np.empty(mujoco.mj_stateSize(model, _FULL))
    mujoco.mj_getState(model, data, state, _FULL)
    judge = _Judge(scene, recorded=recorded)
    ending = judge.first(state, data.sensordata)
    while ending is None and judge.steps < steps:
        count = min(_STEPS_AT_FIRST + judge.steps, _STEPS_AT_ONCE, steps - judge.steps)
        times = (judge.steps + np.arange(count)) * model.opt.timestep
        ending, state = judge.more(data, state, count, _controls(scene, times))
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    if ending is None:
        ending = _Ending(0, Outcome.TIMEOUT, f"nothing ended it within {duration_s:g} s")
    track = judge.track()
    return Run(
        outcome=ending.outcome,
        reason=ending.reason,
        steps=judge.steps,
        simulated_s=float(track.times_s[-1]),
        energy_j=float(data.energy[0] + data.energy[1]),
        track=track,
        goal_gap_mm=judge.goal_gap_mm(),
    )


def _controls(scene: Scene, times_s: Floats) -> Floats | None:
    """What the model's actuators are told at each of these times."""
    if not scene.motors:
        return None
    told = [motor.commanded(times_s) * motor.to_model for motor in scene.motors]
    return np.ascontiguousarray(np.column_stack(told))


class _Judge:
    """Looks at every state of one run, and records it.

    Attributes:
        steps: taken so far.
    """

    def __init__(self, scene: Scene, *, recorded: bool) -> None:
        self._recorded = recorded
        self.steps = 0
        self._scene = scene
        self._stepping = rollout.Rollout(nthread=0)
        self._warm: Floats | None = None
        self._times: list[Floats] = []
        self._positions: list[Floats] = []
        self._forces: list[Floats] = []
        self._joints: list[Floats] = []
        self._gap_m = math.inf
        self._loaded = np.zeros(len(scene.motors), dtype=int)
        if faults.on("overload-of-all-runs"):
            self._loaded = _loaded.setdefault(id(scene), self._loaded)

    def first(self, state: Floats, sensors: Floats) -> _Ending | None:
        """The state that a run begins with."""
        states, sensors = state[None], sensors[None].copy()
        ending = self._ended(states, sensors, np.empty((0, len(self._scene.motors))))
        self._keep(states, sensors, 1)
        return ending

    def more(
        self, data: Any, state: Floats, count: int, controls: Floats | None
    ) -> tuple[_Ending | None, Floats]:
        """Steps from a state on; afterwards ``data`` is at the last one that counts."""
        model = self._scene.model
        found, read = self._stepping.rollout(
            model,
            [data],
            state[None],
            None if controls is None else controls[None],
            nstep=count,
            initial_warmstart=self._warm,
        )
        # Else the solver begins anew, and where a run is cut would be seen in it.
        self._warm = data.qacc_warmstart[None].copy()
        states = found[0]
        done = _steps_done(model, data, states, float(state[0]))
        if done < count:
            wrong = [kind for kind in _UNSTABLE if data.warning[kind].number]
            if not wrong and np.isfinite(states[:done]).all():
                raise SceneError(_warned(data))
        # A step reads its sensors before it moves: those of its end are read by the next one, if that is taken.
        forces = read[0][:count, self._scene.forces]
        sensors = np.empty((count, model.nsensordata))
        sensors[:-1] = read[0][1:]
        if done:
            self._look(data, states[done - 1])
            sensors[done - 1] = data.sensordata
        ending = self._ended(states[:done], sensors[:done], forces[:done])
        if done < count and ending is None:
            at_s = float(state[0]) + done * model.opt.timestep
            reason = f"the physics became unstable at {at_s:.6g} s"
            ending = _Ending(done, Outcome.INSTABILITY, reason)
            if faults.on("instability-as-timeout"):
                ending = _Ending(done, Outcome.TIMEOUT, reason)
            self._keep(states[:done], sensors[:done], done, forces[:done])
            self.steps += done
            state = states[done - 1] if done else state
            self._look(data, state)
            return ending, state
        last = count if ending is None else ending.row + 1
        self._keep(states[:last], sensors[:last], last, forces[:last])
        self.steps += last
        if last < count:
            self._look(data, states[last - 1])
        return ending, states[last - 1].copy()

    def track(self) -> Track:
        """All that was looked at."""
        return Track(
            times_s=np.concatenate(self._times),
            positions_m=np.concatenate(self._positions),
            forces=np.concatenate(self._forces)
            if self._forces
            else np.empty((0, len(self._scene.motors))),
            joints=np.concatenate(self._joints),
        )

    def goal_gap_mm(self) -> float | None:
        """How near the object came to the goal."""
        return max(0.0, self._gap_m * 1e3) if self._scene.goal is not None else None

    def _look(self, data: Any, state: Floats) -> None:
        mujoco.mj_setState(self._scene.model, data, state, _FULL)
        mujoco.mj_forward(self._scene.model, data)

    def _keep(
        self, states: Floats, sensors: Floats, count: int, forces: Floats | None = None
    ) -> None:
        if not self._recorded and count:
            self._times.clear()
            self._positions.clear()
            self._forces.clear()
            self._joints.clear()
        self._times.append(states[:count, 0].copy())
        self._positions.append(sensors[:count, self._scene.positions].copy())
        # Of a state the time is first, then come the joints.
        self._joints.append(states[:count, 1 : 1 + self._scene.model.nq].copy())
        if forces is not None:
            self._forces.append(forces[:count].copy())
        if self._scene.goal is not None and count:
            self._gap_m = min(self._gap_m, float(sensors[:count, self._scene.goal].min()))

    def _ended(self, states: Floats, sensors: Floats, forces: Floats) -> _Ending | None:
        """The first ending among states, if there is one."""
        found = [
            each
            for each in (
                *self._zones(states, sensors),
                self._left(states, sensors),
                self._overloaded(states, forces),
            )
            if each is not None
        ]
        if faults.on("forbid-after-goal"):
            return min(found, key=lambda each: (each.row, each.outcome != Outcome.GOAL_HIT), default=None)
        return min(found, key=lambda each: (each.row, _ORDER.index(each.outcome)), default=None)

    def _zones(self, states: Floats, sensors: Floats) -> list[_Ending | None]:
        scene = self._scene
        if scene.goal is None:
            return []
        if faults.on("zones-judged-at-times"):
            sensors = np.where(np.arange(len(sensors))[:, None] % 50 == 0, sensors, np.inf)
        reached = _first(sensors[:, scene.goal] <= 0)
        endings = [_ending(reached, states, Outcome.GOAL_HIT, "the object came into the goal zone")]
        for name, column in scene.forbidden:
            entered = _first(sensors[:, column] < 0)
            reason = f"the object came into the forbid zone {name!r}"
            endings.append(_ending(entered, states, Outcome.FORBID_HIT, reason))
        return endings

    def _left(self, states: Floats, sensors: Floats) -> _Ending | None:
        scene = self._scene
        if scene.moved is None:
            far = np.abs(sensors[:, scene.positions]).max(axis=1, initial=0.0) > _BOUND_M
            return _ending(_first(far), states, Outcome.OUT_OF_BOUNDS, "a body left the scene")
        assert scene.bounds_m is not None
        low, high = _extent(scene, states)
        if faults.on("upper-bounds-unjudged"):
            high = low
        outside = ((low < scene.bounds_m[0]) | (high > scene.bounds_m[1])).any(axis=1)
        reason = "the object left the simulation's bounds"
        return _ending(_first(outside), states, Outcome.OUT_OF_BOUNDS, reason)

    def _overloaded(self, states: Floats, forces: Floats) -> _Ending | None:
        """The first motor that was at its limit for too long; in the step that makes it too long."""
        needed = math.ceil(_OVERLOAD_S / self._scene.model.opt.timestep - _EXACT)
        earliest: tuple[int, str] | None = None
        for motor in self._scene.motors:
            if motor.most is None or not len(forces):
                continue
            low, high = motor.most
            force = forces[:, motor.index]
            at_limit = ((high > 0) & (force >= _LIMIT_SHARE * high)) | (
                (low < 0) & (force <= _LIMIT_SHARE * low)
            )
            if faults.on("overload-one-way"):
                at_limit = (high > 0) & (force >= _LIMIT_SHARE * high)
            lengths = _lengths(at_limit, int(self._loaded[motor.index]))
            if faults.on("overload-without-rest"):
                lengths = np.cumsum(at_limit) + int(self._loaded[motor.index])
            self._loaded[motor.index] = lengths[-1]
            row = _first(lengths >= needed)
            if row is not None and (earliest is None or row < earliest[0]):
                earliest = (row, motor.name)
        if earliest is None:
            return None
        row, name = earliest
        if faults.on("overload-of-first-motor"):
            name = self._scene.motors[0].name
        reason = f"the motor {name!r} was at its limit for {_OVERLOAD_S:g} s"
        return _ending(row, states, Outcome.MOTOR_OVERLOAD, reason)


def _ending(row: int | None, states: Floats, outcome: Outcome, what: str) -> _Ending | None:
    if row is None:
        return None
    return _Ending(row, outcome, f"{what} at {float(states[row, 0]):.6g} s")


def _first(holds: Any) -> int | None:
    found = np.flatnonzero(holds)
    return int(found[0]) if len(found) else None


def _lengths(holds: Any, before: int) -> Any:
    """For each row how many rows in a row have held, with those before the first."""
    rows = np.arange(len(holds))
    last_not = np.maximum.accumulate(np.where(holds, -1 - before, rows))
    return rows - last_not


def _steps_done(model: Any, data: Any, states: Floats, begun_s: float) -> int:
    """Steps after which time went on and all numbers are numbers."""
    times = np.concatenate(([begun_s], states[:, 0]))
    sane = np.diff(times) > model.opt.timestep / 2
    # What MuJoCo takes for no number any more; NaN is not below it either.
    if not -mujoco.mjMAXVAL < states.min() <= states.max() < mujoco.mjMAXVAL:
        sane &= (np.abs(states) < mujoco.mjMAXVAL).all(axis=1)
    stopped = _first(~sane)
    if stopped is not None:
        return stopped
    if any(data.warning[kind].number for kind in _UNSTABLE):
        return len(states) - 1
    return len(states)


def _extent(scene: Scene, states: Floats) -> tuple[Floats, Floats]:
    """The box around the moved object in each state."""
    assert scene.moved is not None
    at, size, kind = scene.moved
    # Time is before the positions in a state.
    centre, turn = states[:, 1 + at : 4 + at], states[:, 4 + at : 8 + at]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        half = np.full_like(centre, 0 if faults.on("ball-leaves-by-centre") else size[0])
    else:
        axes = np.abs(_rotations(turn))
        if faults.on("bounds-of-unturned-object"):
            axes = np.abs(_rotations(turn[:1] * 0 + (1, 0, 0, 0))).repeat(len(turn), axis=0)
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            half = axes @ size
        else:
            along = axes[:, :, 2]
            across = np.sqrt(np.clip(1 - along**2, 0, None))
            half = along * size[1] + across * size[0]
    return centre - half, centre + half


def _rotations(turns: Floats) -> Floats:
    """Matrices of quaternions (w, x, y, z)."""
    w, x, y, z = (turns / np.linalg.norm(turns, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def _warned(data: Any) -> str:
    kinds = [
        mujoco.mjtWarning(number).name.removeprefix("mjWARN_")
        for number in range(mujoco.mjtWarning.mjNWARNING)
        if data.warning[number].number
    ]
    return f"MuJoCo warned of {' and '.join(kinds) or 'nothing'} and stopped. Make it smaller"
