"""An environment beside its objectives over the whole randomization: what the fork of the worker says."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from build123d import Box, Pos, Shell, export_brep
from workbench_contract.benchmark import ConfigurationKind, ValidationFinding
from workbench_contract.objectives import Objectives
from workbench_worker.validation import validate_environment

_GIVEN, _CORNER, _SAMPLE = ConfigurationKind


def objectives(**moved: Any) -> str:
    """A cube of 2 mm that starts within ±3 mm, at most 3 mm large."""
    value = {
        "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [90, 10, 20]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
        "simulation_bounds": {"min_mm": [-100, -100, -100], "max_mm": [100, 100, 100]},
        "moved_object": {
            "label": "cube",
            "shape": "box",
            "size": {"x_mm": 2, "y_mm": 2, "z_mm": 2},
            "start_mm": [0.1, 0, 0],
            "static_randomization": {"start_mm": [2, 2, 2], "scale": {"min": 1, "max": 1.5}},
            "runtime_jitter": {"start_mm": [1, 1, 1]},
            **moved,
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50, "max_weight_g": 1200},
        "randomization": {"variant": "v", "seeds": [1]},
    }
    return Objectives.model_validate(value, strict=False).model_dump_json()


#: Nothing of it varies.
STILL = {"static_randomization": {}, "runtime_jitter": {}}


def judged(
    folder: Path, solids: dict[str, Any], *, samples: int = 0, seed: int = 0, **moved: Any
) -> list[ValidationFinding]:
    """The findings about solids, by their names."""
    for number, each in enumerate(solids.values()):
        export_brep(each, str(folder / f"part-{number}.brep"))
    found = validate_environment(
        str(folder),
        list(solids),
        objectives(**moved),
        script="environment/geometry.py",
        file="objectives.yaml",
        samples=samples,
        seed=seed,
    )
    assert len(solids) >= found["bodies"]
    return [ValidationFinding.model_validate(each) for each in found["findings"]]


def between(low: Any, high: Any) -> Any:
    """A box."""
    sides = [most - least for least, most in zip(low, high, strict=True)]
    middle = [(most + least) / 2 for least, most in zip(low, high, strict=True)]
    return Pos(*middle) * Box(*sides)


def post(signs: Any, nearest: float) -> Any:
    """A box in an octant, from so far from the start in each axis."""
    ends = [(sign * nearest + (0.1 if axis == 0 else 0), sign * 20) for axis, sign in enumerate(signs)]
    return between([min(each) for each in ends], [max(each) for each in ends])


OCTANTS = list(itertools.product((-1, 1), repeat=3))


@pytest.mark.parametrize("signs", OCTANTS)
def test_one_corner_alone(tmp_path: Path, signs: Any) -> None:
    """What the object meets at one corner, large as it can be, is found there and nowhere else."""
    # 2 and 1 away, half of 2 × 1.5: up to 4.5 from the start.
    (found,) = judged(tmp_path, {"post": post(signs, 4)})
    (at,) = found.configurations

    assert (_CORNER, [3 * sign for sign in signs], 1.5, 1) == (at.kind, at.offset_mm, at.scale, found.count)
    assert "cube shares 0.125 mm³ with post" in found.found
    assert ("objectives.yaml", "moved_object.start_mm") == (found.file, found.where)


def test_touching_all_corners(tmp_path: Path) -> None:
    """What the object touches at its corners, and no more, leaves it room."""
    assert [] == judged(tmp_path, {f"post-{n}": post(signs, 4.5) for n, signs in enumerate(OCTANTS)})


@pytest.mark.parametrize(
    "less",
    [
        {"runtime_jitter": {}},
        {"static_randomization": {"scale": {"min": 1, "max": 1.5}}},
        {"static_randomization": {"start_mm": [2, 2, 2], "scale": {"min": 1, "max": 1.05}}},
    ],
)
def test_all_that_varies_adds_up(tmp_path: Path, less: Any) -> None:
    """Without its jitter, its variants, or its largest size, the object leaves the same post alone."""
    assert [] == judged(tmp_path, {"post": post((1, -1, 1), 4.02)}, **less)
    assert ["objectives.yaml"] == [each.file for each in judged(tmp_path, {"post": post((1, -1, 1), 4.02)})]


def test_between_the_corners(tmp_path: Path) -> None:
    """A thin plate between the corners is met by samples, and each says where; the same seed, the same ones."""
    plate = {"plate": between((1.7, -20, -20), (1.8, 20, 20))}
    wide = {"static_randomization": {"start_mm": [20, 2, 2]}}

    assert [] == judged(tmp_path, plate, **wide)
    (found,) = judged(tmp_path, plate, samples=100, seed=7, **wide)
    assert {_SAMPLE} == {each.kind for each in found.configurations}
    assert found.count >= len(found.configurations) > 0
    for each in found.configurations:
        assert abs(0.1 + each.offset_mm[0] - 1.75) < 1.05
        start = [0.1 + each.offset_mm[0], *each.offset_mm[1:]]
        assert judged(tmp_path, plate, start_mm=start, **STILL)
    assert [found] == judged(tmp_path, plate, samples=100, seed=7, **wide)
    (other,) = judged(tmp_path, plate, samples=100, seed=8, **wide)
    assert other.configurations != found.configurations


def test_as_it_is_given(tmp_path: Path) -> None:
    """What the object meets where it is given is found without a sample."""
    (found,) = judged(tmp_path, {"bead": between((0, -0.5, -0.5), (0.2, 0.5, 0.5))})

    assert [_GIVEN] == [each.kind for each in found.configurations]


def test_inside_and_without_range(tmp_path: Path) -> None:
    """An object within a solid is said to start inside it, however small it is."""
    for size in (2, 0.02):
        edges = {"x_mm": size, "y_mm": size, "z_mm": size}
        (found,) = judged(tmp_path, {"rock": Box(9, 9, 9)}, size=edges, **STILL)
        assert "cube starts inside rock" in found.found


def test_solids_by_themselves(tmp_path: Path) -> None:
    """Solids beyond the bounds, within each other, or open are found by the script's name, wherever it starts."""
    sound = {"wall": between((20, 0, 0), (30, 10, 10)), "floor": between((-100, -100, -100), (100, 100, -20))}
    assert [] == judged(tmp_path, sound)
    found = judged(
        tmp_path,
        {
            "far": between((50, 0, 0), (100.01, 10, 10)),
            "open": Shell(Box(5, 5, 5).faces()[:5]),
            **sound,
            "wall ": between((29.99, 0, 0), (40, 10, 10)),
        },
    )
    assert {"environment/geometry.py"} == {each.file for each in found}
    assert {"far.max_mm.x", "open", "wall"} == {each.where for each in found}
    assert [0] * len(found) == [each.count for each in found]


def test_bounded(tmp_path: Path) -> None:
    """One solid that is met at each of a thousand starts is one finding, which shows a few of them."""
    (found,) = judged(tmp_path, {"rock": Box(90, 90, 90)}, samples=300, **STILL)

    assert 302 == found.count
    assert 20 == len(found.configurations)
