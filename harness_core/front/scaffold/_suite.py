"""Write ``suites/NAME``: a small real system, a scenario, a refusal and a planted fault."""

from __future__ import annotations

import keyword
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import RESERVED, load_suites

_TEMPLATE: Final = Path(__file__).with_name("template")

#: Longer names make session names, environments and import lines hard to read.
_NAME_CHARS: Final = 30


def scaffold_suite(name: str, *, root: Path) -> Path:
    """Write the folder of a new suite.

    Args:
        name: of the suite; also of its nox session.
        root: the tree that holds ``suites/``.

    Returns:
        The folder.

    Raises:
        BadInput: the name cannot be used or the folder exists; nothing is written then.
    """
    _check_name(name, root=root)
    folder = root / "suites" / name
    folder.parent.mkdir(exist_ok=True)
    # Written beside its place and moved there in one step: an interrupted scaffold is no suite.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as draft:
        whole = Path(draft) / name
        for source in sorted(path for path in _TEMPLATE.rglob("*.tmpl") if path.is_file()):
            relative = source.relative_to(_TEMPLATE).as_posix().removesuffix(".tmpl")
            target = whole / _filled(relative, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(source.read_text(encoding="utf-8"), name), encoding="utf-8")
        shutil.move(whole, folder)
    return folder


def _check_name(name: str, *, root: Path) -> None:
    def bad(expected: str, *, next_step: str = "") -> BadInput:
        return BadInput(
            "harness new suite", key="NAME", found=name, expected=expected, next_step=next_step
        )

    if not re.fullmatch(r"[a-z][a-z0-9_]+", name) or len(name) > _NAME_CHARS:
        raise bad(f"2 to {_NAME_CHARS} lower case letters, digits and _, a letter first")
    if keyword.iskeyword(name):
        raise bad("a name that Python can import")
    if name in RESERVED:
        raise bad("a name that is no nox session of the harness itself")
    if (root / "suites" / name).exists():
        raise bad("a name not yet taken", next_step=f"Look at suites/{name}")
    for suite in load_suites(root):
        if name in {session.name for session in suite.sessions}:
            raise bad(f"a name that is no session of suite {suite.name}")


def _filled(text: str, name: str) -> str:
    return text.replace("@name@", name).replace("@NAME@", name.upper())
