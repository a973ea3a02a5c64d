"""Capabilities: what a suite declares, what its tests are marked with, what its code asks for.

A capability is asked for where its name is held to those of a subject: ``"x" in subject.capabilities``,
``subject.capabilities - {X}``; a name in capitals is a text that some module of the suite binds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness_core.assurance.requirements._coverage import Covering
from harness_core.assurance.requirements._problem import Problem, SourceFile, dotted
from harness_core.system.suites import Capability, Suite

#: Name → where tests are marked with it, or code asks for it.
Places = Mapping[str, Sequence[tuple[SourceFile, ast.AST]]]

_CLAIMED = "subject.capabilities"
_MARK = "mark.capability"


def check_capabilities(
    suite: Suite, files: Sequence[SourceFile], tests: Iterable[Covering], *, root: Path
) -> Iterator[Problem]:
    """What does not agree between a suite.toml, its tests and its code.

    Args:
        suite: what is declared.
        files: its sources.
        tests: its test functions.
        root: of the tree.
    """
    marked, asked = marked_names(files), asked_names(files)
    declared = {capability.name for capability in suite.capabilities}
    for name, places in (*marked.items(), *asked.items()):
        if name not in declared:
            for file, node in places:
                advice = f"declare {name!r} as a [[capability]] of suite.toml"
                yield from file.report([(node, "capability-undeclared", advice)])
    known = {test.nodeid for test in tests}
    if suite.boots and suite.boots.partition("[")[0] not in known:
        advice = f"the product is to be started by {suite.boots}, which does not exist"
        yield _row(suite, f'boots="{suite.boots}"', "shown-by-no-test", advice, root=root)
    for capability in suite.capabilities:
        written = f'name="{capability.name}"'
        if not capability.tests and capability.name not in marked and capability.name not in asked:
            advice = (
                f"no test is marked with {capability.name!r} and no code asks for it: take it out"
            )
            yield _row(suite, written, "capability-unused", advice, root=root)
        for test in capability.shown_by:
            if test.partition("[")[0] not in known:
                advice = f"{capability.name!r} is shown by {test}, which does not exist"
                yield _row(suite, written, "shown-by-no-test", advice, root=root)
        for pattern in _idle(suite, capability):
            advice = f"{capability.name!r} is needed by {pattern}, which is no test"
            yield _row(suite, written, "needed-by-no-test", advice, root=root)


def _idle(suite: Suite, capability: Capability) -> Iterator[str]:
    """The patterns of a capability whose words no file has: names may hold those of parameters."""
    for file, name in capability.patterns():
        words = [word for word in name.split("*") if word]
        texts = [path.read_text(encoding="utf-8") for path in suite.folder.glob(file)]
        if not any(all(word in text for word in words) for text in texts):
            yield f"{file}::{name}"


def marked_names(files: Sequence[SourceFile]) -> Places:
    """The capabilities that tests are marked with."""
    return _places(files, _of_mark)


def asked_names(files: Sequence[SourceFile]) -> Places:
    """The capabilities that code asks a subject for."""
    return _places(files, _of_question)


def _places(files: Sequence[SourceFile], parts_of: Callable[[ast.AST], list[ast.expr]]) -> Places:
    texts = _texts(files)
    found: dict[str, list[tuple[SourceFile, ast.AST]]] = {}
    for file in files:
        for node in file.nodes:
            for name in _names(parts_of(node), texts):
                found.setdefault(name, []).append((file, node))
    return found


def _of_mark(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call) and dotted(node.func).endswith(_MARK):
        return node.args
    return []


def _of_question(node: ast.AST) -> list[ast.expr]:
    parts: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    return parts if any(dotted(part).endswith(_CLAIMED) for part in parts) else []


def _names(nodes: Iterable[ast.expr], texts: Mapping[str, str]) -> Iterator[str]:
    """The texts that expressions stand for, as far as the source says them."""
    for node in nodes:
        if isinstance(node, ast.Set | ast.Tuple | ast.List):
            yield from _names(node.elts, texts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif (last := dotted(node).rpartition(".")[2]) in texts:
            yield texts[last]


def _texts(files: Sequence[SourceFile]) -> dict[str, str]:
    """The names in capitals that modules bind to texts."""
    found: dict[str, str] = {}
    for file in files:
        for node in file.tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
                found |= {name: node.value.value for name in names if name.isupper()}
    return found


def _row(suite: Suite, written: str, rule: str, advice: str, *, root: Path) -> Problem:
    """A finding about a line of a suite.toml, which is given without blanks."""
    path = suite.folder / "suite.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if line.replace(" ", "") == written]
    return Problem(
        path=path.relative_to(root).as_posix(),
        # The name of a session may be the same; capabilities stand below.
        line=numbers[-1] if numbers else 1,
        rule=rule,
        advice=advice,
    )
