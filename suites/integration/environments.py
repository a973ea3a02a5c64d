"""Benchmarks with an environment: objectives of a planner, geometry of a coder, as engineers get them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from workbench_contract.episodes import Purpose
from workbench_contract.handover import ENVIRONMENT, GEOMETRY, Handover, Submitted
from workbench_contract.package import PACKAGE
from workbench_contract.renders import FINAL

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from suites.integration.bundles import ESTIMATE, FILES, OBJECTIVES, PLAN, TODO, Bundle
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, at_work, handover, planner_at_work
from suites.integration.sessions import Session

__all__ = [
    "SIZES",
    "Benchmark",
    "benchmark_made",
    "coder_in",
    "digests_of",
    "environment_of",
    "expect_handed",
    "geometry_of",
    "hand_over",
    "is_made",
    "planned",
]

#: A module that the geometry is made with.
SIZES: Final = f"{ENVIRONMENT}/sizes.py"
_NOTE: Final = f"{ENVIRONMENT}/Maße 日.txt"

#: A hand-over whose geometry is built.
_BUILT_S: Final = 60.0

_SCRIPT: Final = """\
from build123d import Box, Pos
from sizes import WALL_MM

parts = {{
    "floor-{number}": Pos(50, 0, -6) * Box(180, 80, 4),
    "wall-{number}": Pos(120, 0, 20) * Box(4, 60, WALL_MM),
}}
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark that was handed over.

    Attributes:
        handover_id: of the coder's hand-over, with all of it.
        objectives: as data.
        files: of its environment, path to text.
    """

    handover_id: str
    objectives: dict[str, Any]
    files: dict[str, str]


def environment_of(number: int) -> dict[str, str]:
    """The files of an environment that no other number has."""
    return {
        GEOMETRY: _SCRIPT.format(number=number),
        SIZES: f"WALL_MM = {20 + number / 100}\n",
        _NOTE: f"The wall of {number} is {20 + number / 100} mm high.\n",
    }


def geometry_of(number: int) -> list[dict[str, Any]]:
    """The solids of that environment, computed by hand from its script."""
    high = 20 + number / 100
    return [
        {
            "name": f"floor-{number}",
            "volume_mm3": 180.0 * 80 * 4,
            "min_mm": [-40.0, -40.0, -8.0],
            "max_mm": [140.0, 40.0, -4.0],
        },
        {
            "name": f"wall-{number}",
            "volume_mm3": round(4 * 60 * high, 4),
            "min_mm": [118.0, -30.0, round(20 - high / 2, 6)],
            "max_mm": [122.0, 30.0, round(20 + high / 2, 6)],
        },
    ]


def planned(files: Mapping[str, str]) -> dict[str, str]:
    """Of a planner's files those that a benchmark's planner leaves."""
    return {path: text for path, text in files.items() if path != ESTIMATE}


def digests_of(files: Mapping[str, str]) -> dict[str, str]:
    """Path to sha256."""
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}


async def hand_over(session: Session) -> Response:
    """Hand over what lies in a session; the answer, whatever it is."""
    return await session.post("/benchmark/submit", seconds=patience(_BUILT_S))


def expect_handed(answer: Response, files: set[str], *, what: str) -> Submitted:
    """Assert that a hand-over was accepted with these files."""
    assert 200 == answer.status, f"expected {what} to be accepted, found {answer}"
    accepted = Submitted.model_validate_json(answer.body)
    found = sorted(each.path for each in accepted.files if not is_made(each.path))
    expect_same(sorted(files), found, what=f"files of {what}")
    return accepted


async def benchmark_made(episodes: Episodes, number: int, **objectives: Any) -> Benchmark:
    """A benchmark, planned and made, each by an agent whose model is held meanwhile.

    Args:
        episodes: of the stack.
        number: of its bundle and environment.
        objectives: other values of them.
    """
    work = {"purpose": Purpose.BENCHMARK.value}
    async with planner_at_work(episodes, number=number, **work) as planner:
        bundle = planner.sound()
        bundle = bundle.replaced(objectives=bundle.objectives | objectives)
        await planner.leave(planned(bundle.files()))
        answer = await planner.submit()
        what = f"the objectives {number}"
        accepted = expect_handed(answer, {PLAN, TODO, OBJECTIVES}, what=what)
        await handover(episodes.controller, accepted.handover_id)
    begun = {"role": "coder", "handover_id": accepted.handover_id, **work}
    async with at_work(episodes, **begun) as (_, session, _list):
        files = environment_of(number)
        for path, text in files.items():
            await session.write(path, text)
        answer = await hand_over(session)
        all_files = {PLAN, TODO, OBJECTIVES, *files}
        accepted = expect_handed(answer, all_files, what=f"the environment {number}")
        await handover(episodes.controller, accepted.handover_id)
    return Benchmark(
        handover_id=accepted.handover_id, objectives=bundle.objectives, files=environment_of(number)
    )


@asynccontextmanager
async def engineer_of(
    episodes: Episodes, benchmark: Benchmark, *, number: int
) -> AsyncIterator[Planner]:
    """A planner who engineers in a benchmark's environment, its model held meanwhile."""
    begun = {"handover_id": benchmark.handover_id}
    async with planner_at_work(
        episodes, number=number, given=benchmark.objectives, **begun
    ) as planner:
        yield planner


@asynccontextmanager
async def coder_in(
    episodes: Episodes,
    benchmark: Benchmark,
    *,
    number: int,
    plan: Callable[[Planner], Bundle],
) -> AsyncIterator[Coder]:
    """A coder who was handed a plan in a benchmark's environment, its model held meanwhile.

    Args:
        episodes: of the stack.
        benchmark: whose environment it is.
        number: of the plan.
        plan: what its planner hands over.
    """
    async with engineer_of(episodes, benchmark, number=number) as planner:
        bundle = plan(planner)
        answer = await planner.judged(bundle)
        accepted = expect_handed(answer, {*FILES, *benchmark.files}, what=f"the plan {number}")
        await handover(episodes.controller, accepted.handover_id)
    begun = {"role": "coder", "handover_id": accepted.handover_id}
    async with at_work(episodes, **begun) as (started, session, _):
        yield Coder(episode_id=started["episode_id"], session=session, bundle=bundle)


async def environment_kept(controller: HttpClient, handover_id: str) -> dict[str, str]:
    """Path to sha256 of the environment in a hand-over, as the controller has recorded it."""
    kept: Handover = await handover(controller, handover_id)
    return {
        each.path: each.sha256
        for each in kept.files
        if each.path.startswith(f"{ENVIRONMENT}/") and not is_made(each.path)
    }


def is_made(path: str) -> bool:
    """Whether a file is one that the worker adds to what is handed over; INT-032 and 040 look at those."""
    return path.startswith((f"{PACKAGE}/", f"{FINAL}/"))
