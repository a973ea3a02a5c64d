"""How long the stack takes from nothing to the last service that serves, and which service is last.

nox -s bench -- stack          or: python -m suites.integration.bench.boot [TIMES]
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.subject import load_subject
from suites.integration.stack import open_workbench

FOLDER: Final = Path(__file__).parents[1]

TIMES: Final = 5

#: What a developer waits for before the first test: on 2 cores, environments built.
TARGET_S: Final = 12.0

_READY: Final = re.compile(r"(\S+) ready(?: at \S+)? \((\d+\.\d) s\)")


def main() -> int:
    """Measure and print; the exit status is 1 when a boot failed or the median misses the target."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("times", nargs="?", type=int, default=TIMES)
    times = parser.parse_args().times
    if times < 1:
        parser.error(f"times {times}: expected 1 or more")
    try:
        boots = [trio.run(boot) for _ in range(times)]
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(table(boots) + "\n")
    return int(statistics.median(max(each.values()) for each in boots) > TARGET_S)


async def boot() -> dict[str, float]:
    """Boot once from nothing; service → seconds until it served."""
    ready: dict[str, float] = {}

    def say(text: str) -> None:
        if match := _READY.search(text):
            ready[match[1]] = float(match[2])

    evidence = open_evidence(Path(".evidence") / "bench" / "stack", wipe=True)
    subject = load_subject(FOLDER / "reference-system" / "subject.toml")
    async with (
        open_run(evidence=evidence) as run,
        open_workbench(run, subject, evidence=evidence, say=say),
    ):
        return ready


def table(boots: list[dict[str, float]]) -> str:
    """Median and worst of each service, in the order in which they serve."""
    medians = {name: statistics.median(each[name] for each in boots) for name in boots[0]}
    lines = [f"seconds until it serves, {len(boots)} boots   median  worst"]
    for name in sorted(medians, key=medians.__getitem__):
        worst = max(each[name] for each in boots)
        lines.append(f"  {name:40} {medians[name]:6.1f} {worst:6.1f}")
    whole = [max(each.values()) for each in boots]
    lines.append(
        f"  {'the stack':40} {statistics.median(whole):6.1f} {max(whole):6.1f}"
        f"   (target: {TARGET_S:g})"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
