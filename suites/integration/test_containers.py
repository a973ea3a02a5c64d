"""The README names the tests that a stack in containers leaves out, each with the reason, and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
MARK: Final = "not_in_containers"

#: What only processes and files of this machine can do: helpers, and the fixture of one.
NEEDING: Final = frozenset({"dollars_times", "no_file_beyond", "skills"})

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.integration_p0
@pytest.mark.aside("reads files of the suite")
def test_the_readme_names_what_containers_leave_out() -> None:
    """Its table has a line for each mark: the file, or the test of it, and why."""
    marked = dict(_marked())
    section = (HERE / "README.md").read_text(encoding="utf-8").partition("## In containers")[2]
    lines = section.partition("\n## ")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    told = {where.strip("`"): why for where, why in cells}

    assert marked == told, (
        f"what containers leave out: expected {marked}, found in README.md {told}"
    )


@pytest.mark.integration_p0
@pytest.mark.aside("reads files of the suite")
def test_what_needs_this_machine_is_marked() -> None:
    """A test that calls such a helper, or takes such a fixture, carries the mark; its file may for all of it."""
    whole = {where for where, _ in _marked()}
    unmarked = [
        where
        for path, test in _tests()
        if (where := f"{_name(path)}::{test.name}") not in whole
        and _name(path) not in whole
        and NEEDING & {_called(node) for node in ast.walk(test)}
    ]

    assert [] == unmarked, (
        f"what needs this machine is marked {MARK}: expected none, found {unmarked}"
    )


def _tests() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in _files():
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, _FUNCTIONS) and node.name.startswith("test_"):
                yield path, node


def _marked() -> Iterator[tuple[str, str]]:
    """File, or ``file::test``, of each mark, and its reason."""
    for path in _files():
        for node in ast.parse(path.read_bytes()).body:
            test = f"::{node.name}" if isinstance(node, _FUNCTIONS) else ""
            held = node.decorator_list if isinstance(node, _FUNCTIONS) else [node]
            for each in (each for part in held for each in ast.walk(part)):
                if isinstance(each, ast.Call) and _called(each.func) == MARK:
                    yield f"{_name(path)}{test}", ast.literal_eval(each.args[0])


def _files() -> list[Path]:
    found = sorted(HERE.rglob("test_*.py"))
    return [path for path in found if "reference-system" not in path.parts]


def _name(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


def _called(node: ast.AST) -> str:
    """What an expression or a parameter is called; empty for another node."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name
    return ""
