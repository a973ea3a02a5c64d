"""Convex pieces that were computed once, kept by the content that they were computed of.

They lie beside the sessions, where none of their code comes; the worker alone writes them, of what a fork has
found that has run none of it. A file is whole or not there, names its own digest, and is computed anew where it
does not fit. The oldest go when there are too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

_MOST_BYTES = 256 << 20
_KEY = re.compile(r"[0-9a-f]{64}")

Pieces = list[list[tuple[float, float, float]]]


class PiecesKept:
    """The pieces that are kept.

    Args:
        folder: of their own; made when it is first needed.
        most_bytes: of all together.
    """

    def __init__(self, folder: Path, *, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def of(self, key: str) -> Pieces | None:
        """The pieces of a content, if they are kept."""
        path = self._path(key)
        try:
            digest, _, data = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if hashlib.sha256(key.encode() + data).hexdigest().encode() != digest:
            return None
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)  # what is used stays
        found: Pieces = json.loads(data)
        return found

    def keep(self, key: str, pieces: Any) -> None:
        """Keep the pieces of a content; who does so at the same time keeps the same."""
        data = json.dumps(pieces).encode()
        digest = hashlib.sha256(key.encode() + data).hexdigest().encode()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._folder / f"new-{secrets.token_hex(8)}"
        try:
            with new.open("xb") as file:
                file.write(digest + b"\n" + data)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path(key))
        except OSError:
            new.unlink(missing_ok=True)
            raise
        self._make_room()

    def _make_room(self) -> None:
        """Remove what was not used for longest, and what a worker that was killed has left half written."""
        found = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                state = path.stat()
                found.append((state.st_mtime_ns, state.st_size, path))
        room = self._most_bytes
        for _, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"cannot keep pieces as {key[:80]!r}: it is no sha256")
        return self._folder / f"{key}.json"
