"""A benchmark's package is whole and agrees with itself, or it is said what it lacks."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import yaml

from workbench_contract.objectives import Objectives
from workbench_contract.package import INDEX, JITTER, MOVING_PARTS, VIEWS
from workbench_planning import package

_OBJECTIVES: dict[str, Any] = {
    "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [100, 10, 20]},
    "forbid_zones": [],
    "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
    "simulation_bounds": {"min_mm": [-50, -50, -10], "max_mm": [150, 50, 100]},
    "moved_object": {
        "label": "ball",
        "shape": "sphere",
        "size": {"radius_mm": 5},
        "start_mm": [10, 0, 40],
        "runtime_jitter": {"start_mm": [1, 1, 0.5]},
    },
    "moving_parts": [{"name": "gate", "type": "passive", "dof": "slide_z"}],
    "constraints": {"max_unit_cost_usd": 50, "max_weight_g": 1200},
    "randomization": {"variant": "v", "seeds": [1]},
}
_SOLIDS = [{"name": "wall", "volume_mm3": 8.0, "min_mm": [0.0] * 3, "max_mm": [2.0] * 3}]


def _whole(views: int = 24) -> dict[str, bytes]:
    """All files of a hand-over, with its package."""
    pictures = {f"{VIEWS}/{number}.png": bytes([number]) for number in range(views)}
    listed = [
        {
            "path": path,
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_bytes": len(data),
            "yaw_deg": float(number),
            "pitch_deg": 0.0,
        }
        for number, (path, data) in enumerate(pictures.items())
    ]
    drawing = {
        "left_px": 0,
        "top_px": 0,
        "width_px": 9,
        "height_px": 9,
        "mm_per_px": 1.0,
        "centre_mm": [0.0, 0.0, 0.0],
        "background": "#ffffff",
    }
    about = {
        "design_sha256": "0" * 64,
        "triangles": 12,
        "width_px": 9,
        "height_px": 9,
        "drawing": drawing,
        "parts": [],
        "views": listed,
    }
    data = yaml.safe_dump(_OBJECTIVES).encode()
    objectives = Objectives.model_validate(_OBJECTIVES, strict=False)
    made = package.put_together(data, objectives, _SOLIDS, about, pictures)
    return {"objectives.yaml": data, **made}


def test_a_whole_package_lacks_nothing() -> None:
    """What is put together is whole."""
    assert [] == package.lacking(_whole(), _SOLIDS)


@pytest.mark.parametrize("path", sorted(_whole()))
def test_each_file_is_missed(path: str) -> None:
    """Without any one of its files, and with other bytes in place of it, it is not whole."""
    files = _whole()
    changed = {**files, path: files[path] + b" "}
    del files[path]

    assert any(path in each for each in package.lacking(files, _SOLIDS))
    assert package.lacking(changed, _SOLIDS) or path == INDEX


def test_a_view_less_is_missed() -> None:
    """23 views are no package, even where their list has no more."""
    assert [f"{VIEWS}: 23 of 24"] == package.lacking(_whole(23), _SOLIDS)


def test_files_that_say_otherwise_are_found() -> None:
    """A digest that fits does not help what does not agree with the objectives, or with the solids."""
    files = _whole()
    index = json.loads(files[INDEX])
    for key, path in (("moving_parts", MOVING_PARTS), ("jitter", JITTER)):
        other = {**files, path: files[path].replace(b"1", b"2").replace(b"gate", b"door")}
        told = {"sha256": hashlib.sha256(other[path]).hexdigest(), "size_bytes": len(other[path])}
        other[INDEX] = json.dumps({**index, key: {**index[key], **told}}).encode()

        assert [path] == package.lacking(other, _SOLIDS)
    moved = [{**_SOLIDS[0], "volume_mm3": 9.0}]
    assert ["environment/package/geometry.json"] == package.lacking(files, moved)
