"""Where the moved object starts, and how large it is: by variant, then by run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from workbench_contract.objectives import MovedObject
from workbench_foundation import faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The moved object as a run begins.

    Attributes:
        centre_mm: in the world.
        scale: of all its lengths.
    """

    centre_mm: tuple[float, float, float]
    scale: float


def start_of(moved: MovedObject, *, variant: str, seed: int) -> Start:
    """The same for the same variant and seed, on any machine.

    What a variant changes is the same in all its runs; what a run changes is the same in all variants.
    """
    digest = hashlib.sha256(variant.encode()).digest()
    static = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    runtime = np.random.default_rng(seed)
    if faults.on("variant-of-each-run"):
        static = np.random.default_rng([int.from_bytes(digest[:16], "big"), seed])
    spread = moved.static_randomization
    centre = np.array(moved.start_mm, dtype=float)
    centre += static.uniform(-1.0, 1.0, size=3) * np.array(spread.start_mm)
    scale = spread.scale.min + (spread.scale.max - spread.scale.min) * static.uniform()
    centre += runtime.uniform(-1.0, 1.0, size=3) * np.array(moved.runtime_jitter.start_mm)
    if faults.on("jitter-one-sided"):
        centre = np.maximum(centre, moved.start_mm)
    x, y, z = (float(value) for value in centre)
    return Start(centre_mm=(x, y, z), scale=float(scale))
