"""The settings of a run: from its own ``pyproject.toml``, read once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from harness_core.base.reading import read_toml
from harness_core.front.settings._tables import Settings

_SETTINGS: Final = pytest.StashKey[Settings]()


class _Tool(Struct, frozen=True, kw_only=True):
    """``[tool]``: the others are of other programs."""

    staging_harness: Settings = Settings()


class _File(Struct, frozen=True, kw_only=True):
    """The file."""

    tool: _Tool = _Tool()


def settings_of(config: pytest.Config) -> Settings:
    """What the project says; the defaults where it says nothing.

    Raises:
        BadInput: a mistake in it: names file, key, found, expected.
    """
    if _SETTINGS not in config.stash:
        path = pyproject_of(config)
        config.stash[_SETTINGS] = (
            read_toml(path, _File).tool.staging_harness if path else Settings()
        )
    return config.stash[_SETTINGS]


def pyproject_of(config: pytest.Config) -> Path | None:
    """The ``pyproject.toml`` of the tests: in their root directory, or the nearest above."""
    folders = (config.rootpath, *config.rootpath.parents)
    paths = (folder / "pyproject.toml" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def home_of(config: pytest.Config) -> Path:
    """The folder that paths are relative to."""
    path = pyproject_of(config)
    return path.parent if path else config.rootpath
