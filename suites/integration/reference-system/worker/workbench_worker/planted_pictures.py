"""Pictures made wrong on purpose (``workbench_foundation/faults.py``); without a fault nothing here does anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench_foundation import faults

if TYPE_CHECKING:
    from workbench_rendering.films import Take
    from workbench_rendering.pieces import Piece


def pieces(given: Sequence[Piece]) -> Sequence[Piece]:
    """What is shown in place of what is there."""
    if faults.on("render-mirrored"):
        return [dataclasses.replace(each, corners=each.corners * [1, -1, 1]) for each in given]
    if faults.on("render-colours-shared"):
        return [dataclasses.replace(each, colour=given[0].colour) for each in given]
    return given


def take(given: Take) -> Take:
    """What is shown in place of what was run."""
    if faults.on("video-without-end"):
        middle = (len(given.states) + 1) // 2
        # As long as it should be, but it stands still before the end.
        states = given.states.copy()
        states[middle:] = given.states[middle - 1]
        return dataclasses.replace(given, states=states)
    if faults.on("video-too-fast"):
        return dataclasses.replace(given, simulated_s=given.simulated_s / 2)
    return given
