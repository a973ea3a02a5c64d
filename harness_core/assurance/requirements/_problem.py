"""A finding of the lint, and a source file it can be found in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: ``# lint: allow RULE: reason`` on a line accepts that rule there. A reason is demanded.
_ALLOWED = re.compile(r"#\s*lint:\s*allow\s+([a-z-]+):\s*\S")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One finding; its text is ``file:line: rule: what to do``."""

    path: str
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A parsed Python file.

    Attributes:
        path: as it is shown in findings.
        tree: its syntax tree; empty when it does not parse.
        problems: why it does not parse.
    """

    path: str
    tree: ast.Module
    problems: tuple[Problem, ...] = ()
    _allowed: frozenset[tuple[int, str]] = field(default=frozenset(), repr=False)

    @classmethod
    def read(cls, path: Path, *, root: Path) -> SourceFile:
        """Parse a file below ``root``."""
        return cls.parse(path.read_text(encoding="utf-8"), path=path.relative_to(root).as_posix())

    @classmethod
    def parse(cls, text: str, *, path: str) -> SourceFile:
        """Parse source text; a file that is not Python has one finding and no content."""
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            problem = Problem(
                path=path, line=error.lineno or 1, rule="syntax", advice=f"not Python: {error.msg}"
            )
            return cls(path=path, tree=ast.Module(body=[], type_ignores=[]), problems=(problem,))
        allowed = frozenset(
            (number, match[1])
            for number, line in enumerate(text.splitlines(), start=1)
            if (match := _ALLOWED.search(line))
        )
        return cls(path=path, tree=tree, _allowed=allowed)

    def problem(self, node: ast.AST, rule: str, advice: str) -> Iterator[Problem]:
        """The finding at ``node``, unless its line allows the rule."""
        line = getattr(node, "lineno", 1)
        if (line, rule) not in self._allowed:
            yield Problem(path=self.path, line=line, rule=rule, advice=advice)


def imported_modules(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every absolute dotted name the code imports, ``from a import b`` giving ``a.b``.

    Imports by call (``import_module("x")``, ``__import__("x")``, ``importorskip("x")``) count when
    the name is written out.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = dotted(node.func).rpartition(".")[2]
            name = node.args[0].value
            if called in {"import_module", "__import__", "importorskip"} and isinstance(name, str):
                yield node, name


def below(module: str, *names: str) -> bool:
    """Whether a module is one of these, or inside one."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def tests_in(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    """The test functions of a module and of its test classes, each with its class."""
    for node in tree.body:
        if isinstance(node, Function) and node.name.startswith("test"):
            yield None, node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if isinstance(inner, Function) and inner.name.startswith("test"):
                    yield node, inner


def helpers_in(tree: ast.Module) -> dict[str, Function]:
    """Every function of a module by its name, wherever it stands."""
    return {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}


def reached(function: Function, helpers: Mapping[str, Function]) -> Iterator[ast.AST]:
    """The nodes of a function, and of each helper that it names: to call it, or to hand it on."""
    waiting, seen = [function], {function.name}
    while waiting:
        for node in _own_nodes(waiting.pop()):
            yield node
            name = dotted(node).rpartition(".")[2]
            if name in helpers and name not in seen:
                seen.add(name)
                waiting.append(helpers[name])


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions defined inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a name or attribute; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return ""
