"""Which libraries a suite asks for and this Python does not have."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import Unavailable
from harness_core.system.suites import Suite, read_pyproject

__all__ = ["check_libraries"]

_HARNESS: Final = "staging-harness"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
#: An extra that brings others: ``staging-harness[gateway,postgres]``.
_OTHERS: Final = re.compile(rf"{_HARNESS}\[([^\]]+)\]")


def check_libraries(suite: Suite, *, root: Path, action: str, seen: ImportError | None) -> None:
    """Check that all is installed that a suite asks for: its extras, its group, its library.

    Args:
        suite: whose.
        root: of its tree, whose ``pyproject.toml`` has the group.
        action: what cannot be done without, for the message.
        seen: the import that has failed for want of something.

    Raises:
        Unavailable: something is missing; names the one command that installs all of it.
    """
    groups = read_pyproject(root).dependency_groups
    wanted = {*_of_extras(suite.extras), *_of_group(suite.group, groups)}
    missing = sorted(row for row in wanted if not _is_installed(row))
    library = suite.library
    if library is not None and not _is_installed(read_pyproject(library).project.name):
        missing.append(str(library))
    if not missing:
        return
    raise Unavailable(
        action,
        observed=f"{len(missing)} of the libraries that suite {suite.name} asks for are not "
        f"installed in {sys.prefix}" + (f" ({seen})" if seen else ""),
        next_step=f"Run `{sys.executable} -m pip install {shlex.join(missing)}`",
    )


def _of_extras(extras: tuple[str, ...]) -> Iterator[str]:
    for row in importlib.metadata.requires(_HARNESS) or ():
        requirement, _, marker = row.partition(";")
        if any(extra in extras for extra in _EXTRA.findall(marker)):
            if others := _OTHERS.match(requirement):
                yield from _of_extras(tuple(others[1].split(",")))
            else:
                yield requirement.strip()


def _of_group(name: str, groups: Mapping[str, Any]) -> Iterator[str]:
    for row in groups.get(name, ()):
        if isinstance(row, str):
            yield row.partition(";")[0].strip()
        elif isinstance(row, Mapping) and isinstance(row.get("include-group"), str):
            yield from _of_group(row["include-group"], groups)


def _is_installed(requirement: str) -> bool:
    name = _NAME.match(requirement)
    if name is None:
        return False
    try:
        importlib.metadata.version(name[0])
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
