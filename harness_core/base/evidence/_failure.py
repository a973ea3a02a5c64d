"""What stands below every failed test: where the evidence lies and how to run it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

#: A screenful.
_FILES_SHOWN: Final = 20


def failure_text(*, evidence: Path, rerun: str, kept: Sequence[str] = ()) -> str:
    """The lines that close a failure report.

    Args:
        evidence: the test's evidence directory.
        rerun: the one command that runs this test again.
        kept: what was kept for inspection, e.g. database URLs (already redacted by their owner).
    """
    files = sorted(path for path in evidence.rglob("*") if path.is_file())
    lines = [f"evidence: {evidence}"]
    lines.extend(f"  {path.relative_to(evidence)}{_size(path)}" for path in files[:_FILES_SHOWN])
    if len(files) > _FILES_SHOWN:
        lines.append(f"  … and {len(files) - _FILES_SHOWN} more")
    lines.extend(f"kept: {item}" for item in kept)
    lines.append(f"rerun: {rerun}")
    return "\n".join(lines)


def _size(path: Path) -> str:
    try:
        return f" ({path.stat().st_size} B)"
    except OSError:  # a server that still runs removed it meanwhile
        return ""
