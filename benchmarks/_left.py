"""What a runner that was killed leaves behind: looked for, counted, and then removed.

Only what it started itself: processes that became children of this one (a subreaper), directories
below the places that it was given, containers of an image or a project that is this bench's alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.base.errors import NotReady
from harness_core.base.machine import memory_place
from harness_core.base.wait import until_blocking
from harness_core.process import descendants

__all__ = ["Left", "Traces", "adopt_orphans"]

_PR_SET_CHILD_SUBREAPER: Final = 36

#: A runner's own helpers may need a moment; Ryuk waits ten seconds for its client to come back.
_SETTLE_S: Final = 12.0

#: Databases that initdb makes, by their directories below ``base``.
_OF_INITDB: Final = 3


def adopt_orphans() -> None:
    """Become the parent of every process below this one that loses its own."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What was left after a time in which helpers could have cleaned up.

    Attributes:
        processes: their programs.
        directories: the uppermost of each.
        databases: made beside those of initdb, in servers that still run.
        containers: that still run.
        networks: of such containers.
    """

    processes: Sequence[str] = ()
    directories: Sequence[str] = ()
    databases: int = 0
    containers: Sequence[str] = ()
    networks: Sequence[str] = ()

    @property
    def nothing(self) -> bool:
        """Whether all is as it was before."""
        return not any(
            (self.processes, self.directories, self.databases, self.containers, self.networks)
        )

    def __str__(self) -> str:
        counts = {
            "process": len(self.processes),
            "directory": len(self.directories),
            "database": self.databases,
            "container": len(self.containers),
            "network": len(self.networks),
        }
        plural = {"process": "processes", "directory": "directories"}
        words = [
            f"{count} {name if count == 1 else plural.get(name, f'{name}s')}"
            for name, count in counts.items()
            if count
        ]
        return ", ".join(words) or "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Where to look for what one runner left.

    Attributes:
        temporary: the runner's directory for temporary files, empty when it started.
        image: a prefix of images that only this bench uses; empty without an engine.
        project: of compose, whose name only this runner has.
    """

    temporary: Path
    image: str = ""
    project: str = ""

    def settled(self) -> Left:
        """What is left once nothing is, or after twelve seconds."""
        with suppress(NotReady):
            until_blocking(
                lambda: self.look().nothing, seconds=_SETTLE_S, action="look", poll_s=0.5
            )
        return self.look()

    def remove(self) -> None:
        """Remove it."""
        until_blocking(_killed, seconds=_SETTLE_S, action="end what a killed runner left")
        for each in self._directories():
            shutil.rmtree(each, ignore_errors=True)
        if containers := self._containers():
            _docker("rm", "--force", "--volumes", *containers)
        if networks := self._networks():
            _docker("network", "rm", *networks)

    def look(self) -> Left:
        """What is left now."""
        _reap()
        pids = descendants(os.getpid())
        containers, networks = self._containers(), self._networks()
        return Left(
            processes=[_program(pid) for pid in pids],
            directories=[str(each) for each in self._directories()],
            databases=sum(_databases(pid) for pid in pids) + sum(map(_databases_in, containers)),
            containers=containers,
            networks=networks,
        )

    def _directories(self) -> list[Path]:
        """Those with something in them, each at its uppermost; of a run of ours, also those in memory."""
        found = [each for each in self.temporary.iterdir() if _has_content(each)]
        runs = self.temporary.glob("staging-harness-*/*/")
        memory = memory_place()
        beside = [memory / each.name for each in runs] if memory else []
        return [*found, *(each for each in beside if each.is_dir())]

    def _containers(self) -> list[str]:
        if not self.image:
            return []
        every = _docker("ps", "--all", "--quiet").split()
        rows = json.loads(_docker("inspect", *every)) if every else []
        return [
            row["Id"]
            for row in rows
            if row["Config"]["Image"].startswith(self.image)
            or row["Config"]["Labels"].get("com.docker.compose.project") == self.project
        ]

    def _networks(self) -> list[str]:
        if not self.image:
            return []
        label = f"label=com.docker.compose.project={self.project}"
        return _docker("network", "ls", "--quiet", "--filter", label).split()


def _killed() -> bool:
    """Whether nothing is below this process any more; what is, is killed."""
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _reap()
    return not descendants(os.getpid())


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "ended"


def _has_content(place: Path) -> bool:
    """Whether a directory has a file that is not empty: one that a run makes and never removes has none."""
    with suppress(OSError):  # it goes at this moment
        return any(each.is_file() and each.stat().st_size for each in place.rglob("*"))
    return False


def _databases(pid: int) -> int:
    """Of a PostgreSQL server, whose working directory is that of its data; 0 of any other process."""
    with suppress(OSError):
        home = Path(f"/proc/{pid}/cwd").resolve()
        first = (home / "postmaster.pid").read_text().partition("\n")[0]
        if first == str(pid):
            return len(list((home / "base").glob("[0-9]*"))) - _OF_INITDB
    return 0


def _databases_in(container: str) -> int:
    """Of the PostgreSQL server of a container; 0 of one that has none."""
    script = '[ -d "$PGDATA/base" ] && ls "$PGDATA/base" | wc -l || echo 3'
    return int(_docker("exec", container, "sh", "-c", script)) - _OF_INITDB


def _docker(*words: str) -> str:
    program = shutil.which("docker") or "docker"
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout
