"""What the processes of a run wrote while a failed test ran, and what it told, among its evidence.

A run's folder is emptied by the next run, and holds all tests; a failure is to be looked at later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from harness_core.base.evidence import STORY, Evidence, story, story_text

#: The folder among a test's evidence.
DURING: Final = "during"

#: Of one file at most so much is kept, its end.
_KEPT_BYTES: Final = 1_048_576


def keep_during(
    evidence: Evidence, folder: Path, paths: Iterable[Path], sizes: Mapping[Path, int]
) -> None:
    """Copy what files gained since they had these sizes in bytes.

    Args:
        evidence: of the test.
        folder: of the run; what lies elsewhere stays there.
        paths: the files that there are now; they are redacted already.
        sizes: of those that there were.
    """
    for path in paths:
        if folder not in path.parents:
            continue
        with path.open("rb") as file:
            end = file.seek(0, 2)
            start = max(sizes.get(path, 0), end - _KEPT_BYTES)
            if start >= end:
                continue
            file.seek(start)
            data = file.read(end - start)
        if start > sizes.get(path, 0):  # not in the middle of a line
            data = data.partition(b"\n")[2]
        evidence.keep(f"{DURING}/{'-'.join(path.relative_to(folder).parts)}", data)


def keep_story(evidence: Callable[[], Evidence]) -> None:
    """Write what the test told of itself so far; for one that told nothing no folder is made.

    Args:
        evidence: makes the folder of the test.
    """
    if rows := story():
        evidence().write_text(STORY, story_text(rows))
