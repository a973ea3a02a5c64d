"""Pictures by what they show: written once, by the worker alone, and given to whoever shows the same.

The key of an entry is the hash of all that it was made of. No session writes here, and what lies in one is
never taken for an entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_INDEX = "entry.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was kept.

    Attributes:
        about: as JSON.
        files: name to bytes.
    """

    about: Mapping[str, Any]
    files: Mapping[str, bytes]


def key_of(*parts: object) -> str:
    """The hash of some JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class PictureStore:
    """Entries by key.

    Args:
        folder: is made; nobody else writes there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def get(self, key: str) -> Entry | None:
        """What was kept under a key; none of what is not there whole, as it was."""
        place = self._folder / key
        try:
            index = json.loads((place / _INDEX).read_text(encoding="utf-8"))
            files = {name: (place / name).read_bytes() for name in index["files"]}
        except (OSError, ValueError):
            return None
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        if digests != index["files"]:
            return None
        return Entry(about=index["about"], files=files)

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry, whole or not at all; one that is there already is left, if it is whole."""
        new = self._folder / f"new-{secrets.token_hex(8)}"
        new.mkdir()
        try:
            digests = {}
            for name, data in entry.files.items():
                (new / name).write_bytes(data)
                digests[name] = hashlib.sha256(data).hexdigest()
            index = {"about": dict(entry.about), "files": digests}
            (new / _INDEX).write_text(json.dumps(index), encoding="utf-8")
            self._move(new, key)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _move(self, new: Path, key: str) -> None:
        place = self._folder / key
        try:
            new.rename(place)
        except OSError:
            if self.get(key) is not None:
                return
            # What is there is damaged.
            os.rename(place, new.with_name(f"{new.name}-old"))
            shutil.rmtree(new.with_name(f"{new.name}-old"), ignore_errors=True)
            new.rename(place)
