"""Which files of a session a script is made of, by reading it and never by running it.

A script is *plain* when it and all that it imports of the session import nothing else but ``_HARMLESS``
modules and name nothing that can find code or data at run time (``_SUSPICIOUS``: ``open``, ``exec``,
``getattr``, ``__builtins__`` …). What a plain script is made of can be read off it: itself, the modules it
imports with the packages they lie in, and the files that it names in full. Of any other script, and
wherever there are symbolic links, nothing can be promised; it is made of the whole session.

Bytecode is not looked at: whoever runs a script has to give Python a cache folder of its own.
"""

from __future__ import annotations

import ast
import posixpath
import re
from dataclasses import dataclass
from typing import Protocol

#: Neither read files nor find modules but by functions named below.
_HARMLESS = frozenset(
    "__future__ abc bd_warehouse build123d cmath collections copy dataclasses decimal enum fractions "
    "functools itertools math numbers random statistics string typing".split()
)
_SUSPICIOUS = frozenset(
    "ForwardRef __builtins__ __class__ __dict__ __getattribute__ __globals__ __import__ __loader__ "
    "__spec__ __subclasses__ attrgetter breakpoint builtins compile delattr eval exec get_type_hints "
    "getattr globals importlib input io locals loader make_dataclass methodcaller modules open os path "
    "pathlib runpy setattr subprocess sys vars".split()
)
#: Functions of build123d that read a file; of a plain script their first argument is in full.
_READERS = re.compile("import_.*|Mesher|read")


class Session(Protocol):
    """The files of a session."""

    def paths(self) -> frozenset[str]:
        """All of them, relative, with ``/``; links too."""

    def links(self) -> frozenset[str]:
        """Those that are symbolic links."""

    def read(self, path: str) -> bytes:
        """The bytes of a file; of a link, where it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a script is made of.

    Attributes:
        paths: of the session; the script is one of them.
        whole: None if the script is plain, else why the whole session counts.
    """

    paths: frozenset[str]
    whole: str | None


def sources_of(script: str, session: Session) -> Sources:
    """What a script is made of.

    Args:
        script: its path in the session, where it is a file.
    """
    there = session.paths()
    if session.links():
        return Sources(paths=there, whole="the session has symbolic links")
    roots = ("", posixpath.dirname(script))
    found, waiting = {script}, [script]
    while waiting:
        path = waiting.pop()
        if not path.endswith(".py"):
            continue
        reading = _Reading(path, there, roots)
        why = reading.read(session.read(path))
        if why is not None:
            return Sources(paths=there, whole=f"{path} {why}")
        new = reading.found - found
        found |= new
        waiting.extend(sorted(new))
    return Sources(paths=frozenset(found), whole=None)


class _Reading:
    """One module: what it takes of the session."""

    def __init__(self, path: str, there: frozenset[str], roots: tuple[str, ...]) -> None:
        self.found: set[str] = set()
        self._package = posixpath.dirname(path)
        self._there = there
        self._roots = tuple(dict.fromkeys(roots))
        self._called: set[int] = set()

    def read(self, source: bytes) -> str | None:
        """Fill ``found``; the reason if this module is not plain."""
        try:
            tree = ast.parse(source)
        # Null bytes, unknown encodings, brackets a thousand deep.
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return "is no Python that can be read"
        nodes = list(ast.walk(tree))
        self._called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            why = self._look(node)
            if why is not None:
                return why
        return None

    def _look(self, node: ast.AST) -> str | None:
        match node:
            case ast.Import():
                return next(filter(None, (self._import(alias.name) for alias in node.names)), None)
            case ast.ImportFrom():
                return self._from(node)
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SUSPICIOUS:
                return f"names {name}"
            case ast.Name(id=name) | ast.Attribute(attr=name) if _READERS.fullmatch(name):
                # By another name it would not be known when it is called.
                return None if id(node) in self._called else f"passes {name} on"
            case ast.Call():
                return self._call(node)
            case ast.Constant(value=str(text)):
                self._name(text)
        return None

    def _import(self, name: str) -> str | None:
        ours = self._take(name, self._roots)
        if not ours and name.partition(".")[0] not in _HARMLESS:
            return f"imports {name}"
        return None

    def _from(self, node: ast.ImportFrom) -> str | None:
        module = node.module or ""
        named = [alias.name for alias in node.names]
        suspicious = sorted(_SUSPICIOUS.intersection(named))
        if suspicious:
            return f"names {suspicious[0]}"
        renamed = [alias.name for alias in node.names if alias.asname not in (None, alias.name)]
        if any(_READERS.fullmatch(name) for name in renamed):
            return f"renames {renamed[0]}"
        roots = self._roots
        if node.level:
            above = self._package.split("/") if self._package else []
            steps = node.level - 1
            if steps > len(above):
                return "imports from above the session"
            roots = ("/".join(above[: len(above) - steps]),)
            if not module:
                self._take_package(roots[0])
        ours = self._take(module, roots) if module else True
        if not ours and module.partition(".")[0] not in _HARMLESS:
            return f"imports {module}"
        if ours:
            for name in named:
                if name == "*":
                    self._take_all(module, roots)
                else:
                    self._take(f"{module}.{name}" if module else name, roots)
        return None

    def _call(self, node: ast.Call) -> str | None:
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                pass
            case _:
                name = "something"
        words = {word.arg or "": word.value for word in node.keywords}
        given = [value for key, value in words.items() if "path" in key or "file" in key]
        if _READERS.fullmatch(name):
            given = [*node.args[:1], *words.values()]
        if all(isinstance(value, ast.Constant) for value in given):
            return None
        return f"calls {name} with a name that is made at run time"

    def _name(self, text: str) -> None:
        """A file that a text names in full."""
        if 0 < len(text) <= 1024 and "\0" not in text:
            for root in self._roots:
                path = posixpath.normpath(posixpath.join(root, text))
                if path in self._there:
                    self.found.add(path)

    def _take(self, module: str, roots: tuple[str, ...]) -> bool:
        """The files of a dotted module, its packages included; whether the session has any."""
        taken = False
        for root in roots:
            parts = module.split(".")
            for depth in range(1, len(parts) + 1):
                stem = posixpath.join(root, *parts[:depth])
                taken |= self._take_stem(stem)
        return taken

    def _take_stem(self, stem: str) -> bool:
        """``stem.py``, ``stem.so``…, ``stem/__init__.py``…; and whether there is such a folder."""
        files = {path for path in self._there if path.startswith((f"{stem}.", f"{stem}/__init__."))}
        modules = {path for path in files if path.endswith((".py", ".pyc", ".so", ".pyd"))}
        self.found |= modules
        return bool(modules) or any(path.startswith(f"{stem}/") for path in self._there)

    def _take_package(self, folder: str) -> None:
        if folder:
            self._take_stem(folder)

    def _take_all(self, module: str, roots: tuple[str, ...]) -> None:
        """All modules of a package: its ``__all__`` may name any of them."""
        for root in roots:
            folder = posixpath.join(root, *module.split(".")) + "/"
            self.found |= {
                path for path in self._there if path.startswith(folder) and path.endswith(".py")
            }
