"""The evidence of one test as files: what may be shown of them, and all of them as one archive."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from harness_core.front.report._schema import File

#: Named of one test.
_FILES: Final = 400

#: What a page shows by itself; a picture of a vector format is drawn as a picture, so no script in it runs.
_MIMES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}

#: More than this of one test takes seconds to compress.
_ARCHIVED_BYTES: Final = 33_554_432

_FLAMES: Final = ".speedscope.json"


class Room:
    """How much of files still goes into a report: each has a bound, and all of them together.

    Args:
        each_bytes: of one file or archive.
        all_bytes: of all of them.
    """

    def __init__(self, *, each_bytes: int, all_bytes: int) -> None:
        self._each_bytes = each_bytes
        self._left_bytes = all_bytes

    def take(self, size_bytes: int) -> bool:
        """Whether there is room for so much; then it is taken."""
        if size_bytes > min(self._each_bytes, self._left_bytes):
            return False
        self._left_bytes -= size_bytes
        return True


def paths_of(folder: Path, *, since: float) -> list[Path]:
    """The files of a test; what was written before it began is of an earlier one."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if path.stat().st_mtime >= since]


def files_of(folder: Path, paths: Sequence[Path], *, room: Room) -> list[File]:
    """What there is, pictures and videos with their content as long as there is room."""
    found: list[File] = []
    for path in paths[:_FILES]:
        mime, size_bytes = _MIMES.get(path.suffix.lower(), ""), path.stat().st_size
        kind = mime.partition("/")[0].replace("image", "picture") or "file"
        if path.name.endswith(_FLAMES):
            kind = "flames"
        shown = mime and room.take(size_bytes)
        content = base64.b64encode(path.read_bytes()).decode() if shown else ""
        name = path.relative_to(folder).as_posix()
        found.append(File(path=name, size_bytes=size_bytes, kind=kind, content=content, mime=mime))
    return found


def flames_of(folder: Path, paths: Sequence[Path], *, room: Room) -> dict[str, Any]:
    """Profiles as speedscope writes them, by their path."""
    found: dict[str, Any] = {}
    for path in paths:
        if path.name.endswith(_FLAMES) and room.take(path.stat().st_size):
            try:
                found[path.relative_to(folder).as_posix()] = json.loads(path.read_bytes())
            except ValueError:
                continue
    return found


def archive_of(folder: Path, paths: Sequence[Path], *, room: Room) -> str:
    """A zip of it all, as base64; empty where there is no room for it."""
    if not paths or sum(path.stat().st_size for path in paths) > _ARCHIVED_BYTES:
        return ""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in paths:
            archive.write(path, path.relative_to(folder.parent).as_posix())
    return base64.b64encode(data.getvalue()).decode() if room.take(len(data.getvalue())) else ""
