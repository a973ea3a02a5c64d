"""A session's commands: behind walls, bounded in time, memory and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench_contract.skills import ReadVia
from workbench_foundation import faults
from workbench_worker.confined import REPORT_FD, environment
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.sessions import RECORD, Session
from workbench_worker.settings import Settings
from workbench_worker.skills import shown
from workbench_worker.walls import Walls

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    duration_s: float
    pid: int


def walls_of(
    session: Session,
    settings: Settings,
    *,
    cpu_s: int,
    temporary: Path | None = None,
    skills: str = "",
) -> Walls:
    """The walls around a session's code.

    Args:
        temporary: its ``/tmp`` in place of the session's.
        skills: the copy of its skills that it sees.
    """
    return Walls(
        workspace=str(session.workspace),
        temporary=str(temporary or session.temporary),
        record=str(session.home / RECORD),
        mountpoint=str(session.home / "walls"),
        uid=session.uid,
        memory_bytes=settings.memory_bytes,
        file_bytes=settings.file_bytes,
        processes=settings.processes,
        cpu_s=cpu_s,
        skills=skills,
        paper=faults.on("walls-of-paper"),
    )


async def run_command(
    job: Job,
    argv: list[str],
    *,
    timeout_s: float,
    settings: Settings,
    via: ReadVia = ReadVia.CODE,
) -> Ended:
    """Run a command of a session and wait for its end.

    Args:
        via: as what its reads of skills are told.

    Raises:
        Refused: 503 when this machine offers no walls; nothing has run then.
    """
    async with shown(job.session, job.id, via=via) as skills:
        walls = walls_of(job.session, settings, cpu_s=int(timeout_s) + 1, skills=skills)
        return await _run(job, argv, walls, timeout_s=timeout_s, settings=settings)


async def _run(
    job: Job, argv: list[str], walls: Walls, *, timeout_s: float, settings: Settings
) -> Ended:
    specification = json.dumps({"walls": asdict(walls), "argv": argv})
    reading, writing = os.pipe()
    started = time.monotonic()
    try:
        # The report's descriptor has its fixed number by way of a shell-less dup in the child.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _LAUNCH, str(writing)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(writing,),
            start_new_session=True,
            # The first process behind the walls keeps it where the session's code may look.
            env=environment(),
        )
    finally:
        os.close(writing)
    job.started(process.pid)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    timed_out = False
    process.stdin.write(specification.encode())
    process.stdin.close()
    collected = asyncio.gather(
        _bounded(process.stdout, settings.output_bytes),
        _bounded(process.stderr, settings.output_bytes),
        process.wait(),
    )
    try:
        async with asyncio.timeout(timeout_s):
            (out, out_cut), (err, err_cut), _ = await asyncio.shield(collected)
    except TimeoutError:
        timed_out = True
        job.kill()
        (out, out_cut), (err, err_cut), _ = await collected
    except asyncio.CancelledError:
        job.kill()
        raise
    finally:
        lines = _report_of(reading, ended=process.returncode is not None)
    return Ended(
        exit_code=_exit_code(lines, killed=timed_out or job.cancelled.is_set()),
        stdout=out.decode("utf-8", "replace"),
        stderr=err.decode("utf-8", "replace"),
        truncated=out_cut or err_cut,
        timed_out=timed_out,
        duration_s=round(time.monotonic() - started, 6),
        pid=process.pid,
    )


def _report_of(reading: int, *, ended: bool) -> list[str]:
    """What the process reported; the pipe is closed, and its end is there once no process writes."""
    with os.fdopen(reading, "rb") as report:
        return report.read().decode("utf-8", "replace").splitlines() if ended else []


_LAUNCH = f"""
import os, sys
number = int(sys.argv[1])
if number != {REPORT_FD}:
    os.dup2(number, {REPORT_FD})
    os.close(number)
from workbench_worker.confined import main
sys.exit(main())
"""


def _exit_code(report: list[str], *, killed: bool) -> int:
    for line in report:
        word, _, rest = line.partition(" ")
        if word == "exit":
            return int(rest)
        if word == "broken":
            raise Refused(503, f"cannot wall off the session: {rest}. Let the worker use namespaces")
    if not killed and "ready" not in report:
        raise Refused(503, "cannot wall off the session: its process ended. Read the worker's log")
    return -9


async def _bounded(stream: asyncio.StreamReader, most_bytes: int) -> tuple[bytes, bool]:
    """What fits of a stream, and whether there was more; it is read to its end."""
    kept, cut = bytearray(), False
    while chunk := await stream.read(_CHUNK_BYTES):
        room = most_bytes - len(kept)
        kept += chunk[:room]
        cut = cut or len(chunk) > room
    return bytes(kept), cut
