"""Asking the warm process for geometry and physics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from dataclasses import asdict
from typing import Any

from workbench_contract.skills import ReadVia
from workbench_foundation import faults, log
from workbench_making import configuration
from workbench_worker.execution import walls_of
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.settings import Settings
from workbench_worker.skills import shown
from workbench_worker.walls import Walls

_ANSWER_BYTES = 4 << 20
#: Importing the libraries takes 2 to 10 s, as cold and loaded as the machine is.
_WARM_S = 120.0
#: Before a process that died while it was warming up is started again.
_PAUSE_S = 2.0


class Pool:
    """The warm process; started with the worker, and again when it dies.

    Args:
        settings: limits of its jobs.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._warm = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._died_cold = False

    @property
    def warm(self) -> bool:
        """Whether a job begins at once."""
        return self._warm.is_set()

    def answers(self) -> None:
        """Raises RuntimeError when there is no process, warm or warming, or it dies of warming."""
        if self._process is None or self._process.returncode is not None or self._died_cold:
            raise RuntimeError("the warm process does not run; the worker's log says why")

    async def start(self) -> None:
        """Start the process; it warms up in the background."""
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End the process and its jobs."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._control is not None:
            self._control.close()

    async def ask(self, job: Job, kind: str, *, cpu_s: int = 600, **arguments: Any) -> dict[str, Any]:
        """Run a job in a fork of its own, behind its session's walls.

        Raises:
            Refused: 409 for a model that is none, and when it was cancelled; 503 when the
                machine offers no walls or the process died.
        """
        try:
            await asyncio.wait_for(self._warm.wait(), _WARM_S)
        except TimeoutError as error:
            detail = f"cannot {kind}: the pool is not warm after {_WARM_S:g} s. Try again"
            raise Refused(503, detail) from error
        job.refuse_if_cancelled()
        async with shown(job.session, job.id, via=ReadVia.CODE) as skills:
            walls = walls_of(
                job.session, self._settings, cpu_s=cpu_s, temporary=job.temporary, skills=skills
            )
            return await self._asked(job, kind, walls, arguments)

    async def _asked(
        self, job: Job, kind: str, walls: Walls, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        request = json.dumps({"kind": kind, "walls": asdict(walls), "arguments": arguments}).encode()
        ours, theirs = socket.socketpair()
        assert self._control is not None
        try:
            with theirs:
                socket.send_fds(self._control, [b"job"], [theirs.fileno()])
        except OSError as error:
            ours.close()
            detail = f"cannot {kind}: the warm process has died ({error.strerror}). Try again"
            raise Refused(503, detail) from error
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_ANSWER_BYTES)
        try:
            writer.write(request + b"\n")
            first = await _line(reader)
            if "pid" in first:
                job.started(first["pid"])
                answer = await _line(reader)
                if walls.skills:
                    # To the end of its last process: until then it may read.
                    await reader.read()
                return self._result(job, kind, answer)
            return self._result(job, kind, first)
        finally:
            # The answer may be in while the process still ends; its group is not ours to name then.
            job.group = None
            writer.close()

    def _result(self, job: Job, kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if "result" in answer:
            found: dict[str, Any] = answer["result"]
            return found
        job.refuse_if_cancelled()
        if "refused" in answer:
            raise Refused(409, answer["refused"])
        observed = answer.get("broken", "its process died, out of memory or time perhaps")
        log.error("job_broken", kind=kind, reason=observed)
        raise Refused(503, f"cannot {kind}: {observed}. Make the model smaller, or try again")

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "workbench_worker.zygote"),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                env={
                    "PATH": os.environ.get("PATH", ""),
                    "LANG": "C.UTF-8",
                    # Libraries look for a home when they are imported; a bare user number has none.
                    "HOME": str(self._settings.data),
                    faults.VARIABLE: os.environ.get(faults.VARIABLE, ""),
                    configuration.VARIABLE: os.environ.get(configuration.VARIABLE, ""),
                },
                start_new_session=True,
            )
        self._control = ours

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            assert self._control is not None
            assert self._process is not None
            received = await loop.sock_recv(self._control, 64)
            if received:
                log.info("pool", warm=received.decode())
                if received == b"geometry":
                    self._warm.set()
                    self._died_cold = False
                continue
            self._died_cold = not self._warm.is_set()
            self._warm.clear()
            code = await self._process.wait()
            log.error("pool_died", exit_code=code, warm=not self._died_cold)
            self._control.close()
            if self._died_cold:
                await asyncio.sleep(_PAUSE_S)
            await self._spawn()


async def _line(reader: asyncio.StreamReader) -> dict[str, Any]:
    """One message; empty when the process ended instead."""
    try:
        line = await reader.readline()
    except (ConnectionError, ValueError):
        return {}
    if not line.endswith(b"\n"):
        return {}
    found: dict[str, Any] = json.loads(line)
    return found
