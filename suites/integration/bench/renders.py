"""How long the 24 views of an assembly of 20,000 triangles take, and how long the same once more.

nox -s bench -- renders        or: python -m suites.integration.bench.renders [TIMES]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Final

import trio
from workbench_contract.renders import PreviewRequest, Rendered, RenderRequest

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.subject import load_subject
from suites.integration.sessions import Session, new_session
from suites.integration.stack import layout_of, open_workbench

FOLDER: Final = Path(__file__).parents[1]

TIMES: Final = 3

#: On 2 cores, with nothing else to do.
VIEWS_TARGET_S: Final = 5.0
AGAIN_TARGET_S: Final = 0.05
TRIANGLES: Final = 20_000

#: A design that is none of an earlier time: its size is part of it.
_SCRIPT: Final = """\
from build123d import Pos, Torus

parts = {{
    f"ring-{{row}}-{{column}}": Pos(30 * row, 30 * column, 0) * Torus({radius} + row, 2 + column / 4)
    for row in range(4)
    for column in range(4)
}}
"""
_LONGEST_S: Final = 300.0


def main() -> int:
    """Measure and print; the exit status is 1 when it failed or a median misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("times", nargs="?", type=int, default=TIMES)
    times = parser.parse_args().times
    if times < 1:
        parser.error(f"times {times}: expected 1 or more")
    try:
        found = trio.run(measured, times)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(table(found) + "\n")
    views, again = (statistics.median(each[key] for each in found) for key in ("views", "again"))
    return int(views > VIEWS_TARGET_S or again > AGAIN_TARGET_S)


async def measured(times: int) -> list[dict[str, float]]:
    """Boot the stack once, and have a design of its own shown each time.

    Raises:
        HarnessError: the stack did not come up, or did not show the design.
    """
    evidence = open_evidence(Path(".evidence") / "bench" / "renders", wipe=True)
    subject = load_subject(FOLDER / "reference-system" / "subject.toml")
    async with (
        open_run(evidence=evidence) as run,
        open_workbench(run, subject, evidence=evidence) as stack,
    ):
        key = stack["controller"].environment[layout_of(subject).api_key]
        worker = stack.client("worker", headers={"x-api-key": key}, evidence=evidence)
        return [await shown(new_session(worker), number) for number in range(times)]


async def shown(session: Session, number: int) -> dict[str, float]:
    """Seconds until a design is built and seen once, until its 24 views are there, and once more."""
    await session.write("model.py", _SCRIPT.format(radius=8 + number / 10))
    built, _ = await _asked(session, "preview", PreviewRequest())
    views, first = await _asked(session, "render", RenderRequest())
    again, second = await _asked(session, "render", RenderRequest())
    if first.triangles < TRIANGLES or first.from_store or not second.from_store:
        observed = (
            f"{first.triangles} triangles, from store: {first.from_store}, {second.from_store}"
        )
        raise HarnessError("measure pictures of a large assembly", observed=observed)
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
    triangles = min(each["triangles"] for each in found)
    lines = [f"seconds, {len(found)} designs of {triangles:g} triangles or more   median  worst"]
    for key, (name, target) in rows.items():
        seconds = [each[key] for each in found]
        aim = f"   (target: {target:g})" if target is not None else ""
        lines.append(f"  {name:48} {statistics.median(seconds):7.3f} {max(seconds):7.3f}{aim}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
