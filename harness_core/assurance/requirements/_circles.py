"""Modules that import each other in a circle, which import-linter sees in the packages of its list alone.

An import inside a function or for types alone counts: it hides a circle and does not open it. That
importing a module runs the packages around it does not, or every package would import itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

from harness_core.assurance.requirements._problem import Problem, SourceFile


def check_circles(files: Iterable[SourceFile]) -> Iterator[Problem]:
    """No module imports one that imports it, directly or by way of others; one finding per circle.

    Args:
        files: all sources of a distribution, or of several.
    """
    modules = _modules(files)
    imports = {name: _imports(name, modules) for name in modules}
    while circle := _circle(imports):
        importer, imported = circle[:2]
        node = imports[importer].pop(imported)
        advice = f"{' -> '.join(circle)}; move what both ends need below them"
        yield from modules[importer].report([(node, "import-circle", advice)])


def _modules(files: Iterable[SourceFile]) -> dict[str, SourceFile]:
    """Each file by the name it is imported by: its path from the outermost package around it."""
    by_path = {PurePosixPath(file.path): file for file in files}
    modules: dict[str, SourceFile] = {}
    for path, file in by_path.items():
        parts = [] if _is_package(path) else [path.stem]
        folder = path.parent
        while folder / "__init__.py" in by_path:
            parts.insert(0, folder.name)
            folder = folder.parent
        modules[".".join(parts)] = file
    return modules


def _imports(name: str, modules: Mapping[str, SourceFile]) -> dict[str, ast.AST]:
    """Which of the modules this one imports, each with the first place that does."""
    file = modules[name]
    imports: dict[str, ast.AST] = {}
    for node, wanted in (*file.imports, *_relative(name, file)):
        # In `from a import b`, b is a module or a name in a.
        module = wanted if wanted in modules else wanted.rpartition(".")[0]
        if module in modules and module != name:
            imports.setdefault(module, node)
    return imports


def _relative(name: str, file: SourceFile) -> Iterator[tuple[ast.AST, str]]:
    """Every dotted name that is imported from where the module stands: ``from .a import b``."""
    around = name.split(".") + (["__init__"] if _is_package(PurePosixPath(file.path)) else [])
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            start = [*around[: -node.level], *filter(None, [node.module])]
            for alias in node.names:
                yield node, ".".join([*start, alias.name])


def _is_package(path: PurePosixPath) -> bool:
    return path.name == "__init__.py"


def _circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The modules of one circle, each importing the next, the first again at the end; or none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        backwards: list[str] = error.args[1]  # each imported by the next
        return backwards[::-1]
    return []
