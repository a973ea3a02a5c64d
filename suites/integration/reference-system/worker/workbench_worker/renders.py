"""Pictures of designs and videos of runs: made when they are asked for, and once for all that show the same."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench_contract.renders import RENDERS
from workbench_foundation import faults, log
from workbench_rendering.camera import views
from workbench_worker import filmed
from workbench_worker.asked import Parts
from workbench_worker.built_designs import (
    GIVEN,
    Design,
    given_to,
    left_in,
    remembered,
    write,
)
from workbench_worker.builds import built_in
from workbench_worker.files_api import holds, put_bytes
from workbench_worker.jobs import Job
from workbench_worker.picture_store import Entry, key_of
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.snapshots import whole_session

#: Changes with what a picture of the same design looks like.
_VERSION = 1
SIZE_PX = 512

#: For the planted faults `video-of-last-run` and `render-of-last-design` alone.
_last: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Pictures, or a video, with what is said about them.

    Attributes:
        from_store: they were there already.
    """

    about: Mapping[str, Any]
    files: Mapping[str, bytes]
    from_store: bool


def all_views() -> list[tuple[float, float]]:
    """Yaw and pitch of the 24 views."""
    found = views()
    return found[:-1] if faults.on("render-view-missing") else found


def name_of(yaw_deg: float, pitch_deg: float) -> str:
    """The name of a view's file."""
    return f"yaw{yaw_deg:+}_pitch{pitch_deg:+}.png"


def content_of(session: Session, script: str, ours: Mapping[str, str]) -> str | None:
    """The hash of a script with all that lies beside it; none where that is too much.

    Args:
        ours: path to sha256 of what the worker has put there, which no script is made of.
    """
    left, odd = whole_session(session)
    if left.findings:
        return None
    if faults.on("render-of-script-alone"):
        return key_of(script, hashlib.sha256(left.files.get(script, b"")).hexdigest())
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in left.files.items()}
    files = [each for each in sorted(digests.items()) if ours.get(each[0]) != each[1]]
    return key_of("script", script, files, sorted(odd))


async def design_of(worker: Parts, job: Job, script: str) -> Design | str:
    """The design of a session's script, built if it has to be; its hash alone where it is known."""
    session = job.session
    content = await asyncio.to_thread(content_of, session, script, remembered(session)["ours"])
    known = worker.designs.of(session, content) if content else None
    if known is not None:
        return known
    async with built_in(job, worker, script) as (folder, names):
        design = await asyncio.to_thread(left_in, filmed.outside(job, folder), names)
    try:
        await asyncio.to_thread(worker.designs.keep, design)
    except OSError as error:
        log.warning("design_unkept", reason=str(error))
        return design
    again = await asyncio.to_thread(content_of, session, script, remembered(session)["ours"])
    if content is not None and again == content:
        worker.designs.remember(session, content, design.sha256)
    return design


async def pictures_of(
    worker: Parts, job: Job, design: Design | str, shots: Sequence[tuple[float, float]]
) -> Made:
    """Pictures of a design, one for each yaw and pitch.

    Raises:
        Refused: 409 for a design of which nothing can be seen.
    """
    sha256 = design if isinstance(design, str) else design.sha256
    if faults.on("render-of-last-design"):
        sha256 = _last.setdefault("design", sha256)
    key = key_of("pictures", _VERSION, sha256, SIZE_PX, list(shots))
    entry = await asyncio.to_thread(worker.pictures.get, key)
    if entry is not None and not faults.on("render-never-kept"):
        return Made(about=entry.about, files=entry.files, from_store=True)
    whole = worker.designs.get(sha256) if isinstance(design, str) else design
    if whole is None:
        raise Refused(503, "cannot show the design: what was kept of it is gone. Try again")
    async with given_to(job, whole.files()) as private:
        target = secrets.token_hex(8)
        about = await worker.pool.ask(
            job,
            "render",
            folder=GIVEN,
            names=list(whole.names),
            target=f"/tmp/{target}",
            shots=[list(each) for each in shots],
            size_px=SIZE_PX,
        )
        names = [f"{number}.png" for number in range(len(shots))]
        files = await asyncio.to_thread(filmed.left, private / target, names)
    about = about | {"design_sha256": sha256, "shots": [list(each) for each in shots]}
    await asyncio.to_thread(_keep, worker, key, Entry(about=about, files=files))
    return Made(about=about, files=files, from_store=False)


async def exported(worker: Parts, job: Job, design: Design) -> dict[str, bytes]:
    """A design as files for others: STEP."""
    async with given_to(job, design.files()) as private:
        target = secrets.token_hex(8)
        found = await worker.pool.ask(
            job,
            "export",
            folder=GIVEN,
            names=list(design.names),
            target=f"/tmp/{target}",
        )
        return await asyncio.to_thread(filmed.left, private / target, found["files"])


async def video_of(
    worker: Parts, job: Job, simulation: str, run: int, *, yaw_deg: float, pitch_deg: float
) -> Made:
    """The video of a run.

    Raises:
        Refused: 404 for a simulation that is not there, 409 for a run that it had not.
    """
    films = await asyncio.to_thread(filmed.kept, job.session, simulation)
    if faults.on("video-of-last-run"):
        films = _last.setdefault("films", films)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in films.items()}
    key = key_of("video", _VERSION, digests, run, yaw_deg, pitch_deg, SIZE_PX)
    entry = await asyncio.to_thread(worker.pictures.get, key)
    if entry is not None:
        return Made(about=entry.about, files=entry.files, from_store=True)
    async with given_to(job, films) as private:
        target = secrets.token_hex(8)
        about = await worker.pool.ask(
            job,
            "film",
            folder=GIVEN,
            run=run,
            target=f"/tmp/{target}",
            yaw_deg=yaw_deg,
            pitch_deg=pitch_deg,
            size_px=SIZE_PX,
        )
        files = await asyncio.to_thread(filmed.left, private / target, ["0.mp4"])
    await asyncio.to_thread(_keep, worker, key, Entry(about=about, files=files))
    return Made(about=about, files=files, from_store=False)


def _keep(worker: Parts, key: str, entry: Entry) -> None:
    """Keep what was made; where there is no room it is made again."""
    try:
        worker.pictures.put(key, entry)
    except OSError as error:
        log.warning("pictures_unkept", reason=str(error))


def described(made: Made, folder: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Pictures as the contract has them, and their files by their paths in ``folder``."""
    shots = made.about["shots"]
    files, listed = {}, []
    for number, (yaw, pitch) in enumerate(shots):
        data = made.files[f"{number}.png"]
        path = f"{folder}/{name_of(yaw, pitch)}"
        files[path] = data
        digest = hashlib.sha256(data).hexdigest()
        listed.append(
            {
                "path": path,
                "sha256": digest,
                "size_bytes": len(data),
                "yaw_deg": yaw,
                "pitch_deg": pitch,
            }
        )
    about = {key: value for key, value in made.about.items() if key != "shots"}
    return about | {"views": listed}, files


def put(session: Session, files: Mapping[str, bytes]) -> None:
    """Leave files in a session, and remember that they are ours.

    What is there already is not written once more: a file that is cut and filled again waits for the disk.
    """
    with session.lock:
        for path, data in files.items():
            if not holds(session, path, data):
                put_bytes(session, path, data)
        known = remembered(session)
        ours = known["ours"] | {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
        if ours != known["ours"]:
            write(session, {**known, "ours": ours})


def folder_for(script: str) -> str:
    """Where the pictures of a script lie in its session."""
    return f"{RENDERS}/{os.path.normpath(script).removesuffix('.py')}"
