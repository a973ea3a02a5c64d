"""The skills of a session: which version it has, reads of it by the worker, and by the session's own code.

The worker reads the files of the version. Code behind walls is given a copy of its own for each process, read-only
at ``skills/`` of its workspace, whose files are watched while it runs (``noticing.py``).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from workbench_contract.events import EventKind
from workbench_contract.places import SKILLS
from workbench_contract.skills import Observed, ReadVia, SkillRead, SkillsGiven
from workbench_foundation import faults
from workbench_worker.noticing import NOTICING, Notices
from workbench_worker.refusal import Refused
from workbench_worker.sessions import SHOWN, SKILLS_RECORD, Session
from workbench_worker.skills_repository import Repository, copied


def give(session: Session, repository: Repository) -> SkillsGiven:
    """The skills of a session: those that the repository is at when it is first asked for them, for good."""
    record = session.home / SKILLS_RECORD
    if record.exists():
        return SkillsGiven.model_validate_json(record.read_bytes())
    given = repository.current()
    if faults.on("skills-away-unsaid") and given.commit is None:
        given = SkillsGiven(commit=None, skills=[], problem="")
    new = record.with_name(f"{SKILLS_RECORD}.{secrets.token_hex(8)}")
    with new.open("w", encoding="utf-8") as file:
        file.write(given.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    new.replace(record)
    if given.commit is not None:
        # Where they are put behind walls: nothing of the agent's has run yet.
        (session.workspace / SKILLS).mkdir(exist_ok=True)
    session.give_skills(given)
    if faults.on("skills-promised"):
        for skill in given.skills:
            _record(session, f"{skill.name}/SKILL.md", via=ReadVia.CODE, observed=Observed.READ, job_id="")
    return given


def note_read(session: Session, path: str) -> None:
    """Record that the worker has read a file, if it is one of a skill's."""
    within = session.skill_path(path)
    if within is not None and not faults.on("skills-file-reads-untold"):
        _record(session, within, via=ReadVia.FILE_API, observed=Observed.READ, job_id=None)


@asynccontextmanager
async def shown(session: Session, job_id: str, *, via: ReadVia) -> AsyncIterator[str]:
    """A copy of the session's skills for one process, watched; empty for a session without.

    The process has ended at the end of the block.

    Raises:
        Refused: 503 when the copy cannot be made or watched: nothing runs unseen.
    """
    if session.skills_at is None:
        yield ""
        return
    place = session.home / SHOWN / secrets.token_hex(8)

    def told(path: str, observed: Observed) -> None:
        searched = via is ReadVia.FILE_API and faults.on("skills-searches-untold")
        if not (searched or faults.on("skills-code-reads-untold")):
            _record(session, path, via=via, observed=observed, job_id=job_id)

    def begin(source: Path) -> Notices:
        if faults.on("skills-of-latest-run"):
            source = max(source.parent.parent.glob(f"*/{SKILLS}"), key=lambda each: each.stat().st_mtime)
        names = copied(source, place)
        return NOTICING.watch({str(place / name): name for name in names}, told)

    try:
        try:
            notices = await asyncio.to_thread(begin, session.skills_at)
        except OSError as error:
            detail = f"cannot show the session its skills: {error.strerror}. Try again"
            raise Refused(503, detail) from error
        try:
            yield str(place)
        finally:
            await asyncio.shield(asyncio.to_thread(NOTICING.end, notices))
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, place, ignore_errors=True))


def _record(
    session: Session, path: str, *, via: ReadVia, observed: Observed, job_id: str | None
) -> None:
    assert session.skills_at is not None
    read = SkillRead(
        skill=path.split("/")[0],
        path=f"{SKILLS}/{path}",
        commit=session.skills_at.parent.name,
        via=via,
        observed=observed,
        job_id=job_id,
    )
    session.record(EventKind.SKILL_READ, read.model_dump(mode="json"))
