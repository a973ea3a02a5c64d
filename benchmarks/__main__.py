"""``python -m benchmarks [SUBJECT …] [--rounds N]``: measure, print, exit 1 on failure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks._containers import bench_containers
from benchmarks._imports import bench_imports
from benchmarks._postgres import bench_postgres
from benchmarks._strangers import bench_strangers
from harness_core.base.evidence import open_evidence, story_text

SUBJECTS = {
    "containers": bench_containers,
    "imports": bench_imports,
    "postgres": bench_postgres,
    "strangers": bench_strangers,
}

#: What needs no container engine.
_DEFAULT = ("postgres",)


def main() -> int:
    """Run one benchmark and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(SUBJECTS)} (default: postgres)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="times each contender runs (9)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"argument --rounds: {arguments.rounds} is below 1")
    for unknown in set(arguments.subjects) - set(SUBJECTS):
        parser.error(f"unknown subject {unknown!r}: expected {', '.join(SUBJECTS)}")
    complete = True
    evidence = open_evidence(Path(".evidence") / "bench")
    for subject in arguments.subjects or _DEFAULT:
        tables = SUBJECTS[subject](rounds=arguments.rounds)
        for table in tables:
            sys.stdout.write(f"{table.text()}\n\n")
            complete = complete and not table.failures
        plots = [table.plot() for table in tables if any(table.samples_s.values())]
        evidence.write_text(f"{subject}.jsonl", story_text(plots))
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
