"""Where the moved object starts, and how large it is: by variant, then by run."""

from __future__ import annotations

import hashlib

import numpy as np

from workbench_contract.objectives import MovedObject
from workbench_foundation import faults


def scale_of(moved: MovedObject, *, variant: str) -> float:
    """Factor of all lengths of the moved object; the same in all runs of a variant."""
    spread = moved.static_randomization.scale
    drawn = _of_variant(variant).uniform(-1.0, 1.0, size=4)[3]
    return float(spread.min + (spread.max - spread.min) * (1 + drawn) / 2)


def start_of(moved: MovedObject, *, variant: str, seed: int) -> tuple[float, float, float]:
    """Centre of the moved object as a run begins, in millimetres.

    The same for the same variant and seed, on any machine. What a variant changes is the same in all its
    runs; what a run changes is the same in all variants.
    """
    static, runtime = _of_variant(variant), np.random.default_rng(seed)
    if faults.on("variant-of-each-run"):
        static = np.random.default_rng(seed + 1)
    of_variant = static.uniform(-1.0, 1.0, size=4)[:3]
    of_run = runtime.uniform(-1.0, 1.0, size=3)
    if faults.on("variants-on-a-diagonal"):
        of_variant[:] = of_variant[0]
    if faults.on("jitter-on-a-diagonal"):
        of_run[:] = of_run[0]
    centre = np.array(moved.start_mm, dtype=float)
    centre += of_variant * moved.static_randomization.start_mm
    centre += of_run * moved.runtime_jitter.start_mm
    if faults.on("jitter-one-sided"):
        centre = np.maximum(centre, moved.start_mm)
    x, y, z = (float(value) for value in centre)
    return x, y, z


def _of_variant(variant: str) -> np.random.Generator:
    digest = hashlib.sha256(variant.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
