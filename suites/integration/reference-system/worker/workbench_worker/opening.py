"""What a session is for: its role, the entries of its list, and the hand-over that it starts from.

Said once by the controller, before an agent begins, and kept beside the session's files, where no code of
the session reaches.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from workbench_contract.episodes import AgentRole
from workbench_contract.handover import FileBytes, Given, HandedFile, OpenRequest
from workbench_foundation import faults
from workbench_planning import objectives as objectives_file
from workbench_planning.todo_md import Issued
from workbench_worker.files_api import put_bytes
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session

_RECORD = "opened.json"

#: For the planted faults alone: what was opened last, and which sessions this process has opened.
_last: list[OpenRequest] = []
_mine: set[str] = set()


def open_session(session: Session, request: OpenRequest) -> list[HandedFile]:
    """Open a session; what it begins with. Opening it again in the same way changes nothing.

    Raises:
        Refused: 409 when it is open for something else; 403 and 409 for files that it cannot have.
    """
    _last[:] = [request]
    _mine.add(session.id)
    with session.lock:
        record, asked = session.home / _RECORD, request.model_dump_json()
        files = [described(each) for each in request.files]
        if record.exists():
            if record.read_text(encoding="utf-8") != asked:
                detail = f"cannot open session {session.id}: it is open for something else"
                raise Refused(409, f"{detail}. Use another session")
            return files
        for each in (*request.files, *request.resumed, *request.context):
            put_bytes(session, each.path, each.content)
        # Last: until it is there nothing of the agent's has run, and all of this is done again.
        _write_whole(record, asked)
        return files


def opened(session: Session) -> OpenRequest:
    """What a session is for.

    Raises:
        Refused: 409 when nobody has said so.
    """
    record = session.home / _RECORD
    if faults.on("handover-forgotten-by-restart") and session.id not in _mine:
        return OpenRequest(role=AgentRole.PLANNER)
    if not record.exists():
        detail = f"cannot hand over from session {session.id}: it has no role. Open it first"
        raise Refused(409, detail)
    found = OpenRequest.model_validate_json(record.read_bytes())
    if faults.on("todo-of-last-session"):
        found.issued = _last[0].issued
    if faults.on("benchmark-of-last-session"):
        found.given, found.files = _last[0].given, _last[0].files
    return found


def purpose_of(session: Session) -> OpenRequest:
    """What a session is for; a planner's, where nobody has said so."""
    try:
        return opened(session)
    except Refused:
        return OpenRequest(role=AgentRole.PLANNER)


def issued(request: OpenRequest) -> tuple[Issued, ...]:
    """The entries of its list, as the gate takes them."""
    return tuple(Issued(id=each.id, text=each.text) for each in request.issued)


def benchmark_of(request: OpenRequest) -> bytes | None:
    """The objectives that a planner was given, byte for byte."""
    given = given_files(request.given)
    if objectives_file.FILE not in given:
        return None
    return next(
        (each.content for each in request.files if each.path == objectives_file.FILE), None
    )


def given_files(given: Given | None) -> dict[str, str]:
    """Path to sha256 of what a session was handed."""
    return {each.path: each.sha256 for each in given.files} if given else {}


def described(file: FileBytes) -> HandedFile:
    """A file without its bytes."""
    digest = hashlib.sha256(file.content).hexdigest()
    return HandedFile(path=file.path, sha256=digest, size_bytes=len(file.content))


def _write_whole(path: Path, text: str) -> None:
    """Whole or not there, whenever the worker is killed."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
