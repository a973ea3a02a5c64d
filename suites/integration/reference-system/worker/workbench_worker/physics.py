"""A session's model as a scene, let run by MuJoCo: an MJCF file, or a solid dropped onto a floor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from workbench_contract.objectives import Control, Objectives
from workbench_contract.simulation import SimulatedRun
from workbench_physics.errors import SceneError
from workbench_worker.geometry import ModelError
from workbench_worker.walls import WORKSPACE

if TYPE_CHECKING:
    from workbench_physics.scene import Scene
    from workbench_physics.trajectory import Track

_CONTROLS = TypeAdapter(dict[str, Control])

_STEP_S = 0.002
#: From the middle of the floor; what is further away has left the scene.
_BOUND_M = 5.0
_START_M = 0.05


#: Of a part whose material nobody has named: aluminium.
DENSITY_KG_M3 = 2700.0


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


def compiled(model: str, density_kg_m3: float = DENSITY_KG_M3) -> Any:
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


class Filming:
    """Keeps what is shown of each run; nothing of it is a picture yet.

    Args:
        folder: is made.
    """

    def __init__(self, folder: str) -> None:
        # Imported by the warm process, once it has told that it begins.
        from workbench_rendering.films import Film

        os.mkdir(folder)
        self._film = Film(folder)
        self._begun = False

    def __call__(self, scene: Scene, run: SimulatedRun, track: Track) -> None:
        """One run."""
        from workbench_rendering.films import Take, rows_of

        if not self._begun:
            self._film.scene(scene.model, scene.spec.to_xml())
            self._begun = True
        rows = rows_of(run.simulated_s, len(track.joints))
        self._film.add(
            Take(
                seed=run.seed,
                outcome=run.outcome.value,
                reason=run.reason,
                simulated_s=run.simulated_s,
                states=track.joints[rows],
            )
        )

    def close(self) -> None:
        """All of them were shown."""
        self._film.close()


def simulate(
    model: str,
    *,
    variant: str,
    seed: int,
    runs: int,
    duration_s: float,
    controls: dict[str, Any],
    objectives: str | None = None,
    kept_in: str | None = None,
    design: str | None = None,
    filmed_in: str | None = None,
) -> dict[str, Any]:
    """Let a model run, and judge every step of each run.

    Args:
        controls: by the name of their actuator, as JSON.
        objectives: as JSON; none for a model that has no goal.
        kept_in: where each run leaves its file, below the session's files.
        design: what is let run in place of the model's file: the scene of its design.
        filmed_in: a folder that is made, for what videos of those runs are made of.

    Raises:
        ModelError: it cannot be run.
    """
    # Imported by the warm process, once it has told that it begins.
    from workbench_physics.simulate import simulate as runs_of

    name = os.path.basename(model)
    try:
        if design is None:
            with open(model, encoding="utf-8") as file:
                xml = file.read()
        film = Filming(filmed_in) if filmed_in else None
        found = runs_of(
            xml if design is None else design,
            objectives=Objectives.model_validate_json(objectives, strict=False)
            if objectives
            else None,
            variant=variant,
            seed=seed,
            count=runs,
            duration_s=duration_s,
            controls=_CONTROLS.validate_python(controls),
            kept_in=(f"{WORKSPACE}/{kept_in}", kept_in) if kept_in else None,
            as_one=design is not None,
            seen=film,
        )
        if film is not None:
            film.close()
        return found
    except UnicodeDecodeError as error:
        raise ModelError(f"cannot simulate {name}: {error}. Correct it") from error
    except SceneError as error:
        raise ModelError(f"cannot simulate {name}: {error}") from error
