"""A process that boots the sample stack and holds it, to be killed; and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path

import trio

from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack


async def main():
    folder, driver, *pairs = Path(sys.argv[1]), *sys.argv[2:]
    evidence = open_evidence(folder / "evidence")
    variables = dict(pair.split("=") for pair in pairs)
    options = StackOptions(bin=str(folder), environment={"PATH": "/usr/bin:/bin"} | variables)
    async with open_run(evidence=evidence) as run:
        async with open_stack(
            run, folder / "compose.yaml", evidence=evidence, driver=driver, options=options
        ):
            print(run.id, flush=True)
            await trio.sleep_forever()


trio.run(main)
"""


def kill_a_runner(folder: Path, seen, *words: str) -> str:
    """Start one; once its stack is up, call ``seen`` with the id of its run, and kill it."""
    argv = [sys.executable, "-c", PROGRAM, str(folder), *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        run_id = runner.stdout.readline().strip()
        assert run_id
        seen(run_id)
        os.kill(runner.pid, signal.SIGKILL)
    return run_id


def processes_of(folder: Path) -> list[str]:
    """What runs that has the folder in its environment or arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                seen = b"".join((entry / name).read_bytes() for name in ("cmdline", "environ"))
            except OSError:
                continue
            if os.fsencode(folder) in seen:
                found.append(f"{entry.name}: {seen[:200]!r}")
    return found
