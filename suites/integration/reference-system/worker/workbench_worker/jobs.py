"""What runs for sessions now, and how it is ended: the whole process group, for real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from workbench_contract.events import EventKind
from workbench_foundation import faults, log
from workbench_worker.leases import Leases
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session

#: Ended jobs that a late cancellation may still name.
_REMEMBERED = 1_000
#: Between two looks at whether who asked for a job still waits for it.
_LOOK_S = 0.3


class Job:
    """One piece of work of a session.

    Attributes:
        group: process group of its process; none while it waits for its turn.
        temporary: what its processes see as ``/tmp`` in place of the session's, while it has one.
        cancelled: its end was asked for.
        ended: set when it has no process any more.
    """

    def __init__(self, job_id: str, session: Session) -> None:
        self.id = job_id
        self.session = session
        self.group: int | None = None
        self.temporary: Path | None = None
        self.cancelled = asyncio.Event()
        self.ended = asyncio.Event()

    def started(self, group: int) -> None:
        """Its process runs; one that was cancelled in between is ended at once."""
        self.group = group
        if self.cancelled.is_set():
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the process group."""
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)

    def refuse_if_cancelled(self) -> None:
        """Raises Refused for a job that was cancelled."""
        if self.cancelled.is_set():
            raise Refused(409, f"cannot finish job {self.id}: it was cancelled. Start it again")


async def _end_when(gone: Callable[[], Awaitable[bool]], job: Job) -> None:
    while not await gone():
        await asyncio.sleep(_LOOK_S)
    log.warning("job_abandoned", job_id=job.id)
    job.cancelled.set()
    job.kill()


class Jobs:
    """The jobs of the worker, by id.

    Args:
        leases: the same in files.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._jobs: dict[tuple[str, str], Job] = {}

    @contextlib.asynccontextmanager
    async def job(
        self,
        session: Session,
        job_id: str | None,
        *,
        gone: Callable[[], Awaitable[bool]] | None = None,
    ) -> AsyncIterator[Job]:
        """A job of a session; it has ended at the end of the block.

        Args:
            session: whose.
            job_id: chosen by who may cancel it.
            gone: whether who asked for it waits no longer; its work is of no use then, and is ended.

        Raises:
            Refused: 409 while a job of that id runs; one that has ended may be tried again.
        """
        name = job_id or f"job-{secrets.token_hex(8)}"
        key = (session.id, name)
        earlier = self._jobs.get(key)
        if earlier is not None and not earlier.ended.is_set():
            detail = f"cannot start job {name}: it runs already. Cancel it, or choose another id"
            raise Refused(409, detail)
        self._jobs.pop(key, None)
        job = self._jobs[key] = Job(name, session)
        left = faults.on("interrupt-leaves-job") or faults.on("cancel-claimed")
        watching = asyncio.create_task(_end_when(gone, job)) if gone and not left else None
        try:
            # Nobody asks again for one without a name.
            with self._leases.lease(session, name) if job_id else contextlib.nullcontext():
                yield job
        finally:
            if watching is not None:
                watching.cancel()
            job.ended.set()
            self._forget()

    async def cancel(self, session: Session, job_id: str) -> bool:
        """End a job and wait until it has no process; whether it still ran.

        Raises:
            Refused: 404 when the session has no such job.
        """
        job = self._jobs.get((session.id, job_id))
        if job is None:
            raise Refused(404, f"cannot cancel job {job_id}: the session has none. Check the id")
        if job.ended.is_set():
            return False
        job.cancelled.set()
        job.kill()
        if faults.on("cancel-ends-others"):
            for other in self._jobs.values():
                if not other.ended.is_set():
                    other.kill()
        await job.ended.wait()
        session.record(EventKind.JOB_CANCELLED, {"job_id": job_id, "process_group": job.group})
        return True

    def _forget(self) -> None:
        ended = [key for key, job in self._jobs.items() if job.ended.is_set()]
        for key in ended[: max(0, len(ended) - _REMEMBERED)]:
            del self._jobs[key]
