"""How fast the worker's physics is, beside plain MuJoCo in one process on the same scenes.

nox -s bench -- physics          or: python -m suites.integration.bench.physics [TIMES]

Steps per second of one long run, and runs per minute of many short ones, each judged at every step. What
the worker takes is the time between the two moments that its answer names: a process behind walls, the
scene's compilation and the judgement are in it. Both are run by turns; the medians are compared.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio
import yaml
from workbench_contract.simulation import Simulated

from harness_core.base.errors import HarnessError
from suites.integration.bench.beginning import run, worker_of_a_stack
from suites.integration.scenes import scene
from suites.integration.sessions import Session, new_session
from suites.integration.simulating import goals, moved

#: What the worker does at least, as a share of what plain MuJoCo does.
TARGET: Final = 0.8

#: Seconds that an answer may take.
_ANSWER_S: Final = 600.0

#: What :func:`_ours` has moved: a ball of 7 mm.
_OBJECT: Final = (
    '<body pos=".4 0 .03"><freejoint/><geom type="sphere" size=".007" density="1000"/></body>'
)

#: Steps a scene with nothing but MuJoCo: reads scene, steps and runs, prints seconds.
_PLAIN: Final = """
import json, sys, time
import mujoco
asked = json.load(sys.stdin)
began = time.perf_counter()
model = mujoco.MjModel.from_xml_string(asked["xml"])
for _ in range(asked["runs"]):
    mujoco.mj_step(model, mujoco.MjData(model), nstep=asked["steps"])
print(time.perf_counter() - began)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is simulated.

    Attributes:
        steps: of each run.
        per_s: of what a figure counts, in one second of all.
    """

    what: str
    xml: str
    runs: int
    steps: int
    step_s: float
    unit: str

    @property
    def amount(self) -> float:
        """Steps, or runs as if a minute were a second."""
        return self.steps * self.runs if self.unit == "steps/s" else 60.0 * self.runs


LOADS: Final = (
    Load(
        what="one run of six boxes in a stack",
        xml=scene(boxes=6),
        runs=1,
        steps=50_000,
        step_s=0.002,
        unit="steps/s",
    ),
    Load(
        what="one run of a ball among forty",
        xml=scene(boxes=40, gap_m=0.05),
        runs=1,
        steps=5_000,
        step_s=0.002,
        unit="steps/s",
    ),
    Load(
        what="a hundred runs of three boxes",
        xml=scene(boxes=3),
        runs=100,
        steps=1_000,
        step_s=0.002,
        unit="runs/min",
    ),
)


def main() -> int:
    """Measure and print; the exit status is 1 where the worker misses the target or nothing could be run."""
    return run(__doc__, measure, table, met)


def met(rows: list[tuple[Load, float, float]]) -> bool:
    """Whether the worker does its share of each load."""
    return min(ours / plain for _, ours, plain in rows) >= TARGET


async def measure(times: int) -> list[tuple[Load, float, float]]:
    """Each load with the median of what the worker does, and plain MuJoCo."""
    python = str(Path(os.environ["HARNESS_SUBJECT_BIN"]) / "python")
    rows = []
    async with worker_of_a_stack("physics") as worker:
        session = new_session(worker)
        for load in LOADS:
            ours, plain = [], []
            for _ in range(times):
                ours.append(load.amount / await _ours(session, load))
                plain.append(load.amount / await _plain(python, load))
            rows.append((load, statistics.median(ours), statistics.median(plain)))
    return rows


async def _ours(session: Session, load: Load) -> float:
    """Seconds between the worker's start and end of a load.

    Raises:
        HarnessError: it was not carried out.
    """
    judge = goals(
        goal_zone={"min_mm": [3000, 3000, 0], "max_mm": [3100, 3100, 50]},
        simulation_bounds={"min_mm": [-4500, -4500, -100], "max_mm": [4500, 4500, 9000]},
        moved_object=moved(start_mm=[400, 0, 30]),
    )
    await session.write("scene.xml", load.xml)
    await session.write("objectives.yaml", yaml.safe_dump(judge))
    asked: dict[str, Any] = {
        "model": "scene.xml",
        "objectives": "objectives.yaml",
        "runs": load.runs,
        "duration_s": load.steps * load.step_s,
    }
    answer = await session.client.post("/benchmark/simulate", asked, seconds=_ANSWER_S)
    found = Simulated.model_validate_json(answer.body) if answer.status == 200 else None
    done = [run.steps for run in found.runs] if found else []
    if found is None or done != [load.steps] * load.runs:
        raise HarnessError(
            f"time {load.what}",
            observed=f"{answer.status}, runs of {sorted(set(done))} steps: {answer}",
            next_step="A run of a benchmark ends by its time alone; correct its scene",
        )
    return (found.finished_at - found.started_at).total_seconds()


async def _plain(python: str, load: Load) -> float:
    """Seconds of the same in one process, with the object that the objectives add."""
    xml = load.xml.replace("</worldbody>", f"{_OBJECT}</worldbody>")
    asked = json.dumps({"xml": xml, "runs": load.runs, "steps": load.steps})
    done = await trio.run_process([python, "-c", _PLAIN], stdin=asked.encode(), capture_stdout=True)
    return float(done.stdout)


def table(rows: list[tuple[Load, float, float]]) -> str:
    """Both figures of each load, and the one as a share of the other."""
    lines = [f"{'':34}{'worker':>10}{'MuJoCo':>10}   share (target: {TARGET:g})"]
    lines += [
        f"{load.what:34}{ours:>10.0f}{plain:>10.0f}   {ours / plain:.2f}   {load.unit}"
        for load, ours, plain in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
