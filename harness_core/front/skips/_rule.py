"""Which tests may be left out in CI: those whose gate a suite lists as optional, with a reason."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness_core.assurance.gates import check_names
from harness_core.front.skips._cause import Cause, Why
from harness_core.system.suites import load_suite, read_pyproject

__all__ = ["SkipRule"]

_OFF: Final = frozenset({"", "0", "false", "no"})

_OPEN_OR_LIST: Final = "Open the gate, or list {!r} with a reason in [optional_gates] of {}"
_REFERENCE: Final = "The suite's own reference system must have what its tests ask for"
_SAY_WHY: Final = "Say what is missing: a gate (`requires`), or harness_core.front.skips.not_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a test may be left out.

    Attributes:
        applies: whether its tree is held to this rule at all.
        refusal: why it may not; empty when it may.
        reason: the one for which the suite lists its gate as optional; empty without one.
    """

    applies: bool
    refusal: str = ""
    reason: str = ""


class SkipRule:
    """Says whether CI accepts that a test is not run.

    Args:
        root: the root directory of the tests.
        foreign: the run tests a subject that was given, which may lack what the suite asks for.
    """

    def __init__(self, root: Path, *, foreign: bool) -> None:
        self._root = root
        self._foreign = foreign

    def judge(self, cause: Cause, test: Path) -> Verdict:
        """What becomes of a test that does not run.

        Args:
            cause: why it would not run.
            test: its file.

        Raises:
            BadInput: the file that lists optional gates is malformed.
        """
        home = _home(test, self._root)
        if home is None:
            return Verdict(applies=False)
        reason = optional_gates(home).get(cause.gate, "")
        refusal = ""
        if os.environ.get("CI", "").lower() not in _OFF:
            if cause.why is Why.GATE and not reason:
                refusal = _OPEN_OR_LIST.format(cause.gate, home.relative_to(self._root))
            elif cause.why is Why.SUBJECT and not self._foreign:
                refusal = _REFERENCE
            elif cause.why is Why.UNKNOWN:
                refusal = _SAY_WHY
        return Verdict(applies=True, refusal=refusal, reason=reason)

    def check(self, tests: Iterable[Path]) -> None:
        """Check that what the files of these tests list as optional are gates.

        Called when conftests have registered theirs.

        Raises:
            BadInput: a name that is none: misspelt, it would make a skip an error, or none.
        """
        for home in {_home(test, self._root) for test in set(tests)} - {None}:
            assert home is not None
            if names := list(optional_gates(home)):
                check_names(names, where=home, key="optional_gates")


@cache
def optional_gates(home: Path) -> Mapping[str, str]:
    """Gate → why CI may do without it, from a ``suite.toml`` or a ``pyproject.toml``.

    Raises:
        BadInput: the file is malformed.
    """
    if home.name == "suite.toml":
        return load_suite(home.parent).optional_gates
    return _listed(home.parent) or {}


def _listed(folder: Path) -> Mapping[str, str] | None:
    """Of the ``pyproject.toml`` of a tree that declares itself part of the harness's world."""
    table = read_pyproject(folder).tool.staging_harness
    return table.optional_gates if table is not None else None


def _home(test: Path, root: Path) -> Path | None:
    """The file that lists the optional gates of a test; ``None`` where the rule does not apply.

    That is a tree which does not declare itself part of the harness's world: its own skips are its
    own business.
    """
    for folder in test.parents:
        if (folder / "suite.toml").is_file():
            return folder / "suite.toml"
        if folder == root:
            break
    pyproject = root / "pyproject.toml"
    if pyproject.is_file() and _listed(root) is not None:
        return pyproject
    return None
