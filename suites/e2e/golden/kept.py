"""How snapshots are kept: syrupy's own format, in a directory of the subject's."""

from __future__ import annotations

from pathlib import Path

from syrupy.extensions.amber import AmberSnapshotExtension
from syrupy.location import PyTestLocation

__all__ = ["extension_for"]


def extension_for(directory: Path) -> type[AmberSnapshotExtension]:
    """Syrupy's own format, kept with the subject instead of beside the tests."""

    class SubjectSnapshots(AmberSnapshotExtension):
        """Snapshots of one subject."""

        @classmethod
        def dirname(cls, *, test_location: PyTestLocation) -> str:
            return str(directory)

    return SubjectSnapshots
