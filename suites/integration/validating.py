"""Benchmarks whose solids are validated: blocks in numbers, what is asked, and what is found of them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import yaml
from workbench_contract.benchmark import (
    Validated,
    ValidateRequest,
    ValidationFinding,
)
from workbench_contract.findings import Finding
from workbench_contract.handover import GEOMETRY
from workbench_contract.objectives import Objectives

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from suites.integration.bundles import OBJECTIVES
from suites.integration.sessions import Session

__all__ = [
    "BUILT_S",
    "REACH",
    "SIGNS",
    "SPREAD",
    "START",
    "STILL",
    "Block",
    "Point",
    "ask_validation",
    "block_between",
    "expect_pairs",
    "findings_about",
    "leave_benchmark",
    "objectives_with",
    "script_of",
    "told_of",
    "validated_by",
]


#: An environment is built and measured.
BUILT_S: Final = 60.0


Point = Sequence[float]


#: Two opposite corners.
Block = tuple[Point, Point]


START: Final = (5.0, -3.0, 40.0)


#: Half of its edges 4, 6, 8 mm times 1.5, and what static randomization and jitter add.
REACH: Final = (2 * 1.5 + 3 + 1, 3 * 1.5 + 2 + 0.5, 4 * 1.5 + 1 + 2)


SPREAD: Final = (3 + 1, 2 + 0.5, 1 + 2)


STILL: Final[dict[str, Any]] = {"static_randomization": {}, "runtime_jitter": {}}


def objectives_with(*, label: str = "crate", **moved: Any) -> dict[str, Any]:
    """A crate that starts somewhere in the middle, within ±200 mm; its goal is far away."""
    value = {
        "goal_zone": {"min_mm": [150, -10, 0], "max_mm": [180, 10, 20]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [60, -20, 0], "max_mm": [100, 20, 60]},
        "simulation_bounds": {"min_mm": [-200, -200, -200], "max_mm": [200, 200, 200]},
        "moved_object": {
            "label": label,
            "shape": "box",
            "size": {"x_mm": 4, "y_mm": 6, "z_mm": 8},
            "start_mm": list(START),
            "static_randomization": {"start_mm": [3, 2, 1], "scale": {"min": 0.5, "max": 1.5}},
            "runtime_jitter": {"start_mm": [1, 0.5, 2]},
            **moved,
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50.25, "max_weight_g": 1200},
        "randomization": {"variant": "v24", "seeds": [24]},
    }
    # What is built here is of the contract's form, or the mistake is ours.
    Objectives.model_validate(value)
    return value


def script_of(blocks: Mapping[str, Block], *more: str) -> str:
    """A build123d script that leaves blocks, and whatever else is said, by their names."""
    lines = ["from build123d import Box, Cylinder, Pos, Sphere", "", "parts = {"]
    for name, (low, high) in blocks.items():
        middle = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
        sides = tuple(b - a for a, b in zip(low, high, strict=True))
        lines.append(f"    {name!r}: Pos{middle} * Box{sides},")
    return "\n".join([*lines, *(f"    {line}," for line in more), "}", ""])


async def ask_validation(session: Session, **request: Any) -> Response:
    """Have the session's environment validated; the answer, whatever it is."""
    asked = ValidateRequest(
        **{"model": GEOMETRY, "objectives": OBJECTIVES, "samples": 0, **request}
    )
    body = asked.model_dump(mode="json", exclude_none=True)
    return await session.client.post("/benchmark/validate", body, seconds=patience(BUILT_S))


async def validated_by(session: Session, **request: Any) -> Validated:
    """What validation finds, which must be a verdict."""
    answer = await ask_validation(session, **request)
    assert 200 == answer.status, f"expected a verdict on a benchmark, found {answer}"
    found = Validated.model_validate_json(answer.body)
    ok = not found.findings
    assert found.valid is ok, f"a verdict that is not what its findings are: {answer}"
    assert ok is (not found.reasons), f"a verdict and its reasons do not agree: {answer}"
    return found


async def leave_benchmark(
    session: Session, *, script: str | None = None, objectives: Mapping[str, Any] | None = None
) -> None:
    """Write the script and the objectives of a benchmark, those that are given."""
    if script is not None:
        await session.write(GEOMETRY, script)
    if objectives is not None:
        await session.write(OBJECTIVES, yaml.safe_dump(dict(objectives), sort_keys=False))


def told_of(each: Finding) -> str:
    """All that a finding says."""
    return f"{each.file} {each.where} {each.found} {each.expected}"


def findings_about(found: Validated, *names: str) -> list[ValidationFinding]:
    """The findings that name all of these."""
    return [each for each in found.findings if all(name in told_of(each) for name in names)]


def expect_pairs(found: Validated, pairs: Collection[tuple[str, ...]], *, what: str) -> None:
    """Assert that there is one finding for each pair, which names it, and no other finding."""
    for pair in pairs:
        about = findings_about(found, *pair)
        assert 1 == len(about), f"{what}: expected one finding that names {pair}, found {found}"
    shown = [told_of(each) for each in found.findings]
    assert len(pairs) == len(shown), f"{what}: expected findings of {sorted(pairs)}, found {shown}"


# --- both ends of everything that varies -------------------------------------------------------------------

SIGNS: Final = tuple(itertools.product((-1, 1), repeat=3))


def block_between(one: Point, other: Point) -> Block:
    """The block of which two points are opposite corners."""
    pairs = list(zip(one, other, strict=True))
    return [min(pair) for pair in pairs], [max(pair) for pair in pairs]
