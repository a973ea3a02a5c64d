"""Who may import whom, where import-linter cannot see.

import-linter follows packages by name; suites and reference systems are folders that come and go,
and third-party libraries are many. So these rules name no suite and no library.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from harness_core.assurance.requirements._problem import Problem, SourceFile, imported_modules

#: trio and pytest are what everything is written in, msgspec what tables and JSON are read into.
_EVERYWHERE = frozenset({"harness_core", "msgspec", "trio", "pytest", "_pytest"})

#: Other ways to be concurrent: only where they are bridged to trio.
_BRIDGED = frozenset({"asyncio", "threading", "concurrent", "multiprocessing"})


def check_core_imports(files: Iterable[SourceFile]) -> Iterator[Problem]:
    """harness_core imports no suite, no threads outside its bridge, a library in one package only.

    Args:
        files: the sources of harness_core, without its tests.
    """
    users: dict[str, dict[str, tuple[SourceFile, object]]] = defaultdict(dict)
    for file in files:
        package = _package(file.path)
        for node, module in imported_modules(file.tree):
            top = module.partition(".")[0]
            if top == "suites":
                yield from file.problem(
                    node, "core-imports-suite", "harness_core knows no suite; pass what it needs in"
                )
            elif top in _BRIDGED and package != "base/bridge":
                yield from file.problem(
                    node, "threads", f"{top} belongs into harness_core/base/bridge; call that"
                )
            elif top not in sys.stdlib_module_names and top not in _EVERYWHERE:
                first, _ = users[top].setdefault(package, (file, node))
                others = sorted(users[top].keys() - {package})
                if others and first is file:
                    yield from file.problem(
                        node,
                        "library-in-two-packages",
                        f"{top} is imported by harness_core/{others[0]} already; ask that package",
                    )


def check_reference_imports(file: SourceFile) -> Iterator[Problem]:
    """A reference system imports neither the harness nor a suite: shared code hides its own bug."""
    for node, module in imported_modules(file.tree):
        if module.partition(".")[0] in {"harness_core", "suites"}:
            yield from file.problem(
                node,
                "reference-imports-harness",
                "a reference system stands alone; write what it needs in its own package",
            )


def _package(path: str) -> str:
    """``doubles/model`` for a file in it, ``process`` for one of a room without packages of its own."""
    room, *inside = PurePosixPath(path).parts[1:]
    if not inside or (len(inside) == 1 and inside[0].startswith("_")):
        return room.removesuffix(".py")
    return f"{room}/{inside[0].removesuffix('.py')}"
