"""What agents start from, and the marks by which a file shows that it is still that.

A value is a placeholder when the whole of it is one of ``MARKS``, in any case, or stands in ``<…>``,
``{{…}}`` or underscores. ``TODO`` within a sentence is a word of the sentence.
"""

from __future__ import annotations

from typing import Any

from workbench_contract.findings import Finding
from workbench_planning.strict_yaml import Document, Path
from workbench_planning.text import finding, shortened

#: Words that stand for what somebody has not written yet.
MARKS = frozenset(
    {"todo", "tbd", "fixme", "xxx", "fill in", "fill me in", "placeholder", "...", "…", "?", "???"}
)

PLAN = """\
## 1. Solution Overview

<what it does and how, in a few sentences>

## 2. Parts List

| id | description | quantity | unit_cost_usd | catalogue_version |
|---|---|---|---|---|
| `<id>` | <what it is> | <1> | <0.00> | <of a catalogue part> |

## 3. Assembly Strategy

1. <first step>

## 4. Cost & Weight Budget

| what | value |
|---|---|
| planner_target_max_unit_cost_usd | <0.00> |
| planner_target_max_weight_g | <0> |

## 5. Risk Assessment

- <what may go wrong, and what then>
"""

OBJECTIVES = """\
goal_zone: {min_mm: "<[x, y, z]>", max_mm: "<[x, y, z]>"}
forbid_zones:
  - {name: <name>, min_mm: "<[x, y, z]>", max_mm: "<[x, y, z]>"}
build_zone: {min_mm: "<[x, y, z]>", max_mm: "<[x, y, z]>"}
simulation_bounds: {min_mm: "<[x, y, z]>", max_mm: "<[x, y, z]>"}
moved_object:
  label: <name>
  shape: <sphere|box|cylinder>
  size: <radius_mm; x_mm, y_mm, z_mm; or radius_mm, height_mm>
  start_mm: "<[x, y, z]>"
  static_randomization: {start_mm: [0, 0, 0], scale: {min: 1, max: 1}}
  runtime_jitter: {start_mm: [0, 0, 0]}
moving_parts:
  - {name: <name>, type: <motor|passive>, dof: <rotate_x…slide_z>, control: <of a motor>}
constraints:
  max_unit_cost_usd: <0.00>
  max_weight_g: <0>
randomization:
  variant: <name>
  seeds: "<[0, 1, 2]>"
"""

ESTIMATE = """\
constraints:
  benchmark_max_unit_cost_usd: <0.00>
  benchmark_max_weight_g: <0>
  planner_target_max_unit_cost_usd: <0.00>
  planner_target_max_weight_g: <0>
manufactured_parts:
  - id: <id>
    method: <cnc|injection_moulding|print>
    material: <of manufacturing_config.yaml>
    quantity: <1>
    volume_mm3: <0>
    unit_cost_usd: <0.00>
    unit_weight_g: <0>
cots_parts:
  - part_id: <of the catalogue>
    quantity: <1>
    unit_cost_usd: <0.00>
    catalogue_version: <of the search>
    source: <of the search>
assembly:
  units: 1
  steps:
    - {parts: "<[ids]>", joint: <rigid|revolute|prismatic>}
totals:
  assembly_cost_usd: <0.00>
  unit_cost_usd: <0.00>
  weight_g: <0>
"""

REVIEW = """\
---
decision: <approved|rejected|confirm_plan_refusal|reject_plan_refusal>
evidence:
  images_viewed: []
  videos_viewed: []
  files_checked:
    - {path: <path>, sha256: <sha256>}
comments:
  - <what has to change>
---
"""

REFUSAL = """\
---
reason: <why the plan cannot be carried out>
proof:
  - {kind: <simulation|price>, id: <id of this episode>}
---
"""

TEMPLATES = {
    "plan.md": PLAN,
    "objectives.yaml": OBJECTIVES,
    "preliminary_cost_estimation.yaml": ESTIMATE,
    "review.md": REVIEW,
    "plan_refusal.md": REFUSAL,
}


def is_placeholder(text: str) -> bool:
    """Whether a text stands for one that is still to be written."""
    text = text.strip().strip("`").strip()
    if text.casefold() in MARKS:
        return True
    if text.startswith("<") and text.endswith(">") or text.startswith("{{") and text.endswith("}}"):
        return True
    return len(text) >= 2 and not text.strip("_")


def placeholders(document: Document, *, file: str) -> list[Finding]:
    """A finding for each placeholder of a document."""
    return [
        finding(file, document.where(path), shortened(text), "a value in the placeholder's place")
        for path, text in _texts(document.value, ())
        if is_placeholder(text)
    ]


def _texts(value: Any, path: Path) -> list[tuple[Path, str]]:
    """Every text of a document, with its path."""
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [each for key in value for each in _texts(value[key], (*path, key))]
    if isinstance(value, list):
        return [each for index, item in enumerate(value) for each in _texts(item, (*path, index))]
    return []
