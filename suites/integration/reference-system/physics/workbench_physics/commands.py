"""What a motor is told at each moment: the controller functions.

A level is a share of what the motor can do, with its sign. A position is in degrees where the part
rotates, in millimetres where it slides.
"""

from __future__ import annotations

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

Floats = npt.NDArray[np.float64]

_FULL_DEG = 360.0


def is_position(control: Control) -> bool:
    """Whether a controller says where to be, and not how much to push."""
    return isinstance(control, Waypoint | Hold | Oscillate)


def commanded(control: Control, times_s: Floats) -> Floats:
    """The command at each time, as it was configured: a share, or degrees or millimetres."""
    match control:
        case Constant():
            return np.full_like(times_s, control.level)
        case Sinusoidal():
            phase = math.radians(control.phase_deg)
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
            return np.interp(times_s, at, [_value(each) for each in control.waypoints])
        case Oscillate():
            low, high = _value(control.low), _value(control.high)
            middle, swing = (low + high) / 2, (high - low) / 2
            return middle + swing * np.sin(2 * math.pi * times_s / control.period_s)


def _share_of_period(times_s: Floats, period_s: float) -> Floats:
    """How far into its period each time is, from 0 to below 1; a border is not missed by rounding."""
    shares: Floats = np.mod(np.round(times_s / period_s, 9), 1.0)
    return shares


def _trapezoid(control: Trapezoidal, times_s: Floats) -> Floats:
    begin = control.rise_s + control.hold_s
    end = begin + control.fall_s
    at = [0.0, control.rise_s, begin, end]
    return np.interp(times_s, at, [0.0, control.level, control.level, 0.0])


def _value(position: Position | Any) -> float:
    value = position.deg if position.mm is None else position.mm
    assert value is not None
    return float(value)
