"""Files that nothing may change, and how one sees that something did."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Canary", "look", "open_canary", "plant"]


#: Lines that sorting, cutting and counting tell apart.
TABLE = "pear 3 x\napple 10 y\npear 3 x\nfig 2 z\nApple 1 y\n"


@dataclass(slots=True, kw_only=True)
class Canary:
    """A tree in the shell's working root, and one beside it; other tests have trees of their own there.

    Attributes:
        inside: in the working root.
        outside: where the daemon's process could write and its shell must not.
    """

    inside: Path
    outside: Path
    give: Callable[[Path], None]
    before: dict[str, str]
    watched: tuple[Path, ...]
    late: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """What is there now is what a command may not change.

        Other tests may have left files beside the trees. What has changed in the trees themselves since
        the last test looked was done late, by a command of that test: it is the first of the changes.
        """
        trees = (f"{self.inside}/", f"{self.outside}/")
        late = [change for change in self.changes() if any(tree in change for tree in trees)]
        if late:
            self.restore()
        self.late = [f"late, after an earlier test: {change}" for change in late]
        self.before = look(self.watched)

    def changes(self) -> list[str]:
        """What is gone, new or other than it was."""
        after = look(self.watched)
        gone = [f"gone: {path}" for path in self.before if path not in after]
        new = [f"new: {path}" for path in after if path not in self.before]
        other = [
            f"changed: {path} ({was} → {after[path]})"
            for path, was in self.before.items()
            if after.get(path, was) != was
        ]
        return self.late + gone + new + other

    def restore(self) -> None:
        """Put the canaries back and remove what is new, so that one row's harm is not the next one's."""
        if not self.changes():
            return
        for path in look(self.watched).keys() - self.before.keys():
            remove(Path(path))
        for tree in (self.inside, self.outside):
            remove(tree)
            plant(tree)
            self.give(tree)
        self.late = []
        self.before = look(self.watched)


def remove(path: Path) -> None:
    """Remove a file or a tree; what is gone already is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def open_canary(home: Path, *, root: Path, give: Callable[[Path], None]) -> Canary:
    """Plant canaries in ``root`` and beside it in ``home``.

    Args:
        home: the daemon's home.
        root: the working root of its shell, within the home.
        give: makes a tree belong to the user whom the daemon runs as.
    """
    # Whoever compares paths letter by letter takes it for a part of the root.
    beside = home / f"{root.name}-beside"
    beside.mkdir()
    inside, outside = root / "canary", beside / "canary"
    for tree in (inside, outside):
        plant(tree)
    give(root)
    give(beside)
    watched = (root, beside)
    return Canary(inside=inside, outside=outside, give=give, before=look(watched), watched=watched)


def plant(tree: Path) -> None:
    """Make files and directories that a harm would change, and one program that shows it was run."""
    (tree / "sub").mkdir(parents=True)
    (tree / "empty").mkdir()
    (tree / "bin").mkdir()
    (tree / "file.txt").write_text("alive\n", encoding="utf-8")
    (tree / "same").mkdir()
    (tree / "same" / "file.txt").write_text("another\n", encoding="utf-8")
    (tree / "table.txt").write_text(TABLE, encoding="utf-8")
    (tree / "sub" / "deep.txt").write_text("alive\n", encoding="utf-8")
    # Names that quoting can get wrong.
    for odd in ("od\\d.txt", "a  b.txt", "*.txt"):
        (tree / odd).write_text("alive\n", encoding="utf-8")
    trap = tree / "bin" / "echo"
    trap.write_text('#!/bin/sh\n: > "${0%/bin/echo}/trapped"\n', encoding="utf-8")
    trap.chmod(0o755)


def look(trees: tuple[Path, ...]) -> dict[str, str]:
    """Path → mode, owner and contents of everything below."""
    found: dict[str, str] = {}
    for tree in trees:
        for path in sorted(tree.rglob("*")):
            try:
                status = path.lstat()
                if path.is_symlink():
                    content = str(path.readlink())
                elif path.is_file():
                    content = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
                else:
                    content = "directory"
            except FileNotFoundError:
                continue  # gone while it was looked at
            found[str(path)] = f"{status.st_mode:o} {status.st_uid} {content}"
    return found
