"""The check itself, on a small project of its own: a pytest with the suite's way of keeping snapshots."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.base.slowness import patience

pytestmark = pytest.mark.aside("how the suite keeps snapshots")

TEST = """
from pathlib import Path
from suites.e2e.golden.kept import extension_for

def test_one(snapshot):
    pinned = snapshot.use_extension(extension_for(Path(__file__).parent / "kept"))
    assert pinned == {"rows": [{"name": "headache", "severity": SEVERITY}]}
"""


@pytest.mark.runner
def test_an_orphan_and_a_difference_fail_the_run(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A snapshot that no test asks for, and a value that differs, each fail the run and are named."""
    test = tmp_path / "test_small.py"
    test.write_text(TEST.replace("SEVERITY", "7"), encoding="utf-8")
    made = run(tmp_path, pytestconfig, "--snapshot-update")
    kept = tmp_path / "kept" / "test_small.ambr"

    assert 0 == made.returncode, made.stdout
    assert 0 == run(tmp_path, pytestconfig).returncode
    right = kept.read_text(encoding="utf-8")
    kept.write_text(right + "# name: test_gone\n  1\n# ---\n", encoding="utf-8")
    orphan = run(tmp_path, pytestconfig)

    assert 1 == orphan.returncode, orphan.stdout
    assert "1 snapshot unused" in orphan.stdout
    kept.write_text(right, encoding="utf-8")
    test.write_text(TEST.replace("SEVERITY", "6"), encoding="utf-8")
    changed = run(tmp_path, pytestconfig)
    lines = [line.strip() for line in changed.stdout.splitlines() if "severity" in line]

    assert 1 == changed.returncode, changed.stdout
    assert [line for line in lines if re.search(r"- +'severity': 7", line)], changed.stdout
    assert [line for line in lines if re.search(r"\+ +'severity': 6", line)], changed.stdout


def run(folder: Path, config: pytest.Config, *options: str) -> subprocess.CompletedProcess[str]:
    """Pytest on the small project."""
    command = [sys.executable, "-m", "pytest", "--color=no", "-p", "no:cacheprovider", "."]
    # What a worker of pytest has in its environment would make a worker of this run too.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [*command, f"--rootdir={folder}", f"--evidence={folder / 'evidence'}", *options],
        cwd=folder,
        env=own | {"PYTHONPATH": str(config.rootpath)},
        capture_output=True,
        text=True,
        timeout=patience(180),
        check=False,
    )
