"""What a motor is told at each moment: the controller functions.

A level is a share of what the motor can do, with its sign. A position is in degrees where the part
rotates, in millimetres where it slides.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench_contract.objectives import (
    Constant,
    Control,
    Hold,
    Oscillate,
    Position,
    Sinusoidal,
    Square,
    Trapezoidal,
    Waypoint,
)
from workbench_foundation import faults

Floats = npt.NDArray[np.float64]

_FULL_DEG = 360.0


def is_position(control: Control) -> bool:
    """Whether a controller says where to be, and not how much to push."""
    return isinstance(control, Waypoint | Hold | Oscillate)


def wrong_with(control: Control, *, rotates: bool) -> str | None:
    """What keeps a part from following a position; nothing of one that it can, and of levels.

    Args:
        rotates: whether it takes degrees, and not millimetres.
    """
    unit, other = ("deg", "mm") if rotates else ("mm", "deg")
    match control:
        case Hold():
            positions: list[Position] = [control.position]
        case Waypoint():
            positions = [*control.waypoints]
            times = [each.at_s for each in control.waypoints]
            for before, after in itertools.pairwise(times):
                if after <= before:
                    return f"waypoints at {before:g} s and then at {after:g} s. Let times rise"
        case Oscillate():
            positions = [control.low, control.high]
        case _:
            return None
    for position in positions:
        if getattr(position, unit) is None or getattr(position, other) is not None:
            given = [key for key in ("deg", "mm") if getattr(position, key) is not None]
            return f"a position in {' and '.join(given) or 'no unit'}. Give {unit} alone"
    if isinstance(control, Oscillate) and _value(control.low) >= _value(control.high):
        return "an oscillation whose low is not below its high. Turn them round"
    return None


def commanded(control: Control, times_s: Floats) -> Floats:
    """The command at each time, as it was configured: a share, or degrees or millimetres."""
    match control:
        case Constant():
            return np.full_like(times_s, control.level)
        case Sinusoidal():
            phase = 0.0 if faults.on("phase-ignored") else math.radians(control.phase_deg)
            return control.level * np.sin(2 * math.pi * times_s / control.period_s + phase)
        case Square():
            share = _share_of_period(times_s, control.period_s)
            return np.where(share < control.duty, control.level, -control.level)
        case Trapezoidal():
            return _trapezoid(control, times_s)
        case Hold():
            return np.full_like(times_s, _value(control.position))
        case Waypoint():
            at = [each.at_s for each in control.waypoints]
            if faults.on("waypoints-jump"):
                last = np.searchsorted(at, times_s, side="right").clip(1) - 1
                return np.array([_value(each) for each in control.waypoints])[last]
            return np.interp(times_s, at, [_value(each) for each in control.waypoints])
        case Oscillate():
            low, high = _value(control.low), _value(control.high)
            middle, swing = (low + high) / 2, (high - low) / 2
            return middle + swing * np.sin(2 * math.pi * times_s / control.period_s)


def _share_of_period(times_s: Floats, period_s: float) -> Floats:
    """How far into its period each time is, from 0 to below 1; a border is not missed by rounding."""
    shares: Floats = np.round(np.mod(times_s / period_s, 1.0), 9)
    return np.where(shares < 1.0, shares, 0.0)


def _trapezoid(control: Trapezoidal, times_s: Floats) -> Floats:
    begin = control.rise_s + control.hold_s
    end = begin + control.fall_s
    at = [0.0, control.rise_s, begin, end]
    return np.interp(times_s, at, [0.0, control.level, control.level, 0.0])


def _value(position: Position | Any) -> float:
    value = position.deg if position.mm is None else position.mm
    assert value is not None
    return float(value)
