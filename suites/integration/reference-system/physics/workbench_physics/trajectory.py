"""A run as a file: where each body was, what each motor was told and what it did, at every step.

CSV, UTF-8, a line per step, the first at time 0. Numbers are written so that they read as the same
float. What a motor did in a step stands in the line the step began with; the last line has none.
"""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench_foundation import faults
from workbench_physics.commands import Floats
from workbench_physics.errors import SceneError
from workbench_physics.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """What was recorded of a run; a row per state, the first at time 0.

    Attributes:
        times_s: of each state.
        positions_m: of all bodies, three each.
        forces: of all motors; a row less than there are states.
        joints: where each joint stands, as the model has them.
    """

    times_s: Floats
    positions_m: Floats
    forces: Floats
    joints: Floats


def header(scene: Scene) -> list[str]:
    """Names of the columns."""
    names = ["time_s"]
    names += [f"{body}.{axis}_m" for body in scene.bodies for axis in "xyz"]
    names += [f"{motor.name}.{what}" for motor in scene.motors for what in ("command", "force")]
    return names


def write(path: str, scene: Scene, track: Track) -> str:
    """Write a run's file.

    Returns:
        Its sha256.

    Raises:
        SceneError: there is no room for it.
    """
    steps = len(track.forces)
    told = [motor.commanded(track.times_s[:steps]) for motor in scene.motors]
    if faults.on("commands-of-first-run") and not path.endswith("run-0.csv"):
        told = [np.zeros(steps) for _ in scene.motors]
    done = [column for pair in zip(told, track.forces.T, strict=True) for column in pair]
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(header(scene))
            driven = np.column_stack(done).tolist() if done else [[]] * steps
            places = track.positions_m.tolist()
            for row, time_s in enumerate(track.times_s.tolist()):
                motors = driven[row] if row < steps else [""] * len(done)
                lines.writerow([time_s, *places[row], *motors])
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        name = os.path.basename(path)
        raise SceneError(f"{name} cannot be written: {error.strerror}. Ask for less time") from error
