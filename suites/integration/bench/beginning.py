"""What each benchmark of the worker begins with: its argument, its exit status, a stack that is up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import HttpClient
from harness_core.process import open_run
from harness_core.system.subject import load_subject
from suites.integration.stack import layout_of, open_workbench

__all__ = ["run", "worker_of_a_stack"]

_SUITE: Final = Path(__file__).parents[1]
_TIMES: Final = 3

Found = TypeVar("Found")


def run(
    doc: str,
    measure: Callable[[int], Awaitable[Found]],
    table: Callable[[Found], str],
    met: Callable[[Found], bool],
) -> int:
    """Measure as often as the command line says, and print; the exit status is 1 when it failed or missed.

    Args:
        doc: of the benchmark; its first line is its help.
        measure: with how often.
        table: what is printed of it.
        met: whether it meets its targets.
    """
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("times", nargs="?", type=int, default=_TIMES)
    times = parser.parse_args().times
    if times < 1:
        parser.error(f"times {times}: expected 1 or more")
    try:
        found = trio.run(measure, times)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(table(found) + "\n")
    return int(not met(found))


@asynccontextmanager
async def worker_of_a_stack(name: str) -> AsyncIterator[HttpClient]:
    """The worker of the reference stack, which is up until the block ends.

    Args:
        name: of the benchmark; its evidence lies in a folder of that name.

    Raises:
        HarnessError: the stack did not come up.
    """
    evidence = open_evidence(Path(".evidence") / "bench" / name, wipe=True)
    subject = load_subject(_SUITE / "reference-system" / "subject.toml")
    async with (
        open_run(evidence=evidence) as running,
        open_workbench(running, subject, evidence=evidence) as stack,
    ):
        key = stack["controller"].environment[layout_of(subject).api_key]
        yield stack.client("worker", headers={"x-api-key": key})
