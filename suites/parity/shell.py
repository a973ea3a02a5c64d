"""The reference launcher on a command line of a test's own: a home, the tools on a PATH, what it printed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess  # lint: allow driver: the command line is what is tested
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from suites.parity.tools.command import STAYS, Commands

__all__ = [
    "BACKENDS",
    "ENDS_S",
    "GLANCE_S",
    "MANIFEST",
    "PATIENCE_S",
    "SECRET",
    "TOOLS",
    "Shell",
    "bot_bottle",
    "ended",
    "expect_same",
    "family",
    "said",
    "show",
    "staying",
]


#: What a process of a test may take; only a broken launcher needs all of it.
PATIENCE_S: Final = 120.0


#: Between two looks at what a launcher has run.
GLANCE_S: Final = 0.01


#: What is killed with the launcher is gone at once.
ENDS_S: Final = 20.0


BACKENDS: Final = ("docker", "smolmachines")


#: The tool of a backend.
TOOLS: Final = {"docker": "docker", "smolmachines": "smolvm"}


SECRET: Final = "canary-given 'of' =the= host\nand a second line, Zürich \udcff"


MANIFEST: Final = """---
image: harness/bottle:1
env:
  TOKEN: "${HOST_TOKEN}"
  PLAIN: "canary-literal"
---
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A home, a folder to be in, and the tools on a PATH."""

    home: Path
    cwd: Path
    commands: Commands

    def environ(self, **variables: str) -> dict[str, str]:
        """The environment of a launcher: an hour that is not that of UTC, and a host's variable."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.commands.folder}:/usr/bin:/bin",
            "TZ": "Asia/Kathmandu",
            "HOST_TOKEN": SECRET,
            **variables,
        }

    def run(
        self, *words: str, typed: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command to its end, with this on its input."""
        return subprocess.run(
            [bot_bottle(), *words],
            env=self.environ(**variables),
            cwd=self.cwd,
            input=typed,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def recorded(self) -> list[str]:
        """The identities of which something is recorded."""
        state = self.home / ".bot-bottle" / "state"
        return sorted(path.name for path in state.iterdir()) if state.is_dir() else []

    def metadata(self, identity: str) -> dict[str, Any]:
        """What is recorded of a bottle."""
        file = self.home / ".bot-bottle" / "state" / identity / "metadata.json"
        content: dict[str, Any] = json.loads(file.read_text())
        return content


def bot_bottle() -> str:
    """The command."""
    return str(Path(sys.executable).with_name("bot-bottle"))


def expect_same(what: str, expected: object, found: object) -> None:
    """Compare, in a sentence."""
    assert expected == found, f"{what}: expected {expected!r}, found {found!r}"


def show(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a command printed."""
    return (done.stdout + done.stderr).decode(errors="surrogateescape")


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The refusal, without prompts and warnings before it."""
    return done.stderr.decode(errors="surrogateescape").rpartition("bot-bottle: ")[2]


class staying:  # noqa: N801 - read as a verb
    """A launcher whose agent does not end by itself."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self._shell = shell
        self._words = words

    def __enter__(self) -> subprocess.Popen[bytes]:
        # Where these tests run in the background SIGINT is ignored, and what they start would inherit that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                [bot_bottle(), *self._words, "--", "sh", "-c", STAYS],
                env=self._shell.environ(),
                cwd=self._shell.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first == b"here\n", (
            f"the agent starts: expected its first line 'here', found {first!r} and "
            f"{self.process.communicate()[1]!r}"
        )
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        # Of a launcher that leaves its commands behind.
        for pid in family(self.process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def ended(pid: int, *, after_s: float = ENDS_S) -> bool:
    """Whether a process that is no child of ours ends in this time; it is killed if not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if select.select([descriptor], [], [], after_s)[0]:
            return True
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)
    return False


def family(launched: subprocess.Popen[bytes]) -> list[int]:
    """The processes that have the launcher's output for theirs: itself, and all that it runs there."""
    assert launched.stdout is not None
    pipe = f"pipe:[{os.fstat(launched.stdout.fileno()).st_ino}]"
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and str((folder / "fd" / "1").readlink()) == pipe:
                found.append(int(folder.name))
    return found
