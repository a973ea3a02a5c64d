"""``suite.toml`` as nox needs it; ``harness lint`` checks the rest.

It is read without the libraries of ``harness_core.system.suites``, which reads the same file: where nox
runs they may be missing.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

__all__ = ["check_names", "read_suite"]

_Kinds = Mapping[str, type]

_SUITE: Final[_Kinds] = {
    **dict.fromkeys(("group", "library", "subject"), str),
    **dict.fromkeys(("extras", "may_import"), list),
}
_SESSION: Final[_Kinds] = {
    **dict.fromkeys(("name", "summary", "group", "markers"), str),
    **dict.fromkeys(("options", "paths", "tags"), list),
    **dict.fromkeys(("default", "own_tests"), bool),
}
_BENCH: Final[_Kinds] = {"name": str, "script": str}

#: Sessions that a suite gets besides its own, each followed by its name.
_PREFIXES: Final = ("faults", "bench", "mutate", "explore")


def read_suite(path: Path, *, root: Path, groups: Collection[str]) -> dict[str, Any]:
    """Read one suite.toml.

    Args:
        path: the file.
        root: of its tree.
        groups: the dependency groups of that.

    Returns:
        Its table ``[suite]``, with its sessions and benchmarks, and whether a test of it explores.

    Raises:
        SystemExit: it is malformed.
    """
    file = path.relative_to(root)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot read {file}: {error}.")
    suite: dict[str, Any] = _take(content, "suite", dict, file=file)
    _check_keys(suite, _SUITE, required=["group"], file=file, at="suite.")
    suite["name"] = path.parent.name
    suite["sessions"] = _take(content, "session", list, file=file)
    suite["bench"] = content.get("bench", [])
    suite["explores"] = _explores(path.parent)
    for number, row in enumerate(suite["sessions"]):
        at = f"session[{number}]."
        _check_keys(row, _SESSION, required=["name", "summary"], file=file, at=at)
    for number, row in enumerate(suite["bench"]):
        _check_keys(row, _BENCH, required=["name", "script"], file=file, at=f"bench[{number}].")
    for group in {suite["group"], *(row.get("group") for row in suite["sessions"])} - {None}:
        if group not in groups:
            sys.exit(f"cannot read {file}: group: found {group!r}, expected one of pyproject.toml.")
    return suite


def check_names(
    suites: Sequence[Mapping[str, Any]], *, sessions: Collection[str], benches: Collection[str]
) -> None:
    """Refuse a name that is taken: nox would run the last of two and never report the first.

    Args:
        suites: all of them.
        sessions: names that the noxfile has.
        benches: benchmarks that it has.

    Raises:
        SystemExit: names both files.
    """
    taken: dict[str, dict[str, str]] = {
        "session": dict.fromkeys(sessions, "noxfile.py"),
        "bench": dict.fromkeys(benches, "python -m benchmarks"),
    }
    for suite in suites:
        for prefix in _PREFIXES:
            taken["session"][f"{prefix}-{suite['name']}"] = "noxfile.py"
    for suite in suites:
        file = f"suites/{suite['name']}/suite.toml"
        for kind, rows in (("session", suite["sessions"]), ("bench", suite["bench"])):
            for row in rows:
                if other := taken[kind].get(row["name"]):
                    sys.exit(
                        f"cannot read {file}: {kind}.name: found {row['name']!r}, expected a name "
                        f"that is not taken. {other} has this one."
                    )
                taken[kind][row["name"]] = file


def _check_keys(table: Any, kinds: _Kinds, *, required: Sequence[str], file: Path, at: str) -> None:
    """Refuse a key that is missing, or a value of another kind."""
    if not isinstance(table, dict):
        sys.exit(f"cannot read {file}: {at}: found {table!r}, expected a table.")
    for key, kind in kinds.items():
        if key in table or key in required:
            _take(table, key, kind, file=file, at=at)


def _take(table: Mapping[str, Any], key: str, kind: type, *, file: Path, at: str = "") -> Any:
    """The value of a key that must be there."""
    found = table.get(key)
    if not isinstance(found, kind):
        sys.exit(
            f"cannot read {file}: {at}{key}: found {found!r}, expected a {kind.__name__}. "
            "See docs/reference/suite-toml.md."
        )
    return found


def _explores(folder: Path) -> bool:
    """Whether a test of a suite is marked ``explore``."""
    return any(
        "mark.explore" in path.read_text(encoding="utf-8")
        for path in folder.glob("**/*.py")
        if "reference-system" not in path.parts
    )
