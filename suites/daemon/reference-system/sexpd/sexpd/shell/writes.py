"""What may a command change?

One principle: what commands of this daemon created, they may change and remove again; whatever else
exists stays what it is and where it is, and outside the working root nothing is written at all.

Paths are judged before the command runs, so a name that will then be something else (a link, a
moved or copied tree) is not written through at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sexpd.shell.verdict import Refused
from sexpd.shell.words import Word

SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"})


def _steps(root: Path, text: str) -> set[Path]:
    """Every place that a name leads through, as it is written."""
    here, steps = root, set()
    for part in Path(text).parts:
        here = Path(os.path.normpath(here / part))
        steps.add(here)
    return steps


@dataclass(slots=True)
class Writes:
    """The changes of one command, judged in the order in which it names them.

    Attributes:
        root: the working root, resolved.
        owned: whether a path that exists was created by an earlier command.
        used: whether the command changes anything.
    """

    root: Path
    owned: Callable[[Path], bool]
    used: bool = False
    _moved: bool = False
    _relative: bool = False
    _own: set[Path] = field(default_factory=set)
    _directories: set[Path] = field(default_factory=set)
    _alias: set[Path] = field(default_factory=set)
    _named: set[Path] = field(default_factory=set)

    @property
    def ours(self) -> tuple[Path, ...]:
        """What will be ours when the command has run: what it creates, and what was ours before."""
        return tuple(sorted(self._own | self._named))

    def _mine(self, path: Path) -> bool:
        if path in self._own:
            return True
        if os.path.lexists(path) and self.owned(path):
            self._named.add(path)
            return True
        return False

    def place(self, word: Word, *, what: str) -> Path:
        """The place inside the root that a word names.

        Raises:
            Refused: it names none for certain.
        """
        if word.text is None or word.spread:
            raise Refused(f"{what} {word}, which is only known when it runs")
        if not word.text:
            raise Refused(f"{what} a name that is empty")
        self.used = True
        self._relative = self._relative or not word.text.startswith("/")
        self._refuse_moved_names()
        lexical = Path(os.path.normpath(self.root / word.text))
        path = Path(os.path.realpath(self.root / word.text))
        # A point further on leads back from there, not from here: NEW/../FILE.
        passed = {path, *path.parents, *_steps(self.root, word.text)}
        if not self._alias.isdisjoint(passed):
            raise Refused(f"{what} {word.text}, which by then is something else")
        if ".." in Path(word.text).parts and lexical != path:
            raise Refused(f"{what} {word.text}, which goes through a link")
        if path != self.root and self.root not in path.parents:
            raise Refused(f"{what} {word.text}, which lies outside the working root")
        return path

    def move_directory(self) -> None:
        """Note that the command changes its directory, perhaps in a loop that names files too."""
        self._moved = True
        self._refuse_moved_names()

    def _refuse_moved_names(self) -> None:
        if self._moved and self._relative:
            raise Refused("it writes a relative name and changes its directory")

    def create(self, word: Word, *, what: str) -> None:
        """Judge a file that is opened for writing, at its end or anew."""
        if word.text in SINKS:
            return
        path = self.place(word, what=what)
        if not os.path.lexists(path):
            self._own.add(path)
        elif path.is_dir() or not self._mine(path):
            raise Refused(f"{what} {word.text}, which exists and was not made here")

    def make_directory(self, word: Word) -> None:
        """Judge mkdir: what exists is left as it is by mkdir itself."""
        path = self.place(word, what="it makes")
        while path != self.root and not os.path.lexists(path):
            self._own.add(path)
            self._directories.add(path)
            path = path.parent

    def touch(self, word: Word) -> None:
        """Judge a change of times, which harms nothing inside the root."""
        path = self.place(word, what="it touches")
        if not os.path.lexists(path):
            self._own.add(path)

    def remove(self, word: Word) -> None:
        """Judge the removal of one file or empty directory."""
        path = self.place(word, what="it removes")
        lexical = Path(os.path.normpath(self.root / str(word.text)))
        if not self._mine(path) or lexical != path:
            raise Refused(f"it removes {word.text}, which was not made here")
        self._give_up(path)

    def change_mode(self, word: Word) -> None:
        """Judge chmod of one file or directory."""
        path = self.place(word, what="chmod changes")
        if not self._mine(path):
            raise Refused(f"chmod changes {word.text}, which was not made here")

    def _give_up(self, path: Path) -> None:
        """Note that a directory's name is free again: what is called so afterwards may be a link."""
        if path.is_dir() or path in self._directories:
            self._alias.add(path)

    def alias(self, word: Word, *, what: str) -> None:
        """Judge a new name for something: a link, or a place that things are moved or copied to."""
        path = self.place(word, what=what)
        if os.path.lexists(path) or any(path == o or path in o.parents for o in self._own):
            raise Refused(f"{what} {word.text}, which exists")
        self._alias.add(path)

    def move(self, source: Word, destination: Word) -> None:
        """Judge mv of one source."""
        path = self.place(source, what="mv takes away")
        if not self._mine(path):
            raise Refused(f"mv takes away {source.text}, which was not made here")
        self._give_up(path)
        target = self.target(destination, source, what="mv writes")
        self.alias(target, what="mv writes")
        self._named.add(self.root / str(target.text))

    def target(self, destination: Word, source: Word, *, what: str) -> Word:
        """Where cp and mv put one source: the destination, or a name inside it."""
        path = self.place(destination, what=what)
        known = path.is_dir() or path in self._directories
        if not (known or str(destination.text).endswith("/")):
            return destination
        if source.text is None or source.spread:
            raise Refused(f"{what} {destination}/{source}, which is only known when it runs")
        # cp takes what is in a directory, not the directory, if it is named so: DIRECTORY/.
        name = source.text.rstrip("/").rpartition("/")[2]
        if name in {"", ".", ".."}:
            raise Refused(f"{what} {destination} whatever {source.text} is called")
        inside = str(path / name)
        return Word(text=inside, head=inside)
