"""The states of runs, kept so that they can be looked at later: written when they are run, a picture of none."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench_rendering.errors import RenderError
from workbench_rendering.pieces import Floats

SCENE = "scene.xml"
_MODEL = "scene.mjb"
_FILM = "film.json"

#: Pictures of a second; of a run that is long there are fewer.
RATE_HZ = 25.0
_MOST_FRAMES = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """One run of a film.

    Attributes:
        states: (n, positions of joints), evenly from its beginning to its end.
    """

    seed: int
    outcome: str
    reason: str
    simulated_s: float
    states: Floats


def rows_of(simulated_s: float, count: int) -> list[int]:
    """Which of ``count`` states of a run are pictures of it: the first, the last, and evenly between."""
    frames = max(2, min(_MOST_FRAMES, math.ceil(simulated_s * RATE_HZ - 1e-9)))
    if count < 2 or simulated_s <= 0:
        return [max(0, count - 1)]
    return [round(step * (count - 1) / (frames - 1)) for step in range(frames)]


class Film:
    """Runs of one scene, as they are written into a folder.

    Args:
        folder: made by whoever wants it kept.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._runs: list[dict[str, Any]] = []

    def scene(self, model: Any, xml: str) -> None:
        """The scene of all runs."""
        import mujoco

        (self._folder / SCENE).write_text(xml, encoding="utf-8")
        mujoco.mj_saveModel(model, str(self._folder / _MODEL), None)

    def add(self, take: Take) -> None:
        """One run more."""
        value = asdict(take)
        np.save(self._folder / f"run-{len(self._runs)}.npy", value.pop("states"))
        self._runs.append(value)

    def close(self) -> None:
        """The last word: without it there is no film."""
        text = json.dumps({"runs": self._runs}, ensure_ascii=False)
        (self._folder / _FILM).write_text(text, encoding="utf-8")


def read(folder: str, run: int) -> tuple[Any, Take]:
    """The model of a film, and one of its runs.

    Raises:
        RenderError: there is none.
    """
    import mujoco

    try:
        runs = json.loads((Path(folder) / _FILM).read_text(encoding="utf-8"))["runs"]
        if run >= len(runs):
            raise RenderError(f"there is no run {run}: it had {len(runs)}, the first is 0")
        model = mujoco.MjModel.from_binary_path(str(Path(folder) / _MODEL))
        states = np.load(Path(folder) / f"run-{run}.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise RenderError(f"what was kept of the run cannot be read: {error}") from error
    return model, Take(**runs[run], states=states)
