"""A tree of suites as far as nox needs it: its pyproject.toml and every suite.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import nox

from harness_core.front.sessions._reading import read_suite

__all__ = ["REPORTS", "Suite", "Tree", "read_tree"]

#: One suite.toml: its table ``[suite]``, with ``name``, ``sessions``, ``bench`` and ``explores``.
Suite = Mapping[str, Any]

#: Where pytest leaves a report of each session, below the root.
REPORTS: Final = Path(".evidence", "reports")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Built by :func:`read_tree`.

    Attributes:
        root: the folder of the noxfile.
        pyproject: its pyproject.toml.
        suites: every suite, by name.
        own: sessions of the noxfile itself that ``coverage`` measures too: name → ``paths``,
            ``markers`` and ``options`` of pytest.
        extras: of the harness, which those need.
        benches: benchmarks of the noxfile's own, whose names no suite may take.
    """

    root: Path
    pyproject: Mapping[str, Any]
    suites: tuple[Suite, ...]
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extras: Sequence[str] = ()
    benches: Sequence[str] = ()

    @property
    def is_harness(self) -> bool:
        """Whether it is the tree of the harness itself, which is installed from here."""
        return bool(self.pyproject.get("project", {}).get("name") == "staging-harness")

    def has_group(self, name: str) -> bool:
        """Whether its pyproject.toml has a dependency group of that name."""
        return name in self.pyproject.get("dependency-groups", {})

    def where(self, key: str) -> dict[str, Suite]:
        """The suites that have something, by name."""
        return {suite["name"]: suite for suite in self.suites if suite.get(key)}


def read_tree(
    root: Path,
    *,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    extras: Sequence[str] = (),
    benches: Sequence[str] = (),
) -> Tree:
    """Read the suites of a tree.

    Args:
        root: the folder of the noxfile.
        own: see :class:`Tree`, as the others.
        extras: the same.
        benches: the same.

    Raises:
        SystemExit: a suite.toml is malformed; one sentence with the file and the key.
    """
    root = root.resolve()
    pyproject = nox.project.load_toml(root / "pyproject.toml")
    groups = pyproject.get("dependency-groups", {})
    suites = tuple(
        read_suite(path, root=root, groups=groups)
        for path in sorted(root.glob("suites/*/suite.toml"))
    )
    return Tree(
        root=root,
        pyproject=pyproject,
        suites=suites,
        own=own or {},
        extras=extras,
        benches=benches,
    )
