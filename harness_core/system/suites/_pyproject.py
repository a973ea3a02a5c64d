"""``pyproject.toml``, as far as the harness reads it: the file is that of many tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from harness_core.base.reading import Text, read_toml

__all__ = ["Pyproject", "StagingHarness", "read_pyproject"]


class Project(Struct, frozen=True, kw_only=True, rename="kebab"):
    """``[project]``."""

    name: str = ""
    optional_dependencies: Mapping[str, Any] = field(default_factory=dict)


class StagingHarness(Struct, frozen=True, kw_only=True):
    """``[tool.staging_harness]``; what it says of fixtures is read by ``harness_core.front.fixtures``.

    Attributes:
        optional_gates: what CI may do without, gate → why; with this table, an empty one too, the tree
            asks to be held to the rules for skips.
    """

    optional_gates: Mapping[str, Text] | None = None


class Tool(Struct, frozen=True, kw_only=True):
    """``[tool]``."""

    staging_harness: StagingHarness | None = None


class Pyproject(Struct, frozen=True, kw_only=True, rename="kebab"):
    """The file."""

    project: Project = Project()
    dependency_groups: Mapping[str, Any] = field(default_factory=dict)
    tool: Tool = Tool()


def read_pyproject(folder: Path) -> Pyproject:
    """Read the ``pyproject.toml`` of a folder.

    Raises:
        BadInput: there is none, or what is read here is malformed.
    """
    return read_toml(folder / "pyproject.toml", Pyproject)
