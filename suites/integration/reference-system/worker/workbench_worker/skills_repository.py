"""The repository of skills: the commit that it is at, and that commit's skills as files, whole or not at all.

Read by the git program, which an agent's tools need anyway: it speaks every transport, and checks objects as
they come in (``fsckObjects``). Nothing is checked out: files are read from the objects, so that no hook, filter,
attribute or submodule of a repository is ever run or followed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench_contract.files import PATH_CHARS
from workbench_contract.places import SKILLS
from workbench_contract.skills import Skill, SkillsGiven
from workbench_foundation import faults
from workbench_planning import skill_md

#: The largest version that is taken.
MOST_FILES = 200
MOST_BYTES = 4 << 20

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINK, _SUBMODULE = "120000", "160000"
_PROTOCOLS = "file:git:http:https:ssh"
_SAID_CHARS = 300
_INDEX = "index.json"


class NoSkills(Exception):
    """There are none to be had; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blob:
    path: str
    sha: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository and the versions of it that were taken.

    Attributes:
        url: as git takes it; empty for none.
        folder: of the versions, by their commits. A version that is there is whole.
        timeout_s: the longest that asking it may take.
    """

    url: str
    folder: Path
    timeout_s: float

    def current(self) -> SkillsGiven:
        """The skills of the commit that its HEAD is at; where there are none, why."""
        try:
            return self._taken()
        except NoSkills as error:
            return SkillsGiven(commit=None, skills=[], problem=str(error))

    def _taken(self) -> SkillsGiven:
        if not self.url:
            raise NoSkills("cannot give skills: no repository of them is configured")
        self.folder.mkdir(parents=True, exist_ok=True)
        before = time.monotonic() + self.timeout_s
        commit = self._head(before)
        if faults.on("skills-of-first-version"):
            earlier = sorted(self.folder.glob(f"*/{_INDEX}"), key=lambda each: each.stat().st_mtime)
            commit = earlier[0].parent.name if earlier else commit
        index = self.folder / commit / _INDEX
        if not index.exists():
            commit = self._fetched(before)
            index = self.folder / commit / _INDEX
        return SkillsGiven.model_validate_json(index.read_bytes())

    def _head(self, before: float) -> str:
        told = self._git(["ls-remote", "--", self.url, "HEAD"], before=before, cwd=self.folder)
        commit = told.split(b"\t")[0].decode("ascii", "replace")
        if not _COMMIT.fullmatch(commit):
            raise NoSkills("cannot give skills: the repository of them has no commit at its HEAD")
        return commit

    def _fetched(self, before: float) -> str:
        """Take the version that HEAD is at now, into its place in one step."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as made:
            git, new = Path(made) / "git", Path(made) / "version"
            self._git(["init", "--quiet", "--bare", "--template=", str(git)], before=before, cwd=made)
            fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--", self.url, "HEAD"]
            self._git(fetch, before=before, cwd=git)
            told = self._git(["rev-parse", "FETCH_HEAD^{commit}"], before=before, cwd=git)
            commit = told.decode().strip()
            blobs = _judged(self._git(["ls-tree", "-rlz", "--full-tree", commit], before=before, cwd=git))
            skills: list[Skill] = []
            for blob in blobs:
                data = self._git(["cat-file", "blob", blob.sha], before=before, cwd=git)
                folder, _, name = blob.path.partition("/")
                if name == skill_md.FILE:
                    skills.append(_skill(data, folder))
                _write(new / SKILLS / blob.path, data)
            given = SkillsGiven(commit=commit, skills=skills, problem="")
            _write(new / _INDEX, given.model_dump_json().encode())
            new.chmod(0o755)
            try:
                new.rename(self.folder / commit)
            except OSError:
                # Another run has taken it meanwhile: of the same commit it is the same.
                if not (self.folder / commit / _INDEX).exists():
                    raise
            return commit

    def _git(self, words: list[str], *, before: float, cwd: str | Path) -> bytes:
        """What git answers.

        Raises:
            NoSkills: it says no, or not in time.
        """
        safe = ("-c", "fetch.fsckObjects=true", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
        process = subprocess.Popen(
            ["git", *safe, *words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(os.environ),
            start_new_session=True,
        )
        with process, _ended(process):
            try:
                out, err = process.communicate(timeout=max(0.01, before - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                detail = f"it did not answer within {self.timeout_s:g} s"
                raise NoSkills(f"cannot reach the repository of skills: {detail}") from error
        if process.returncode != 0:
            said = err.decode("utf-8", "replace").replace(self.url, "URL").strip()
            said = " ".join(said.split())[:_SAID_CHARS] or "git ended without a word"
            raise NoSkills(f"cannot reach the repository of skills: {said}")
        return out


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """What git has begun ends with the block, whatever comes of it."""
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Nobody is asked for anything, and no settings of this machine count."""
    return {
        "PATH": ours.get("PATH", os.defpath),
        "HOME": ours.get("HOME", "/nonexistent"),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    }


def _judged(listed: bytes) -> list[_Blob]:
    """The files of all skills in a tree.

    Raises:
        NoSkills: there is none, or something in the tree is not taken.
    """
    blobs: list[_Blob] = []
    for line in listed.split(b"\0")[:-1]:
        words, _, raw = line.partition(b"\t")
        mode, _, sha, size = words.decode("ascii").split()
        path = _named(raw)
        if mode == _SUBMODULE:
            raise NoSkills(f"cannot take skills: {path!r} is a submodule; files alone are taken")
        if mode == _LINK and not faults.on("skills-links-dropped"):
            raise NoSkills(f"cannot take skills: {path!r} is a link; files alone are taken")
        if mode != _LINK:
            blobs.append(_Blob(path=path, sha=sha, size_bytes=int(size)))
    folders = {b.path.split("/")[0] for b in blobs if b.path.count("/") == 1 and b.path.endswith("/" + skill_md.FILE)}
    found = [blob for blob in blobs if blob.path.split("/")[0] in folders and "/" in blob.path]
    if not found:
        raise NoSkills(f"cannot take skills: no folder at the top has a {skill_md.FILE}")
    size_bytes = sum(blob.size_bytes for blob in found)
    if len(found) > MOST_FILES or size_bytes > MOST_BYTES:
        detail = f"{len(found)} files of {size_bytes} bytes are more than {MOST_FILES} of {MOST_BYTES}"
        raise NoSkills(f"cannot take skills: {detail}")
    return found


def _named(raw: bytes) -> str:
    """A path of a tree.

    Raises:
        NoSkills: it cannot stand in an event, or would not stay in its folder.
    """
    path = raw.decode("utf-8", "backslashreplace")
    parts = path.split("/")
    plain = path.isprintable() and path.encode("utf-8", "replace") == raw
    inside = not {"", ".", "..", ".git"} & {part.casefold() for part in parts}
    if not (plain and inside and len(path) + len(SKILLS) < PATH_CHARS):
        raise NoSkills(f"cannot take skills: {path[:200]!r} is no name for a file of a skill")
    return path


def _skill(data: bytes, folder: str) -> Skill:
    skill, findings = skill_md.read_skill(data, folder=folder)
    if skill is None:
        if faults.on("skills-broken-taken"):
            return Skill(name=folder, description="")
        first = findings[0]
        where = f"{first.file}, {first.where}" if first.where else first.file
        found = f"{where}: found {first.found}, expected {first.expected}"
        raise NoSkills(f"cannot take skills: {found}")
    return skill


def _write(path: Path, data: bytes) -> None:
    """A file that anybody may read; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)


def copied(source: Path, target: Path) -> list[str]:
    """Copy a version's files; their paths, in order.

    The copies are other files to the kernel, so that whoever opens one of them opens no other.
    """
    shutil.copytree(source, target)
    for where, folders, _ in os.walk(target):
        os.chmod(where, 0o755)
        folders.sort()
    found = (path for path in target.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(target)) for path in found)
