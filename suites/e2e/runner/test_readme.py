"""What README.md has a newcomer install is enough for what it has them type next."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement

pytestmark = [pytest.mark.runner, pytest.mark.aside("holds README.md to its word")]

#: Imports what `harness up e2e` imports where some modules cannot be found.
IMPORTS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, {root!r})
import suites.e2e.ecosystem.boot
import harness_core.front.cli
print("imported")
"""


def test_the_readmes_libraries_are_enough_to_stage_it(pytestconfig: pytest.Config) -> None:
    """Whatever else is installed here is not found, and everything is imported all the same."""
    readme = (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^pip install (.*'\.\[.*)\nharness up e2e\b", readme)
    (words,) = (shlex.split(line) for line in lines)
    installed = {
        name
        for word in words
        for name in needed(Requirement(word.replace(".[", "staging-harness[", 1)))
    }
    absent = [
        module
        for module, owners in metadata.packages_distributions().items()
        if not {canonical(owner) for owner in owners} & installed
    ]
    script = IMPORTS.format(absent=absent, root=str(pytestconfig.rootpath))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert {"syrupy", "xdist"} <= set(absent)  # of the tests alone
    assert ("imported\n", "") == (done.stdout, done.stderr)


def needed(requirement: Requirement) -> set[str]:
    """What pip would install for a requirement, with all that it requires itself."""
    found: set[str] = set()
    waiting = [requirement]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        found.add(canonical(wanted.name))
        for text in metadata.requires(wanted.name) or ():
            row = Requirement(text)
            extras = ["", *wanted.extras]
            if row.marker is None or any(row.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(row)
    return found


def canonical(name: str) -> str:
    """A distribution's name in its one spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()
