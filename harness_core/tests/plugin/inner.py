"""A pytest that a test starts: on a small project, with the harness's plugin and state of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_LEFT_OUT = ("PYTEST", "COV", "HARNESS_REQUIRE", "HARNESS_SESSION", "PYTHONDONTWRITEBYTECODE")


class Inner:
    """A project below a test's own directory.

    Args:
        folder: of the test.
        ini: lines of its ``pytest.ini``.

    Attributes:
        root: the project.
        state: where its runs are.
        env: what its pytest starts with.
    """

    def __init__(self, folder: Path, *, ini: str = "addopts = -p no:cacheprovider -ra") -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.state = folder / "state"
        self.write({"pytest.ini": f"[pytest]\n{ini}\n"})
        own = {key: value for key, value in os.environ.items() if not key.startswith(_LEFT_OUT)}
        # Other plugins of this environment take a second to load; what a test needs, it names.
        self.env = own | {
            "CI": "",
            "HARNESS_STATE_DIR": str(self.state),
            "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    def write(self, files: dict[str, str]) -> None:
        """Write files: path below the project → text."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        """Pytest with the plugins that its words need."""
        plugins = ["-p", "harness_core.front.pytest_plugin"]
        if any(word.startswith("-n") for word in words):
            plugins += ["-p", "xdist"]
        return [sys.executable, "-m", "pytest", *plugins, *words]

    def run(
        self, *words: str, files: dict[str, str] | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run it, on ``files`` besides those that are there already."""
        self.write(files or {})
        return subprocess.run(
            self.command(*words),
            cwd=self.root,
            env=self.env | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, *words: str, **how: object) -> subprocess.Popen[str]:
        """Start it; its output can be read while it runs."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.root,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **how,
        )
