"""What a session's script leaves, in a folder of one job."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workbench_contract.joints import DesignJoint
from workbench_foundation import faults
from workbench_worker.asked import Parts
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.walls import WORKSPACE

#: Where a script's solids are, as the processes of the job see it.
_BUILT = "/tmp/built"
#: Where those files are that a script is built with, when they are not the session's.
_MADE_OF = "/tmp/made-of"

_JOINTS = TypeAdapter(list[DesignJoint])
_NAMES = TypeAdapter(list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a script has left.

    Attributes:
        folder: with its solids, as the processes of the job see it.
        names: of its parts, in the order of their files.
        joints: between them.
    """

    folder: str
    names: list[str]
    joints: list[DesignJoint]


@contextlib.asynccontextmanager
async def built_in(
    job: Job, worker: Parts, model: str, *, files: Mapping[str, bytes] | None = None
) -> AsyncIterator[tuple[str, list[str]]]:
    """As :func:`design_in`: the folder and the names of the parts alone."""
    async with design_in(job, worker, model, files=files) as built:
        yield built.folder, built.names


@contextlib.asynccontextmanager
async def design_in(
    job: Job, worker: Parts, model: str, *, files: Mapping[str, bytes] | None = None
) -> AsyncIterator[Built]:
    """A folder with what a script leaves, and what it says of it; gone at the end of the block.

    The job has a ``/tmp`` of its own meanwhile: a design is made of nothing that lies in the session's.

    Args:
        job: that builds.
        worker: that it runs on.
        model: path of the script.
        files: what the script is one of, path to bytes; as they are in the session when left out.
    """
    where = os.path.normpath(os.path.join(WORKSPACE if files is None else _MADE_OF, model))
    private = job.session.home / "builds" / secrets.token_hex(8)
    await asyncio.to_thread(_make_private, job.session, private, files or {})
    job.temporary = private
    try:
        found = await worker.pool.ask(job, "build", model=where, target=_BUILT)
        yield _told(model, found)
    finally:
        job.temporary = None
        await asyncio.to_thread(shutil.rmtree, private, ignore_errors=True)


def _told(model: str, found: dict[str, Any]) -> Built:
    """What the process says that ran the script; it may say anything.

    Raises:
        Refused: 409 for what is no design, or has joints that cannot be mapped.
    """
    unmapped = found.get("unmapped")
    if unmapped and not faults.on("unmapped-joints-dropped"):
        raise Refused(409, str(unmapped[0]))
    try:
        joints = _JOINTS.validate_python(found.get("joints"))
        names = _NAMES.validate_python(found.get("names"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        detail = f"cannot use {model}: its joints are none ({first['msg']})"
        raise Refused(409, f"{detail}. Connect its parts by joints of build123d") from error
    return Built(folder=_BUILT, names=names, joints=joints)


def _make_private(session: Session, folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for path, data in files.items():
        file = folder / os.path.basename(_MADE_OF) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    if session.uid is not None:
        os.chown(folder, session.uid, session.uid)
    folder.chmod(0o700)
