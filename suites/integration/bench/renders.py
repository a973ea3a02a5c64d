"""How long the 24 views of an assembly of 20,000 triangles take, and how long the same once more.

nox -s bench -- renders        or: python -m suites.integration.bench.renders [TIMES]
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any, Final

from workbench_contract.renders import PreviewRequest, Rendered, RenderRequest

from harness_core.base.errors import HarnessError
from suites.integration.bench.beginning import run, worker_of_a_stack
from suites.integration.sessions import Session, new_session

#: On 2 cores, with nothing else to do.
VIEWS_TARGET_S: Final = 5.0
AGAIN_TARGET_S: Final = 0.05
#: As many, and not many more: the worker's answer has the number that it has counted.
TRIANGLES: Final = (20_000, 22_000)

#: A design that is none of an earlier time: its size is part of it.
_SCRIPT: Final = """\
from build123d import Cylinder, Pos, Torus

parts = {{f"ring-{{row}}": Pos(30 * row, 0, 0) * Torus({radius} + row, 2 + row / 4) for row in range(4)}}
parts["plate"] = Pos(45, 0, -10) * Cylinder(80, 3)
"""
_LONGEST_S: Final = 300.0


def main() -> int:
    """Measure and print; the exit status is 1 when it failed or a median misses its target."""
    return run(__doc__, measured, table, met)


def met(found: list[dict[str, float]]) -> bool:
    """Whether the medians meet their targets."""
    views, again = (statistics.median(each[key] for each in found) for key in ("views", "again"))
    return views <= VIEWS_TARGET_S and again <= AGAIN_TARGET_S


async def measured(times: int) -> list[dict[str, float]]:
    """Have a design of its own shown each time, by one worker.

    Raises:
        HarnessError: the stack did not come up, or did not show the design.
    """
    async with worker_of_a_stack("renders") as worker:
        return [await shown(new_session(worker), number) for number in range(times)]


async def shown(session: Session, number: int) -> dict[str, float]:
    """Seconds until a design is built and seen once, until its 24 views are there, and once more."""
    await session.write("model.py", _SCRIPT.format(radius=8 + number / 10))
    built, _ = await _asked(session, "preview", PreviewRequest())
    views, first = await _asked(session, "render", RenderRequest())
    again, second = await _asked(session, "render", RenderRequest())
    least, most = TRIANGLES
    if not least <= first.triangles <= most or first.from_store or not second.from_store:
        observed = (
            f"{first.triangles} triangles, from store: {first.from_store}, {second.from_store}"
        )
        raise HarnessError(f"measure pictures of {least} to {most} triangles", observed=observed)
    return {"built": built, "views": views, "again": again, "triangles": first.triangles}


async def _asked(session: Session, operation: str, request: Any) -> tuple[float, Rendered]:
    body = request.model_dump(mode="json", exclude_none=True)
    began = time.perf_counter()
    answer = await session.client.post(f"/benchmark/{operation}", body, seconds=_LONGEST_S)
    took_s = time.perf_counter() - began
    if answer.status != 200:
        raise HarnessError("have a design shown", observed=str(answer))
    return took_s, Rendered.model_validate_json(answer.body)


def table(found: list[dict[str, float]]) -> str:
    """Median and worst of each."""
    rows = {
        "built": ("built, and seen once", None),
        "views": ("its 24 views", VIEWS_TARGET_S),
        "again": ("the same once more", AGAIN_TARGET_S),
    }
    counted = " or ".join(sorted({f"{each['triangles']:g}" for each in found}))
    heading = f"seconds, {len(found)} designs; triangles, counted: {counted}"
    lines = [f"{heading:50}  median   worst"]
    for key, (name, target) in rows.items():
        seconds = [each[key] for each in found]
        aim = f"   (target: {target:g})" if target is not None else ""
        lines.append(f"  {name:48} {statistics.median(seconds):7.3f} {max(seconds):7.3f}{aim}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
