"""Who may import whom, where import-linter cannot see.

import-linter follows packages by name; suites and reference systems are folders that come and go,
and third-party libraries are many. So these rules name no suite and no library.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from harness_core.assurance.requirements._problem import Finding, Problem, SourceFile, below

#: trio and pytest are what everything is written in, msgspec what tables and JSON are read into.
_EVERYWHERE = frozenset({"harness_core", "msgspec", "trio", "pytest", "_pytest"})

#: Other ways to be concurrent: only where they are bridged to trio.
_BRIDGED = frozenset({"asyncio", "threading", "concurrent", "multiprocessing"})


def check_core_imports(files: Iterable[SourceFile]) -> Iterator[Problem]:
    """harness_core imports no suite, no threads outside its bridge, a library in one package only.

    Args:
        files: the sources of harness_core, without its tests.
    """
    first: dict[str, dict[str, str]] = defaultdict(dict)
    for file in files:
        yield from file.report(_core_imports(file, first))


def _core_imports(file: SourceFile, first: dict[str, dict[str, str]]) -> Iterator[Finding]:
    """``first``: library, then package → its first file that imports the library."""
    package = _package(file.path)
    for node, module in file.imports:
        top = module.partition(".")[0]
        if top == "suites":
            advice = "harness_core knows no suite; pass what it needs in"
            yield node, "core-imports-suite", advice
        elif top in _BRIDGED and package != "base/bridge":
            yield node, "threads", f"{top} belongs into harness_core/base/bridge; call that"
        elif top not in sys.stdlib_module_names and top not in _EVERYWHERE:
            here = first[top].setdefault(package, file.path)
            others = sorted(first[top].keys() - {package})
            if others and here == file.path:
                advice = f"{top} is imported by harness_core/{others[0]} already; ask that package"
                yield node, "library-in-two-packages", advice


def check_reference_imports(file: SourceFile) -> Iterator[Problem]:
    """A reference system imports neither the harness nor a suite: shared code hides its own bug."""
    advice = "a reference system stands alone; write what it needs in its own package"
    yield from file.report(
        (node, "reference-imports-harness", advice)
        for node, module in file.imports
        if below(module, "harness_core", "suites")
    )


def _package(path: str) -> str:
    """``doubles/model`` for a file in it, ``process`` for one of a room without packages of its own."""
    room, *inside = PurePosixPath(path).parts[1:]
    if not inside or (len(inside) == 1 and inside[0].startswith("_")):
        return room.removesuffix(".py")
    return f"{room}/{inside[0].removesuffix('.py')}"
