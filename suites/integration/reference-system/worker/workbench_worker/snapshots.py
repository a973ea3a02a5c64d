"""The files of a session as they are at one moment, bounded in number and size."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench_contract.files import PATH_CHARS
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import MOST_BYTES, MOST_FILES, HandedFile
from workbench_planning.text import finding
from workbench_worker.files_api import read_bytes
from workbench_worker.refusal import Refused
from workbench_worker.sessions import RECORD, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a role leaves.

    Attributes:
        files: path to bytes.
        findings: what stands in a file's place and cannot be read.
    """

    files: Mapping[str, bytes]
    findings: tuple[Finding, ...]

    def listed(self) -> list[HandedFile]:
        """The files without their bytes, by path."""
        return [
            HandedFile(
                path=path, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data)
            )
            for path, data in sorted(self.files.items())
        ]


def named(session: Session, names: Sequence[str]) -> Left:
    """Those of some files that are there; findings for what stands in their place."""
    files: dict[str, bytes] = {}
    findings = []
    for name in names:
        try:
            files[name] = read_bytes(session, name, most_bytes=None)
        except Refused as refused:
            if refused.status == 404:
                continue
            found = "a link that leaves the session" if refused.status == 403 else "no plain file"
            expected = "the file itself, with what it is for"
            findings.append(finding(name, "", found, expected, stage=Stage.PRESENT))
    return Left(files=files, findings=tuple(findings))


def whole_session(session: Session) -> tuple[Left, frozenset[str]]:
    """Everything that a script of a session may be made of, and which of it is no plain file.

    A link is where it leads, as a text; what is neither file nor link has no bytes.
    """
    with session.lock:
        return _all(session, _is_passed_over)


def design(session: Session) -> Left:
    """All plain files of a session, but its record and what tools keep for themselves."""
    left, odd = _all(session, _is_left_out)
    files = {path: data for path, data in left.files.items() if path not in odd}
    return Left(files=files, findings=left.findings)


def _all(session: Session, passed_over: Callable[[str], bool]) -> tuple[Left, frozenset[str]]:
    paths: dict[str, bytes | None] = {}
    with session.opened(".", os.O_RDONLY | os.O_DIRECTORY) as root:
        for where, folders, names, fd in os.fwalk(".", dir_fd=root, follow_symlinks=False):
            links = [each for each in folders if _odd(fd, each) is not None]
            folders[:] = sorted(set(folders) - {*links, *filter(passed_over, folders)})
            for name in sorted([*names, *links]):
                path = os.path.normpath(os.path.join(where, name))
                if len(path) > PATH_CHARS:
                    found = f"a path of {len(path)} characters"
                    return _too_much(found, f"paths of at most {PATH_CHARS} characters")
                if path != RECORD and not passed_over(name) and _is_text(name):
                    paths[path] = _odd(fd, name)
            if len(paths) > MOST_FILES:
                return _too_much(f"more than {MOST_FILES} files", f"at most {MOST_FILES} files")
    files: dict[str, bytes] = {}
    room = MOST_BYTES
    for path, odd in paths.items():
        try:
            files[path] = read_bytes(session, path, most_bytes=room) if odd is None else odd
        except Refused as refused:
            if refused.status == 404:
                continue  # the session's code has removed it meanwhile
            return _too_much(f"more than {MOST_BYTES} bytes", f"at most {MOST_BYTES} bytes in all")
        room -= len(files[path])
    return Left(files=files, findings=()), frozenset(path for path in paths if paths[path] is not None)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _is_passed_over(name: str) -> bool:
    return name in (".git", "__pycache__")


def _odd(folder: int, name: str) -> bytes | None:
    """What stands for the bytes of a name that is no plain file; none for one that is."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return b"-> " + os.fsencode(os.readlink(name, dir_fd=folder))
        return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else b"-> nothing that can be read"
    except FileNotFoundError:
        return None


def _is_text(name: str) -> bool:
    """A name that is no text names nothing of a hand-over."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_much(found: str, expected: str) -> tuple[Left, frozenset[str]]:
    findings = (finding(".", "", found, expected, stage=Stage.PRESENT),)
    return Left(files={}, findings=findings), frozenset()
