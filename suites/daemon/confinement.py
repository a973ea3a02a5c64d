"""A command line whose effects end at one directory, for dangerous commands.

Whatever runs in it meets a machine that cannot be written (everything is mounted read-only but its
home), sees no process but its own, and may start only so many. The network is the machine's.
A ``/tmp`` that it may write is its own, where one is asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess  # lint: allow driver: what confines the product is no part of it
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import SystemRandom
from typing import Final

__all__ = ["PROCESSES", "Confinement", "cannot_confine", "confinement"]

#: Users of nobody's, from the numbers that no account has (systemd's for services), and the one of
#: this process: root's commands become its, so that limits on processes hold.
_USERS: Final = range(61_184, 65_520)
_USER: Final = _USERS[os.getpid() % len(_USERS)]

#: A daemon, a shell and what a pipeline of it needs; a fork bomb meets it in milliseconds.
PROCESSES: Final = 200
_FILE_BYTES: Final = 64 * 1024 * 1024

#: A start that does nothing takes 10 ms.
_PROBE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a command is wrapped in.

    Attributes:
        drop: become a user of its own inside, since root is not bound by limits on processes.
        processes: how many its user may have, threads among them.
        user: whom root's commands become. Who is no root has a namespace of users instead, in which
            processes are counted anew.
        shown: what of ``/tmp`` is shown in a ``/tmp`` of its own; ``None`` for the machine's, read-only.
    """

    drop: bool
    processes: int = PROCESSES
    user: int = _USER
    shown: tuple[Path, ...] | None = None

    def command(self, argv: Sequence[str], *, home: Path) -> tuple[str, ...]:
        """The command line that runs ``argv`` confined; ``home`` alone can be written."""
        words = ["bwrap", "--die-with-parent", "--ro-bind", "/", "/"]
        words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
        if self.shown is not None:
            words += ["--perms", "1777", "--tmpfs", "/tmp"]
            for path in self.shown:
                if path.is_relative_to("/tmp"):
                    words += ["--ro-bind-try", str(path), str(path)]
        words += ["--bind", str(home), str(home)]
        words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        words += ["--unshare-cgroup-try"]
        if self.drop:
            # It may read what root may, so that an environment below /root can be started; it may
            # do nothing else that its number does not allow.
            words += [
                "--cap-add",
                "ALL",
                "--",
                "setpriv",
                f"--reuid={self.user}",
                f"--regid={self.user}",
            ]
            words += ["--clear-groups", "--inh-caps=-all,+dac_read_search"]
            words += ["--ambient-caps=-all,+dac_read_search"]
            words += ["--bounding-set=-all,+dac_read_search", "--no-new-privs"]
        words += [
            "--",
            "prlimit",
            f"--nproc={self.processes}",
            f"--fsize={_FILE_BYTES}",
            "--core=0",
        ]
        return (*words, "--", *argv)

    def apart(self, *, processes: int, shown: Sequence[Path]) -> Confinement:
        """One with a ``/tmp`` and a user of its own, so that what others run does not count.

        Args:
            processes: how many its user may have, threads among them.
            shown: what of the machine's ``/tmp`` it must read.
        """
        user = SystemRandom().choice(_USERS)
        return replace(self, processes=processes, shown=tuple(shown), user=user)

    def give(self, home: Path) -> None:
        """Make everything in the home belong to whom the daemon runs as."""
        if self.drop:
            for path in (home, *home.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)


def confinement() -> Confinement:
    """The confinement of this machine; :func:`cannot_confine` says whether there is one."""
    return Confinement(drop=os.geteuid() == 0)


@cache
def cannot_confine() -> str:
    """Why nothing can be confined here; empty when it can.

    It is tried, since the rules are many: the kernel's, a container's, a security module's.
    """
    missing = [name for name in ("bwrap", "setpriv", "prlimit") if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on the PATH: apt-get install bubblewrap util-linux"
    argv = confinement().command(["true"], home=Path.cwd())
    try:
        tried = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run: {error}"
    errors = tried.stderr.strip().splitlines()
    return (
        ""
        if tried.returncode == 0
        else f"bwrap cannot confine here: {errors[-1] if errors else tried}"
    )
