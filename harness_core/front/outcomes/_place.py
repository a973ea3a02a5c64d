"""Where a test leaves its evidence, by where the test stands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness_core.base.evidence import safe_name

#: Folders that say nothing about a test but where all tests are.
_FOLDERS_LEFT_OUT: Final = frozenset({"tests", "harness_core", "suites", "."})


def folder_of_test(location: tuple[str, int | None, str]) -> str:
    """Where a test leaves its evidence, relative to that of the run: ``SUITE/FOLDERS.FILE.NAME``."""
    path, _, name = location
    parts = Path(path).with_suffix("").parts
    suite = parts[1] if parts[0] == "suites" and len(parts) > 2 else "core"  # noqa: PLR2004
    folders = [part for part in parts if part not in _FOLDERS_LEFT_OUT and part != suite]
    return f"{safe_name(suite)}/{safe_name('.'.join([*folders, name]))}"
