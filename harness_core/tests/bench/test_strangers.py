"""The benchmark of whole suites: what it counts, finds and removes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._left import Left
from benchmarks._strangers import CONTENDERS, Contender, Strangers, glue_lines


def test_glue_is_counted_from_the_files(tmp_path: Path) -> None:
    """Every line of every file of a folder, but those that are empty or a comment."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "conftest.py").write_text("import os\n\n# why\n\n\ndef one():\n    return os\n")
    (tmp_path / "tests" / "compose.yml").write_text("services:\n  db: {}  # it\n")

    assert 5 == glue_lines(Contender(folder=str(tmp_path)))


def test_who_has_glue_has_lines() -> None:
    """Each contender's folder is there; ours is no exception."""
    assert [] == [name for name, each in CONTENDERS.items() if glue_lines(each) == 0]


def test_who_needs_an_engine_is_left_out_without_one() -> None:
    """It is said, and is no failure of the bench; what was not measured for no reason is one."""
    table = Strangers()
    table.leave_out("testcontainers", "no engine: none answers")

    assert "not run: no engine: none answers" in table.text()
    assert "testcontainers" not in table.failures
    assert "pytest-docker" in table.failures


def test_what_is_left_is_counted_by_kind() -> None:
    """In words, nothing included; later only where it differs."""
    table = Strangers()
    two = Left(processes=("postgres", "python"), directories=("/tmp/a",), databases=1)
    table.left["ours"] = (Left(directories=("/tmp/a",)), Left())
    table.left["testcontainers"] = (two, two)

    rows = {row.split()[0]: row for row in table.text().splitlines() if row.startswith("  ")}
    assert rows["ours"].endswith("1 directory; after the next run nothing")
    assert rows["testcontainers"].endswith("2 processes, 1 directory, 1 database")


#: A daemon that leaves its parent and its session, as pg_ctl's server does, and a directory.
RUNNER = """
import os, subprocess, sys
from pathlib import Path
from benchmarks._left import Traces, adopt_orphans
place = Path(sys.argv[1])
adopt_orphans()
daemon = ["setsid", "sh", "-c", "sleep 300 & sleep 300"]
runner = subprocess.Popen([sys.executable, "-c", f'''
import os, subprocess, time
subprocess.Popen({daemon})
(lambda p: (p.mkdir(), (p / "file").write_text("1")))(__import__("pathlib").Path("{place}/data"))
os.mkdir("{place}/empty")
print("started", flush=True)
time.sleep(300)
'''], stdout=subprocess.PIPE)
runner.stdout.readline()
runner.kill()
runner.wait()
import benchmarks._left as left
left._SETTLE_S = 0.5
traces = Traces(temporary=place)
found = traces.settled()
print(sorted(found.processes), [Path(each).name for each in found.directories])
traces.remove()
print(traces.settled())
"""


@pytest.mark.real
def test_what_a_killed_runner_left_is_found_and_removed(tmp_path: Path) -> None:
    """Also what left its parent and session; a directory without content is not counted."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert ["['sh', 'sleep', 'sleep'] ['data']", "nothing"] == done.stdout.splitlines()
