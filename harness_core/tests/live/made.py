"""A tree with a suite that boots a shop, and ``harness up --ui`` of it in a process of its own."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from harness_core.base.slowness import patience
from harness_core.base.wait import until_blocking

HERE = Path(__file__).parent

_PR_SET_PDEATHSIG = 1

#: A boot or an end of the shop, on a machine with nothing else to do.
SOON_S = 60.0


def make_tree(folder):
    """The tree; its runs have a state directory of their own beside it."""
    suite = folder / "tree" / "suites" / "shop"
    suite.mkdir(parents=True)
    for name in ("shop.py", "staged.py"):
        shutil.copy(HERE / name, suite / name)
    (suite / "suite.toml").write_text(
        '[suite]\nname = "shop"\nsummary = "a shop"\ngroup = "test"\n'
        'environment = "staged:open_environment"\nmessages = "staged:orders"\n'
        '[[session]]\nname = "shop"\nsummary = "Shop."\n'
    )
    (folder / "tree" / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    (folder / "state").mkdir(mode=0o711)
    return folder / "tree"


def _end_with_us():
    """A run of tests that is killed leaves no shop."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Staged:
    """``harness up --ui``, once its page has an address.

    Attributes:
        root: the tree.
        process: of ``harness up``.
        address: of the page, with its token.
    """

    def __init__(self, root, *words):
        self.root = root
        self.output = root.parent / "up.txt"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness_core.front.cli", "up", "--ui", *words],
                cwd=root,
                env={**os.environ, "HARNESS_STATE_DIR": str(root.parent / "state")},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_us,  # noqa: PLW1509 - no thread of ours holds a lock now
            )
        until_blocking(
            lambda: "page: " in self.said() or self.process.poll() is not None,
            seconds=SOON_S,
            action="see the address of the page",
        )
        self.address = self.said().partition("page: ")[2].split()[0]

    @property
    def token(self):
        """Opens the page."""
        return self.address.partition("token=")[2]

    @property
    def port(self):
        """Of the page."""
        return int(self.address.partition("127.0.0.1:")[2].partition("/")[0])

    def said(self):
        """What ``harness up`` has printed."""
        return self.output.read_text(encoding="utf-8")

    def wait_up(self):
        """Until all of it has booted."""
        until_blocking(
            lambda: "another terminal" in self.said() or self.process.poll() is not None,
            seconds=SOON_S,
            action="see it up",
        )
        assert "another terminal" in self.said(), self.said()
        return self

    def evidence(self):
        """Its folder."""
        (folder,) = (self.root / ".evidence" / "staging").iterdir()
        return folder

    def parts(self):
        """Its parts by name, as another terminal sees them."""
        (run,) = json.loads(self.harness("ps", "--json"))
        return {part["name"]: part for part in run["parts"]}

    def harness(self, *words):
        """Another terminal."""
        done = subprocess.run(
            [sys.executable, "-m", "harness_core.front.cli", *words],
            cwd=self.root,
            env={**os.environ, "HARNESS_STATE_DIR": str(self.root.parent / "state")},
            capture_output=True,
            text=True,
            timeout=SOON_S * 4,
            check=True,
        )
        return done.stdout

    def left(self):
        """Directories of runs that are left."""
        return sorted(path.name for path in (self.root.parent / "state" / "runs").iterdir())

    def end(self, number=signal.SIGINT):
        """Ask it to end; its status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(patience(SOON_S))
        finally:
            self.process.kill()
            self.process.wait()
