"""Whether this user may profile another process of its own here, and if not, why."""

from __future__ import annotations

import os
import shutil
import subprocess  # lint: allow driver: tries the profiler on a process of its own
import sys
from functools import cache
from pathlib import Path
from typing import Final

from harness_core.base.slowness import patience

__all__ = ["cannot_profile", "find_py_spy"]

_YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")

_PROBE_S: Final = 30.0

_NOT_INSTALLED: Final = "py-spy is not installed: pip install py-spy"


def find_py_spy() -> str | None:
    """The ``py-spy`` beside this Python, or on the ``PATH``."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.is_file() else shutil.which("py-spy")


@cache
def cannot_profile() -> str:
    """Why a process that is not our child cannot be profiled; empty when it can.

    It is tried on one, since the rules are many: the kernel's, a container's, a security module's.
    """
    py_spy = find_py_spy()
    if py_spy is None:
        return _NOT_INSTALLED
    # It says that it runs, and ends when we close its input.
    argv = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]
    try:
        started = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        return f"py-spy cannot be tried on {sys.executable}: {error.strerror}"
    with started as target:
        assert target.stdout is not None
        target.stdout.readline()
        try:
            # In a session of its own, as the profiler of a run is: no ancestor of its target.
            tried = subprocess.run(
                [py_spy, "dump", "--nonblocking", "--pid", str(target.pid)],
                capture_output=True,
                text=True,
                timeout=patience(_PROBE_S),
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"py-spy cannot be run: {error}"
        finally:
            target.communicate()
    return "" if tried.returncode == 0 else _reason(tried.stderr)


def _reason(stderr: str) -> str:
    reason = next((line for line in stderr.splitlines() if line.strip()), "no reason given")
    scope = _YAMA.read_text(encoding="ascii").strip() if _YAMA.is_file() else "0"
    if scope != "0" and os.geteuid() != 0:
        return (
            f"kernel.yama.ptrace_scope is {scope}, so only root may read a process that it did "
            f"not start: sysctl kernel.yama.ptrace_scope=0, or run as root ({reason})"
        )
    return f"py-spy may not read a process here ({reason}): the capability SYS_PTRACE is needed"
