"""What a simulation leaves for videos of its runs, beside the session's files; nothing of it is a picture yet."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from workbench_worker import beneath
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session

_FILMS = "films"
_MOST_BYTES = 256 << 20


def new_place() -> str:
    """Where a simulation may leave it, as the processes of its job see it; nobody guesses it."""
    return f"/tmp/film-{secrets.token_hex(8)}"


@contextlib.asynccontextmanager
async def own_tmp(job: Job, *, wanted: bool = True) -> AsyncIterator[None]:
    """Give a job a ``/tmp`` of its own until the block ends, if it has none and one is wanted."""
    if job.temporary is not None or not wanted:
        yield
        return
    private = job.session.home / "builds" / secrets.token_hex(8)
    private.mkdir(parents=True)
    try:
        if job.session.uid is not None:
            os.chown(private, job.session.uid, job.session.uid)
        private.chmod(0o700)
        job.temporary = private
        yield
    finally:
        job.temporary = None
        shutil.rmtree(private, ignore_errors=True)


def keep(session: Session, job: Job, place: str) -> None:
    """Keep what a simulation has left."""
    folder = outside(job, place)
    names = sorted(each.name for each in folder.iterdir())
    kept = session.home / _FILMS
    kept.mkdir(exist_ok=True)
    new = kept / f"new-{secrets.token_hex(8)}"
    new.mkdir()
    for name, data in left(folder, names).items():
        (new / name).write_bytes(data)
    shutil.rmtree(kept / job.id, ignore_errors=True)
    new.rename(kept / job.id)


def kept(session: Session, job_id: str) -> dict[str, bytes]:
    """What was kept of a simulation.

    Raises:
        Refused: 404 when there is nothing.
    """
    folder = session.home / _FILMS / job_id
    if not is_kept(session, job_id):
        detail = f"cannot show simulation {job_id}: the session has none of it with trajectories"
        raise Refused(404, f"{detail}. Simulate with trajectories")
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


def is_kept(session: Session, job_id: str) -> bool:
    """Whether there is anything of a simulation."""
    return (session.home / _FILMS / job_id).is_dir()


def outside(job: Job, folder: str) -> Path:
    """A folder of a job's ``/tmp``, as the worker sees it."""
    assert job.temporary is not None
    return job.temporary / os.path.relpath(folder, "/tmp")


def left(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Files that a job has left in a folder of its own.

    Raises:
        Refused: 409 for what is no file, or more than is kept.
    """
    files, room = {}, _MOST_BYTES
    for name in names:
        with beneath.opened(str(folder), name, os.O_RDONLY | os.O_NONBLOCK) as fd:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > room:
                detail = f"cannot keep {name}: {found.st_size} bytes are too many, or it is no file"
                raise Refused(409, f"{detail}. Make it simpler")
            with os.fdopen(os.dup(fd), "rb") as file:
                files[name] = file.read()
        room -= len(files[name])
    return files
