"""Jobs that run now, in files: what a worker that was killed has left is told by the next one."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from workbench_contract.events import EventKind
from workbench_foundation import faults, log
from workbench_worker.sessions import Session, Sessions

_FOLDER = "jobs"


@dataclass(frozen=True, slots=True)
class Leases:
    """The jobs of all sessions.

    Attributes:
        lost: session and job → how many attempts at it were lost so far.
    """

    lost: dict[tuple[str, str], int]

    @contextlib.contextmanager
    def lease(self, session: Session, job_id: str) -> Iterator[None]:
        """A job runs for as long as the block lasts; its file stays when this process does not."""
        path = session.home / _FOLDER / f"{quote(job_id, safe='')}.json"
        path.parent.mkdir(exist_ok=True)
        began = {
            "job_id": job_id,
            "pid": os.getpid(),
            "attempt": 1 + self.lost.get((session.id, job_id), 0),
            "began_at": datetime.now(UTC).isoformat(),
        }
        new = path.with_suffix(".new")
        new.write_text(json.dumps(began), encoding="utf-8")
        new.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def recover(sessions: Sessions) -> Leases:
    """Record an event of each job that was under way when the worker was killed, once."""
    lost: dict[tuple[str, str], int] = {}
    for path in sorted(sessions.files_at(f"{_FOLDER}/*.json")):
        session = sessions.get(path.parent.parent.name)
        found = json.loads(path.read_text(encoding="utf-8"))
        attempt = 1 if faults.on("preemption-of-first") else found["attempt"]
        lost[session.id, found["job_id"]] = attempt
        told = {**found, "attempt": attempt, "termination_reason": "preempted"}
        # The one before this worker may have been killed between the event and the end of the file.
        known = [event.payload for event in session.events.all(EventKind.JOB_PREEMPTED)]
        if told not in known and not faults.on("preemption-untold"):
            session.record(EventKind.JOB_PREEMPTED, told)
        log.warning("job_preempted", session_id=session.id, job_id=found["job_id"])
        path.unlink()
    return Leases(lost)
