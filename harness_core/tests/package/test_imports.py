"""What importing the harness brings with it, and what it says where it cannot run."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

#: Prints the first parts of the names of all modules that an import has loaded.
LOADED = "import json, sys, {module}; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"


def optional() -> set[str]:
    """The top-level modules of the distributions that extras ask for, and the base does not."""

    def normal(line: str) -> str:
        return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower()

    wanted = {normal(line) for lines in EXTRAS.values() for line in lines} - {"staging-harness"}
    modules = importlib.metadata.packages_distributions().items()
    return {
        module for module, owners in modules if wanted.intersection(map(normal, map(str, owners)))
    }


@pytest.mark.parametrize(
    "module", ["harness_core", "harness_core.front.pytest_plugin", "harness_core.front.cli"]
)
def test_no_optional_library_is_imported(module):
    """The library, the pytest plugin and the command do without every extra."""
    found = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(found.stdout))

    assert {"boto3", "psycopg", "starlette", "docker"} <= optional(), "here they are installed"
    assert "harness_core" in loaded
    assert set() == loaded & optional(), f"{module} imports a library that an extra brings"


def test_the_library_alone_imports_none_at_all():
    """``import harness_core`` loads no library, so that a look at it costs nothing."""
    bare, ours = (
        subprocess.run(
            [sys.executable, "-c", LOADED.format(module=module)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for module in ("json", "harness_core")
    )

    assert {"harness_core"} == set(json.loads(ours)) - set(json.loads(bare))


@pytest.mark.parametrize(("system", "name"), [("darwin", "macOS"), ("win32", "Windows")])
@pytest.mark.parametrize(
    "command",
    [
        ("-c", "import harness_core.process"),
        ("-m", "harness_core.front.cli", "doctor"),
        ("-m", "pytest", "-p", "harness", "--collect-only", "."),
    ],
    ids=["import", "command", "pytest"],
)
def test_elsewhere_it_says_so_in_one_sentence(tmp_path, system, name, command):
    """On a system that it cannot run on: the system, what to do, a failed status, no traceback."""
    # A Python that takes this machine for another.
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.platform = {system!r}\n")
    found = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        # Plugins of others look for what they need of such a system.
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = found.stderr.splitlines()

    assert 0 != found.returncode
    assert line.startswith(f"cannot use staging-harness on {name}: ")
    assert "staging-harness; sys_platform == 'linux'" in line
