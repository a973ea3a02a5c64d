"""Write ``suites/NAME``: a small real system, a scenario, a refusal and planted faults."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.front.scaffold._write import write_folder
from harness_core.system.suites import RESERVED, load_suites

__all__ = ["check_name", "names_of", "scaffold_suite"]

#: Longer names make session names, environments and import lines hard to read.
_NAME_CHARS: Final = 30

#: More processes of one kind show nothing that these do not.
_PROCESSES: Final = 9


def scaffold_suite(name: str, *, root: Path, processes: int = 1) -> Path:
    """Write the folder of a new suite.

    Args:
        name: of the suite; also of its nox session.
        root: the tree that holds ``suites/``.
        processes: of how many the system is made that it tests.

    Returns:
        The folder.

    Raises:
        BadInput: the name cannot be used or the folder exists; nothing is written then.
    """
    check_name(name, command="harness new suite")
    _check_free(name, root=root)
    if not 1 <= processes <= _PROCESSES:
        expected = f"a number from 1 to {_PROCESSES}"
        raise BadInput("harness new suite", key="--processes", found=processes, expected=expected)
    folder = root / "suites" / name
    folder.parent.mkdir(exist_ok=True)
    values = names_of(name) | {"processes": str(processes), "keepers": str(processes - 1)}
    write_folder(folder, ["counter", "several"] if processes > 1 else ["counter"], values)
    return folder


def names_of(name: str) -> dict[str, str]:
    """What every template fills in."""
    return {"name": name, "NAME": name.upper(), "product": "", "requirements": ""}


def check_name(name: str, *, command: str) -> None:
    """Refuse a name that no suite can have.

    Args:
        name: the name.
        command: which was given it.

    Raises:
        BadInput: what is wrong with it.
    """

    def bad(expected: str) -> BadInput:
        return BadInput(command, key="NAME", found=name, expected=expected)

    if not re.fullmatch(r"[a-z][a-z0-9_]+", name) or len(name) > _NAME_CHARS:
        raise bad(f"2 to {_NAME_CHARS} lower case letters, digits and _, a letter first")
    if keyword.iskeyword(name):
        raise bad("a name that Python can import")
    if name in RESERVED:
        raise bad("a name that is no nox session of the harness itself")


def _check_free(name: str, *, root: Path) -> None:
    def bad(expected: str, *, next_step: str = "") -> BadInput:
        return BadInput(
            "harness new suite", key="NAME", found=name, expected=expected, next_step=next_step
        )

    if (root / "suites" / name).exists():
        raise bad("a name not yet taken", next_step=f"Look at suites/{name}")
    for suite in load_suites(root):
        if name in {session.name for session in suite.sessions}:
            raise bad(f"a name that is no session of suite {suite.name}")
