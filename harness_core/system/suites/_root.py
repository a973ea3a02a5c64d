"""Where the tree is that holds ``suites/``, and which of them a file belongs to."""

from __future__ import annotations

from pathlib import Path

from harness_core.base.errors import Unavailable

__all__ = ["find_root", "suite_folder"]


def find_root(start: Path) -> Path:
    """Walk up from ``start`` to the folder that holds ``suites/`` and a ``pyproject.toml``.

    Raises:
        Unavailable: no such folder above ``start``.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "suites").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise Unavailable(
        "find the suites",
        observed=f"no folder above {start.resolve()} holds suites/ and pyproject.toml",
        next_step="Change into the tree, or name it with --root",
    )


def suite_folder(path: Path) -> Path | None:
    """The folder of the suite that a file belongs to; ``None`` outside of every suite."""
    return next((each for each in path.parents if (each / "suite.toml").is_file()), None)
