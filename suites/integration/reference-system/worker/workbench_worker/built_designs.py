"""What a script was built to: its solids, byte for byte, by the hash of them.

A session remembers beside its files what its own files were built to, so that they are not built again
while they are as they were. What another session's files were built to it never hears: only of solids that
it has built itself it is known that they are the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench_foundation import faults
from workbench_worker.filmed import left, outside, own_tmp
from workbench_worker.jobs import Job
from workbench_worker.picture_store import Entry, PictureStore, key_of
from workbench_worker.sessions import Session

_RECORD = "designs.json"
#: Remembered of a session, the latest.
_MOST = 50
#: Where solids and the like are given to a job, as its processes see it.
GIVEN = "/tmp/given"

#: For the planted fault `render-of-script-alone` alone.
_by_script: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Solids.

    Attributes:
        names: of each; empty for the only one.
        breps: of each, as build123d exports it.
    """

    names: tuple[str, ...]
    breps: tuple[bytes, ...]

    @property
    def sha256(self) -> str:
        """Of all of it."""
        digests = [hashlib.sha256(data).hexdigest() for data in self.breps]
        return key_of("design", self.names, digests)

    def files(self) -> dict[str, bytes]:
        """The solids as files."""
        return {f"part-{number}.brep": data for number, data in enumerate(self.breps)}


def left_in(folder: Path, names: list[str]) -> Design:
    """What a script has left in a folder that its processes could write to.

    Raises:
        Refused: 409 for what is no file, or too large.
    """
    files = [f"part-{number}.brep" for number in range(len(names))]
    return Design(names=tuple(names), breps=tuple(left(folder, files).values()))


class Designs:
    """Designs that were built, and which of them a session has.

    Args:
        store: of the solids.
    """

    def __init__(self, store: PictureStore) -> None:
        self._store = store

    def keep(self, design: Design) -> None:
        """Keep the solids of a design."""
        key = key_of("solids", design.sha256)
        if self._store.get(key) is None:
            about = {"names": list(design.names)}
            self._store.put(key, Entry(about=about, files=design.files()))

    def get(self, sha256: str) -> Design | None:
        """A design that was kept."""
        entry = self._store.get(key_of("solids", sha256))
        if entry is None:
            return None
        names = tuple(entry.about["names"])
        breps = tuple(entry.files[f"part-{number}.brep"] for number in range(len(names)))
        return Design(names=names, breps=breps)

    def remember(self, session: Session, content: str, sha256: str) -> None:
        """What the files of a session were built to."""
        _by_script.setdefault(content, sha256)
        known = remembered(session)
        known["designs"] = {**known["designs"], content: sha256}
        for old in list(known["designs"])[:-_MOST]:
            del known["designs"][old]
        write(session, known)

    def of(self, session: Session, content: str) -> str | None:
        """What the files of a session were built to, the last time that they were as they are."""
        if faults.on("render-of-script-alone") and content in _by_script:
            return _by_script[content]
        found: str | None = remembered(session)["designs"].get(content)
        return found


def remembered(session: Session) -> dict[str, Any]:
    """What is known of a session's pictures: ``designs``, and ``ours``, path to sha256."""
    try:
        found: dict[str, Any] = json.loads((session.home / _RECORD).read_bytes())
    except (FileNotFoundError, ValueError):
        return {"designs": {}, "ours": {}}
    return found


def write(session: Session, known: Mapping[str, Any]) -> None:
    """Write that down, whole."""
    new = session.home / f"{_RECORD}.{secrets.token_hex(8)}"
    new.write_text(json.dumps(known), encoding="utf-8")
    new.replace(session.home / _RECORD)


@contextlib.asynccontextmanager
async def given_to(job: Job, files: Mapping[str, bytes]) -> AsyncIterator[Path]:
    """Give a job files at ``GIVEN``; its ``/tmp``, which holds nothing else, until the block ends.

    What no process of a session has touched is in it, and what the job leaves there is its own.
    """
    assert job.temporary is None
    async with own_tmp(job):
        folder = outside(job, GIVEN)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        yield folder.parent
