"""A model dropped onto a floor, by MuJoCo.

MuJoCo resets a simulation that has become unstable and goes on; here that is switched off, and its
warnings end the run.
"""

from __future__ import annotations

import os
from typing import Any

from workbench_contract.simulation import Outcome
from workbench_worker.geometry import ModelError

_STEP_S = 0.002
#: From the middle of the floor; what is further away has left the scene.
_BOUND_M = 5.0
_JITTER_M = 0.02
_START_M = 0.05
_STEPS_AT_ONCE = 50


#: Of a part whose material nobody has named: aluminium.
_DENSITY_KG_M3 = 2700.0


def scene_of_mesh(path: str, density_kg_m3: float) -> tuple[str, dict[str, bytes]]:
    """An MJCF scene around one mesh in millimetres, and its assets."""
    with open(path, "rb") as file:
        mesh = file.read()
    xml = f"""
    <mujoco model="part">
      <option timestep="{_STEP_S}"/>
      <asset><mesh name="part" file="part.stl" scale="0.001 0.001 0.001"/></asset>
      <worldbody>
        <geom name="floor" type="plane" size="{_BOUND_M} {_BOUND_M} 0.1"/>
        <body name="part" pos="0 0 {_START_M}">
          <freejoint name="free"/>
          <geom type="mesh" mesh="part" density="{density_kg_m3:.9g}"/>
        </body>
      </worldbody>
    </mujoco>
    """
    return xml, {"part.stl": mesh}


def compiled(model: str, density_kg_m3: float = _DENSITY_KG_M3) -> Any:
    """A compiled model of an ``.stl`` or ``.xml`` file.

    Raises:
        ModelError: MuJoCo does not take it.
    """
    import mujoco

    try:
        if model.endswith(".stl"):
            xml, assets = scene_of_mesh(model, density_kg_m3)
            return mujoco.MjModel.from_xml_string(xml, assets)
        with open(model, encoding="utf-8") as file:
            return mujoco.MjModel.from_xml_string(file.read())
    except (ValueError, UnicodeDecodeError) as error:
        name = os.path.basename(model)
        raise ModelError(f"cannot compile {name}: {' '.join(str(error).split())}. Correct it") from error


def validate(model: str) -> dict[str, Any]:
    """Whether MuJoCo takes a model."""
    return {"bodies": int(compiled(model).nbody) - 1}


def simulate(
    model: str, seed: int, duration_s: float, density_kg_m3: float = _DENSITY_KG_M3
) -> dict[str, Any]:
    """Step a model for a time; the seed jitters where its free bodies begin.

    Args:
        density_kg_m3: of what is no scene but a mesh.
    """
    import mujoco
    import numpy as np

    scene = compiled(model, density_kg_m3)
    scene.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    scene.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(scene)
    random = np.random.default_rng(seed)
    for joint in range(scene.njnt):
        if scene.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            at = scene.jnt_qposadr[joint]
            data.qpos[at : at + 2] += random.uniform(-_JITTER_M, _JITTER_M, size=2)
    outcome, reason = Outcome.TIMEOUT, f"nothing ended it within {duration_s:g} s"
    unstable = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL,
                mujoco.mjtWarning.mjWARN_BADQACC)  # fmt: skip
    left, steps = max(1, round(duration_s / scene.opt.timestep)), 0
    while left > 0:
        count = min(left, _STEPS_AT_ONCE)
        mujoco.mj_step(scene, data, nstep=count)
        steps, left = steps + count, left - count
        if any(data.warning[kind].number for kind in unstable):
            outcome, reason = Outcome.INSTABILITY, f"the physics became unstable at {data.time:.3f} s"
            break
        if scene.nbody > 1 and float(np.abs(data.xpos[1:]).max()) > _BOUND_M:
            outcome, reason = Outcome.OUT_OF_BOUNDS, f"a body left the scene at {data.time:.3f} s"
            break
    mujoco.mj_energyPos(scene, data)
    mujoco.mj_energyVel(scene, data)
    bodies = [
        {"name": scene.body(index).name or f"body-{index}", "position_m": _finite(data.xpos[index])}
        for index in range(1, scene.nbody)
    ]
    return {
        "outcome": outcome.value,
        "reason": reason,
        "steps": steps,
        "simulated_s": round(float(data.time), 6),
        "energy_j": _finite([data.energy[0] + data.energy[1]])[0],
        "bodies": bodies,
    }


def _finite(values: Any) -> list[float]:
    """JSON has no infinity; what is not a number shows in the outcome."""
    import math

    return [round(float(v), 9) if math.isfinite(v) else 0.0 for v in values]
