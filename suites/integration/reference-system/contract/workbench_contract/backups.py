"""Backups: the database and the objects that its rows name, as of one moment, in the object store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from workbench_contract.base import Model
from workbench_contract.problem import Problem

#: Where all backups are kept, each below its id.
BACKUPS = "backups"


class BackupStatus(StrEnum):
    """How far it is."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self is not BackupStatus.RUNNING


class Kept(Model):
    """An object of a backup.

    Attributes:
        key: of the object in the store.
        sha256: of its bytes, in hexadecimal digits.
    """

    key: str
    size_bytes: int
    sha256: str


class KeptObject(Kept):
    """A copy of an object.

    Attributes:
        source_key: of what it is a copy of.
    """

    source_key: str


class Backup(Model):
    """A backup on record.

    Attributes:
        bucket: of all its objects.
        prefix: with which all their keys begin.
        database: what ``pg_dump`` wrote, in its custom format; none before it is completed.
        manifest: a :class:`Manifest`; none before it is completed.
        objects: how many objects were copied.
        missing: keys of objects that rows name, and the store had lost before.
        size_bytes: of all its objects; 0 before it is completed, and when nothing is left of it.
        duration_s: from its acceptance to its end.
        reason: why it failed; none else.
        expired_at: when its objects were removed, since later ones are kept; none before.
    """

    backup_id: str
    workflow_id: str
    status: BackupStatus
    bucket: str
    prefix: str
    database: Kept | None
    manifest: Kept | None
    objects: int
    missing: list[str]
    size_bytes: int
    duration_s: float | None
    reason: str | None
    created_at: datetime
    ended_at: datetime | None
    expired_at: datetime | None


class BackupList(Model):
    """Backups, latest first."""

    backups: list[Backup]
    total: int


class BackupRefused(Problem):
    """It could not be started; it is on record, with its state."""

    backup_id: str
    status: BackupStatus


class Manifest(Model):
    """What a backup consists of; written last, so that one without it is none.

    Attributes:
        taken_at: the moment that it is of, by the database's clock.
        missing: keys of objects that rows name, and the store has lost.
    """

    backup_id: str
    taken_at: datetime
    database: Kept
    objects: list[KeptObject]
    missing: list[str]
