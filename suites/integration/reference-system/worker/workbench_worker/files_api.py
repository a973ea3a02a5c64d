"""The endpoints for a session's files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from workbench_contract.events import EventKind, EventPage
from workbench_contract.files import (
    CONTENT_CHARS,
    VIEWED_BYTES,
    Deleted,
    DeleteRequest,
    EditRequest,
    Entry,
    EntryKind,
    FileContent,
    FileWritten,
    GitCommitRequest,
    GitCommitted,
    GitInitialised,
    GitInitRequest,
    GrepMatch,
    GrepMatches,
    GrepRequest,
    LintFinding,
    LintReport,
    LintRequest,
    Listing,
    ListRequest,
    ReadRequest,
    Viewed,
    ViewRequest,
    WriteRequest,
)
from workbench_contract.places import SKILLS
from workbench_contract.skills import ReadVia
from workbench_foundation import faults
from workbench_worker import beneath, planted
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.execution import Ended, run_command
from workbench_worker.refusal import Refused
from workbench_worker.sessions import RECORD, Session, unchangeable
from workbench_worker.skills import note_read
from workbench_worker.toolcalls import tool_call

router = APIRouter(responses=refusals(403, 404, 409, 503))

_ENTRIES = 5_000
#: What can be looked at: kind, where its mark stands, the mark.
_SIGNATURES = (
    ("image/png", 0, b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", 0, b"\xff\xd8\xff"),
    ("image/webp", 8, b"WEBP"),
    ("video/mp4", 4, b"ftyp"),
    ("video/webm", 0, b"\x1a\x45\xdf\xa3"),
)
_MATCHES = 500
_PROGRAM_S = 20.0
#: What is an error, not a matter of taste.
_RULES = "E4,E7,E9,F"

#: More of them are no use to whoever mends a file.
_MOST_FINDINGS = 500


@router.post("/fs/ls")
def ls(request: ListRequest, session: CurrentSession) -> Listing:
    """List a folder."""
    with tool_call(session, "fs_ls", request):
        with session.opened(request.path, os.O_RDONLY | os.O_DIRECTORY) as folder:
            entries = _entries(folder, os.path.normpath(request.path), request.recursive)
        if request.recursive and session.skills_at and os.path.normpath(request.path) == ".":
            with session.opened(SKILLS, os.O_RDONLY | os.O_DIRECTORY) as folder:
                entries += _entries(folder, SKILLS, recursive=True)
        kept = sorted(entries[:_ENTRIES], key=lambda entry: entry.path)
        return Listing(entries=kept, truncated=len(entries) > _ENTRIES)


@router.post("/fs/read")
def read(request: ReadRequest, session: CurrentSession) -> FileContent:
    """Read a text file; the session's events are read as `events.jsonl`."""
    with tool_call(session, "fs_read", request) as details:
        with session.lock:
            data = read_bytes(session, request.path)
        # Which version was read: a review rests on it.
        details["sha256"] = _sha256(data)
        try:
            content = data.decode("utf-8")
        except UnicodeDecodeError as error:
            detail = f"cannot read {request.path!r} as text: {error}. Get it from /assets"
            raise Refused(409, detail) from error
        return FileContent(
            path=request.path, content=content, size_bytes=len(data), sha256=_sha256(data)
        )


@router.post("/fs/view")
def view(request: ViewRequest, session: CurrentSession) -> Viewed:
    """Look at an image or a video."""
    with tool_call(session, "fs_view", request) as details:
        with session.lock:
            if faults.on("view-follows-links"):
                data = (session.workspace / request.path).read_bytes()
            else:
                data = read_bytes(session, request.path, most_bytes=VIEWED_BYTES)
        # Which version was looked at: a review rests on it.
        details["sha256"] = _sha256(data)
        media_type = _media_type(data)
        if media_type is None:
            kinds = ", ".join(dict.fromkeys(kind for kind, *_ in _SIGNATURES))
            detail = f"cannot look at {request.path!r}: it is none of {kinds}. Read it instead"
            raise Refused(409, detail)
        return Viewed(
            path=request.path,
            media_type=media_type,
            size_bytes=len(data),
            sha256=_sha256(data),
            content=base64.b64encode(data).decode(),
        )


@router.post("/fs/write")
def write(request: WriteRequest, session: CurrentSession) -> FileWritten:
    """Write a text file; its folders are made."""
    with tool_call(session, "fs_write", request), session.lock:
        return _write(session, request.path, request.content)


@router.post("/fs/edit")
def edit(request: EditRequest, session: CurrentSession) -> FileWritten:
    """Replace a text that a file holds exactly once."""
    with tool_call(session, "fs_edit", request), session.lock:
        text = read_bytes(session, request.path).decode("utf-8", "surrogateescape")
        found = text.count(request.old)
        if found != 1:
            detail = f"cannot edit {request.path!r}: the text is there {found} times. Name one place"
            raise Refused(409, detail)
        return _write(session, request.path, text.replace(request.old, request.new))


