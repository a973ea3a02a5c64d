"""The repository of a stack's skills, as whoever runs it has it: commits of any content, made by git itself.

What git cannot be brought to commit by a working tree (links out of it, submodules of nothing) is written by
``git fast-import``.
"""

from __future__ import annotations

import shutil  # lint: allow local-write: an operator's repository
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.front.skips import not_run
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.here import on_this_machine
from suites.integration.stack import layout_of

__all__ = ["LINK", "SUBMODULE", "Content", "Skills", "repository", "skill"]

#: Modes of git.
FILE: Final = "100644"
LINK: Final = "120000"
SUBMODULE: Final = "160000"

#: Of a file its text; of anything else its mode, and where a link leads or which commit a submodule is at.
Content = str | tuple[str, str]

_WHO: Final = "operator <operator@example.invalid> 1700000000 +0000"


def skill(name: str, body: str, *, description: str = "when it is asked for") -> str:
    """The ``SKILL.md`` of a skill."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


class Skills:
    """A git repository with skills.

    Args:
        path: where the stack looks for it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    async def commit(self, files: Mapping[str, Content], *, forced: bool = False) -> str:
        """One more commit of exactly these files; its id.

        Args:
            files: by their paths; see ``Content``.
            forced: it follows none, and takes the place of all that were there.
        """
        await self.made()
        history = [] if forced else (await self._git("rev-list", "-1", "--all")).split()
        lines = [b"commit refs/heads/main", f"committer {_WHO}".encode(), _data("more")]
        lines += [f"from {parent}".encode() for parent in history]
        lines.append(b"deleteall")
        for path, content in files.items():
            mode, text = (FILE, content) if isinstance(content, str) else content
            what = text if mode == SUBMODULE else "inline"
            lines.append(f"M {mode} {what} {_quoted(path)}".encode())
            if mode != SUBMODULE:
                lines.append(_data(text))
        await self._git("fast-import", "--quiet", "--force", given=b"\n".join(lines) + b"\n")
        return (await self._git("rev-parse", "refs/heads/main")).strip()

    async def made(self) -> None:
        """It is there, with whatever commits it has."""
        if not self.path.exists():
            words = ["git", "init", "--quiet", "--initial-branch=main", str(self.path)]
            await trio.run_process(words, capture_stdout=True)

    async def dirty(self, commit: str) -> None:
        """Its working tree is that of a commit, whatever its branch is at."""
        await self._git("read-tree", "--reset", "-u", commit)

    @contextmanager
    def away(self) -> Iterator[None]:
        """It is not there for as long as the block lasts."""
        aside = self.path.with_name(f"{self.path.name}.aside")
        self.path.rename(aside)  # lint: allow local-write: an operator's repository
        try:
            yield
        finally:
            aside.rename(self.path)  # lint: allow local-write: an operator's repository

    async def _git(self, *words: str, given: bytes = b"") -> str:
        command = ["git", "-C", str(self.path), *words]
        done = await trio.run_process(command, stdin=given, capture_stdout=True)
        return done.stdout.decode()


@contextmanager
def repository(stack: Stack, subject: Subject) -> Iterator[Skills]:
    """The repository of a stack: not there at first, and removed in the end.

    Raises:
        HarnessError: there is one already, of which nobody here knows.
    """
    worker = stack["worker"]
    named = worker.environment.get(layout_of(subject).skills, "")
    if not named:
        not_run("subject", "its worker's environment names no repository of skills")
    on_this_machine(worker)
    path = Path(named.removeprefix("file://"))
    if path.exists():
        raise HarnessError(
            "make a repository of skills",
            observed=f"{path} is there already",
            next_step="Name an empty place in the compose file; a test makes it and removes it",
        )
    try:
        yield Skills(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _data(text: str) -> bytes:
    data = text.encode()
    return b"data %d\n%b" % (len(data), data)


def _quoted(path: str) -> str:
    """A path as fast-import reads it, any character in it."""
    plain = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
    return '"' + "".join(plain.get(each, each) for each in path) + '"'
