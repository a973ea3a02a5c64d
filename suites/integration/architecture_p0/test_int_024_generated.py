"""INT-024: blocks anywhere, against a judge of boxes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from harness_core.doubles.http import HttpClient
from suites.integration.sampling import for_all
from suites.integration.sessions import new_session
from suites.integration.validating import (
    SIGNS,
    findings_about,
    leave_benchmark,
    objectives_with,
    script_of,
    told_of,
    validated_by,
)

pytestmark = [pytest.mark.covers("INT-024"), pytest.mark.integration_p0]


# --- an independent judge of boxes -------------------------------------------------------------------------

_TO: Final = 60


_CORNER = st.tuples(*[st.integers(-64, 50)] * 3)


_SIDES = st.tuples(*[st.integers(1, 25)] * 3)


_NEAR = st.tuples(*[st.integers(-12, 12)] * 3)


_BLOCKS = st.lists(st.tuples(st.one_of(_CORNER, _NEAR, _NEAR), _SIDES), min_size=5, max_size=9)


_EXAMPLES = st.fixed_dictionaries(
    {
        "blocks": _BLOCKS,
        "start": st.tuples(*[st.integers(-5, 5)] * 3),
        "half": st.tuples(*[st.integers(1, 3)] * 3),
        "static": st.tuples(*[st.integers(0, 6)] * 3),
        "jitter": st.tuples(*[st.integers(0, 3)] * 3),
        "largest": st.integers(1, 2),
    }
)


_Intervals = list[tuple[int, int]]


def _met(one: _Intervals, other: _Intervals) -> bool:
    """Whether two boxes have volume in common: all numbers are whole, so that is 1 mm³ or none."""
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def _object(example: Mapping[str, Any], signs: Sequence[int], scale: int) -> _Intervals:
    """The object at a corner of its range."""
    found = []
    for axis, sign in enumerate(signs):
        at = example["start"][axis] + sign * (example["static"][axis] + example["jitter"][axis])
        half = example["half"][axis] * scale
        found.append((at - half, at + half))
    return found


def _swept(corners: Sequence[_Intervals]) -> _Intervals:
    return [
        (min(each[axis][0] for each in corners), max(each[axis][1] for each in corners))
        for axis in range(3)
    ]


async def test_int_024_a_judge_of_boxes_agrees(worker: HttpClient) -> None:
    """Over many boxes: pairs that meet, boxes beyond the bounds, and what the object meets at a corner are found.

    Nothing else is, but what lies within the range and at no corner, which may be.
    """
    session = new_session(worker)

    async def agrees(example: Mapping[str, Any]) -> None:
        boxes: dict[str, _Intervals] = {
            f"block{number}.": [(a, a + side) for a, side in zip(low, sides, strict=True)]
            for number, (low, sides) in enumerate(example["blocks"])
        }
        script = script_of({name: tuple(zip(*box, strict=True)) for name, box in boxes.items()})
        moved = {
            "start_mm": list(example["start"]),
            "size": dict(
                zip(("x_mm", "y_mm", "z_mm"), (2 * n for n in example["half"]), strict=True)
            ),
            "static_randomization": {
                "start_mm": list(example["static"]),
                "scale": {"min": 1, "max": example["largest"]},
            },
            "runtime_jitter": {"start_mm": list(example["jitter"])},
        }
        objectives = objectives_with(**moved) | {
            "goal_zone": {"min_mm": [50, 50, 50], "max_mm": [_TO, _TO, _TO]},
            "build_zone": {"min_mm": [30, 30, 30], "max_mm": [40, 40, 40]},
            "simulation_bounds": {"min_mm": [-_TO] * 3, "max_mm": [_TO] * 3},
        }
        await leave_benchmark(session, script=script, objectives=objectives)
        found = await validated_by(session)
        told = [told_of(each) for each in found.findings]
        corners = [
            _object(example, signs, scale) for signs in SIGNS for scale in {1, example["largest"]}
        ]
        allowed = []
        for one, other in itertools.combinations(boxes, 2):
            if _met(boxes[one], boxes[other]):
                allowed.append((one, other))
                assert any(one in text and other in text for text in told), (
                    f"expected {one} and {other} to be found, which meet: {told}"
                )
        for name, box in boxes.items():
            if any(low < -_TO or high > _TO for low, high in box):
                allowed.append((name, "mm"))
                assert any(name in text and str(_TO) in text for text in told), (
                    f"expected {name} to be found beyond the bounds: {told}"
                )
            must = any(_met(box, at) for at in corners)
            assert not must or findings_about(found, "crate", name), (
                f"expected crate and {name} to be found, which meet at a corner: {told}"
            )
            if must or _met(box, _swept(corners)):
                allowed.append(("crate", name))
        strange = [
            text for text in told if not any(all(name in text for name in pair) for pair in allowed)
        ]
        assert not strange, f"findings about what does not meet: {strange}"

    await for_all(_EXAMPLES, agrees, most=5)