@router.post("/fs/delete")
def delete(request: DeleteRequest, session: CurrentSession) -> Deleted:
    """Remove a file, or a folder with all that is in it."""
    with tool_call(session, "fs_delete", request), session.lock:
        folder, name = _split(session, request.path)
        with (
            session.opened(folder, os.O_RDONLY | os.O_DIRECTORY) as parent,
            beneath.refusing(request.path),
        ):
            # By whatever way: where skills are put stays.
            if session.skills_at and name == SKILLS and _is_root(session, parent):
                raise unchangeable(request.path)
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                shutil.rmtree(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
        return Deleted(path=request.path)


@router.post("/fs/grep")
async def grep(request: GrepRequest, session: CurrentSession, worker: Worker) -> GrepMatches:
    """Find lines by a regular expression (as `grep -E`)."""
    with tool_call(session, "fs_grep", request):
        with session.opened(request.path, os.O_RDONLY | os.O_NONBLOCK):
            pass  # it is there, and inside
        argv = ["grep", "-rnIHEZ", "--no-messages", f"--exclude={RECORD}", "-e", request.pattern, "--", request.path]
        ended = await _program(session, worker, argv)
        if ended.exit_code > 1 or ended.timed_out:
            why = "it took too long" if ended.timed_out else ended.stderr.strip()
            raise Refused(409, f"cannot search for {request.pattern!r}: {why}. Change the pattern")
        lines = ended.stdout.removesuffix("\n").split("\n") if ended.stdout else []
        matches = []
        for line in lines[:_MATCHES]:
            path, _, rest = line.partition("\0")
            number, _, text = rest.partition(":")
            if number.isdecimal():
                matches.append(GrepMatch(path=os.path.normpath(path), line=int(number), text=text))
        return GrepMatches(matches=matches, truncated=ended.truncated or len(lines) > _MATCHES)


@router.post("/git/init")
async def git_init(request: GitInitRequest, session: CurrentSession, worker: Worker) -> GitInitialised:
    """Make the session's root a git repository."""
    with tool_call(session, "git_init", request):
        await _git(session, worker, "init", "--quiet", "--initial-branch=main")
        return GitInitialised(branch="main")


@router.post("/git/commit")
async def git_commit(
    request: GitCommitRequest, session: CurrentSession, worker: Worker
) -> GitCommitted:
    """Commit everything."""
    with tool_call(session, "git_commit", request):
        skills = [f":!{SKILLS}"] if session.skills_at else []
        await _git(session, worker, "add", "--all", "--", ".", f":!{RECORD}", *skills)
        await _git(session, worker, "commit", "--quiet", "-m", request.message)
        return GitCommitted(commit=(await _git(session, worker, "rev-parse", "HEAD")).strip())


@router.post("/lint")
async def lint(request: LintRequest, session: CurrentSession, worker: Worker) -> LintReport:
    """Check a Python file by ruff; what it finds is recorded as an event."""
    with tool_call(session, "lint", request) as details:
        with session.opened(request.path, os.O_RDONLY | os.O_NONBLOCK):
            pass
        argv = ["ruff", "check", "--isolated", "--no-cache", f"--select={_RULES}",
                "--output-format=json-lines", "--", request.path]  # fmt: skip
        ended = await _program(session, worker, argv)
        if ended.exit_code not in (0, 1):
            raise Refused(409, f"cannot lint {request.path!r}: {ended.stderr.strip()}. Correct it")
        lines = ended.stdout.splitlines()
        # Where the output was cut, the last line is none.
        cut = ended.truncated and not faults.on("fuzz-lint-breaks")
        whole = lines[:-1] if cut else lines
        findings = [_finding(json.loads(line)) for line in whole][:_MOST_FINDINGS]
        details["passed"] = not lines
        if findings and not planted.lint_failure_unrecorded(session.id):
            codes = [finding.code for finding in findings]
            session.record(EventKind.LINT_FAILURE, {"path": request.path, "codes": codes})
        return LintReport(
            path=request.path,
            passed=not lines,
            findings=findings,
            truncated=len(lines) > len(findings),
        )


@router.get(
    "/assets/{path:path}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def asset(path: str, session: CurrentSession) -> Response:
    """A file as it is, of any size that the session's code may make."""
    with session.lock:
        data = read_bytes(session, path, most_bytes=None)
    return Response(data, media_type="application/octet-stream")


@router.get("/events")
def events(session: CurrentSession, after: Annotated[int, Query(ge=0)] = 0) -> EventPage:
    """The session's events after a number, in order."""
    return session.events.page(after=after, limit=500)


def read_bytes(
    session: Session, path: str, *, most_bytes: int | None = 4 * CONTENT_CHARS
) -> bytes:
    """The bytes of a file of a session.

    Raises:
        Refused: it is no file of the session, or a larger one.
    """
    if os.path.normpath(path) == RECORD:
        return session.events.path.read_bytes()
    with session.opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(409, f"cannot read {path!r}: it is no file. List it instead")
        if most_bytes is not None and found.st_size > most_bytes:
            raise Refused(409, f"cannot read {path!r}: {found.st_size} bytes are too many. Split it")
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read()
    if most_bytes is not None or not faults.on("skills-fetched-unseen"):
        note_read(session, path)
    return data


def holds(session: Session, path: str, data: bytes) -> bool:
    """Whether a session has a file of exactly these bytes."""
    try:
        return read_bytes(session, path, most_bytes=len(data)) == data
    except Refused:
        return False


def _media_type(data: bytes) -> str | None:
    """What an image or a video is, by its own mark."""
    found = (kind for kind, at, mark in _SIGNATURES if data[at : at + len(mark)] == mark)
    return next(found, None)


def _write(session: Session, path: str, content: str) -> FileWritten:
    data = content.encode("utf-8", "surrogateescape")
    put_bytes(session, path, data)
    return FileWritten(path=path, size_bytes=len(data), sha256=_sha256(data))


def put_bytes(session: Session, path: str, data: bytes) -> None:
    """Write a file of a session; its folders are made.

    Raises:
        Refused: it leaves the session, or cannot be a file.
    """
    folder, name = _split(session, path)
    _make_folders(session, folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK
    with session.opened(os.path.join(folder, name), flags, mode=0o644) as fd:
        session.give(fd)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)


def _make_folders(session: Session, folder: str) -> None:
    """Make a folder and those above it, each looked at by the kernel's rule."""
    made = "."
    for part in folder.split("/"):
        with session.opened(made, os.O_RDONLY | os.O_DIRECTORY) as parent, beneath.refusing(folder):
            try:
                os.mkdir(part, 0o755, dir_fd=parent)
                new = True
            except FileExistsError:
                new = False
        made = os.path.join(made, part)
        if new:
            with session.opened(made, os.O_RDONLY | os.O_DIRECTORY) as fd:
                session.give(fd)


def _is_root(session: Session, folder: int) -> bool:
    found, root = os.fstat(folder), os.stat(session.workspace)
    return (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino)


def _split(session: Session, path: str) -> tuple[str, str]:
    """Folder and name of what is changed.

    Raises:
        Refused: it is the root itself, outside, or the session's record.
    """
    if path.startswith("/") or ".." in path.split("/"):
        raise Refused(403, f"cannot change {path!r}: it leaves the session. Name a file inside it")
    clean = os.path.normpath(path)
    if clean == RECORD:
        raise Refused(403, f"cannot change {RECORD}: the worker keeps it. Use another name")
    if session.skill_path(clean) is not None:
        raise unchangeable(path)
    folder, name = os.path.split(clean)
    if clean == ".":
        raise Refused(409, "cannot change the session's root: it stays. Name a file inside it")
    return folder or ".", name


def _entries(folder: int, prefix: str, recursive: bool) -> list[Entry]:
    """What is in a folder; what the session's code removes meanwhile is not in it."""
    found: list[Entry] = []
    for where, folders, files, fd in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (*folders, *files):
            if len(found) > _ENTRIES:
                return found
            try:
                state = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                if faults.on("listing-trips"):
                    raise
                continue
            kind = EntryKind.FILE
            if stat.S_ISDIR(state.st_mode):
                kind = EntryKind.DIRECTORY
            elif stat.S_ISLNK(state.st_mode):
                kind = EntryKind.LINK
            # A name is bytes; what is no UTF-8 in it cannot stand in an answer.
            path = os.fsencode(os.path.normpath(os.path.join(prefix, where, name)))
            shown = path.decode("utf-8", "replace")
            found.append(Entry(path=shown, kind=kind, size_bytes=state.st_size))
        if not recursive:
            return found
    return found


async def _git(session: Session, worker: Worker, *words: str) -> str:
    # A repository's own settings and hooks are the session's code, so git runs behind its walls.
    who = ("-c", "user.name=agent", "-c", "user.email=agent@workbench.invalid")
    ended = await _program(session, worker, ["git", *who, *words])
    if ended.exit_code != 0:
        why = (ended.stderr or ended.stdout).strip() or "it ended without a word"
        raise Refused(409, f"cannot git {words[0]}: {why}. Bring the repository in order")
    return ended.stdout


def _finding(found: dict[str, Any]) -> LintFinding:
    """One line of the linter's."""
    return LintFinding(
        code=found["code"] or "syntax", message=found["message"], line=found["location"]["row"]
    )


async def _program(session: Session, worker: Worker, argv: list[str]) -> Ended:
    async with worker.jobs.job(session, None) as job:
        return await run_command(
            job, argv, timeout_s=_PROGRAM_S, settings=worker.settings, via=ReadVia.FILE_API
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
