"""A finding of the lint, and a source file it can be found in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: What a check finds: where, against which rule, and what to do.
Finding = tuple[ast.AST, str, str]

#: ``# lint: allow RULE: reason`` on a line accepts that rule there. A reason is demanded.
_ALLOWED = re.compile(r"#\s*lint:\s*allow\s+([a-z-]+):\s*\S")

_IMPORTING = frozenset({"import_module", "__import__", "importorskip"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One finding; its text is ``file:line: rule: what to do``."""

    path: str
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.advice}"


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A Python file, parsed and walked once for all checks.

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

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def calls(self) -> tuple[tuple[ast.Call, str], ...]:
        """Every call, with the dotted name of what is called."""
        return tuple((node, dotted(node.func)) for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def imports(self) -> tuple[tuple[ast.AST, str], ...]:
        """Every absolute dotted name that is imported, ``from a import b`` giving ``a.b``.

        Imports by call (``import_module("x")``, ``__import__("x")``, ``importorskip("x")``) count
        when the name is written out.
        """
        found: list[tuple[ast.AST, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found += ((node, f"{node.module}.{alias.name}") for alias in node.names)
        for call, name in self.calls:
            first = call.args[0] if call.args else None
            if name.rpartition(".")[2] in _IMPORTING and isinstance(first, ast.Constant):
                found.append((call, str(first.value)))
        return tuple(found)

    @cached_property
    def tests(self) -> tuple[tuple[ast.ClassDef | None, Function], ...]:
        """The test functions of the module and of its test classes, each with its class."""
        found: list[tuple[ast.ClassDef | None, Function]] = []
        for node in self.tree.body:
            owner = (
                node if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else None
            )
            inside = owner.body if owner is not None else [node]
            found += (
                (owner, each)
                for each in inside
                if isinstance(each, Function) and each.name.startswith("test")
            )
        return tuple(found)

    def reached(self, function: Function) -> Iterator[ast.AST]:
        """The nodes of a function, and of each function here that it names: to call it or hand it on."""
        helpers = {node.name: node for node in self.nodes if isinstance(node, Function)}
        waiting, seen = [function], {function.name}
        while waiting:
            for node in _own_nodes(waiting.pop()):
                yield node
                name = dotted(node).rpartition(".")[2]
                if name in helpers and name not in seen:
                    seen.add(name)
                    waiting.append(helpers[name])

    def report(self, findings: Iterable[Finding]) -> Iterator[Problem]:
        """The findings, but for those whose line allows the rule."""
        for node, rule, advice in findings:
            line = getattr(node, "lineno", 1)
            if (line, rule) not in self._allowed:
                yield Problem(path=self.path, line=line, rule=rule, advice=advice)


def below(module: str, *names: str) -> bool:
    """Whether a module is one of these, or inside one."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


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
