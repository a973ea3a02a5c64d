"""Sessions: each has folders of its own, a user number of its own, and its events."""

from __future__ import annotations

import hashlib
import json
import os
import re
import posixpath
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workbench_contract.events import EventKind
from workbench_contract.places import SKILLS
from workbench_contract.skills import SkillsGiven
from workbench_foundation import faults, log
from workbench_worker import beneath
from workbench_worker.eventlog import EventLog
from workbench_worker.refusal import Refused

#: Names that are folders without harm on every file system; no dots, so that none is `..`.
ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

#: What agents read their events by; the file itself is not theirs.
RECORD = "events.jsonl"

#: Beside its files: which skills a session was given.
SKILLS_RECORD = "skills.json"
#: Below the worker's data: the versions of the skills that were taken.
VERSIONS = "skills"
#: Beside a session's files: copies of its skills for processes that run.
SHOWN = "shown"

#: User numbers of sessions begin above those that anybody is given.
_FIRST_UID = 2_000_000
_UIDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session.

    Attributes:
        workspace: what its agent sees as its files.
        temporary: what its code sees as ``/tmp``.
        uid: who its code runs as; none when the worker is not root.
        lock: held while a file is read or changed by a request, so that each sees whole files and
            none undoes another's change.
        given: the folder of its skills, as soon as it has some.
    """

    id: str
    home: Path
    events: EventLog
    uid: int | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    given: list[Path] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def temporary(self) -> Path:
        if faults.on("tmp-shared"):
            shared = self.home.parent.parent / "tmp"
            shared.mkdir(exist_ok=True)
            shared.chmod(0o777)
            return shared
        return self.home / "tmp"

    @property
    def skills_at(self) -> Path | None:
        """The folder of its skills, of one version; none for a session without."""
        return self.given[0] if self.given else None

    def skill_path(self, path: str) -> str | None:
        """What a path names within the session's skills, ``.`` for all of them; none for another path."""
        first, _, rest = posixpath.normpath(path).partition("/")
        return (rest or ".") if self.given and first == SKILLS else None

    def give_skills(self, given: SkillsGiven) -> None:
        """It has the skills of a version that was taken, from now on."""
        if given.commit is not None and not self.given:
            versions = self.home.parent.parent / VERSIONS
            self.given.append(versions / given.commit / SKILLS)

    def record(self, kind: EventKind, payload: dict[str, object]) -> None:
        """Write an event down, with the ids of the request that caused it."""
        ids = self.ids()
        self.events.append(kind, payload, ids=ids)
        log.info("event", kind=kind.value, **{k: v for k, v in ids.items() if v})

    def ids(self) -> dict[str, str]:
        """Episode and trace: of the request, else of an earlier one."""
        correlation = log.correlation()
        ids = {name: correlation[name] for name in ("episode_id", "trace_id") if name in correlation}
        owner = self.home / "owner.json"
        if len(ids) == 2:
            if not owner.exists():
                # Whole or not there, whenever the worker is killed.
                new = self.home / f"owner.{secrets.token_hex(8)}"
                new.write_text(json.dumps(ids), encoding="utf-8")
                new.replace(owner)
            return ids
        return json.loads(owner.read_text(encoding="utf-8")) if owner.exists() else ids

    @contextmanager
    def opened(self, path: str, flags: int, *, mode: int = 0o600) -> Iterator[int]:
        """A descriptor of one of its files; see :mod:`workbench_worker.beneath`.

        Its skills are opened where they are kept, and only to be read.
        """
        within = self.skill_path(path)
        if within is not None:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                raise unchangeable(path)
            with beneath.opened(str(self.skills_at), within, flags) as fd:
                yield fd
            return
        with beneath.opened(str(self.workspace), path, flags, mode=mode) as fd:
            yield fd

    def give(self, fd: int) -> None:
        """Make what was opened belong to the session's user."""
        if self.uid is not None:
            os.fchown(fd, self.uid, self.uid)


def unchangeable(path: str) -> Refused:
    """The refusal of a change of skills."""
    detail = f"cannot change {path!r}: skills are there to be read. Write outside of {SKILLS}/"
    return Refused(403, detail)


class Sessions:
    """All sessions of the worker; made when first named.

    Args:
        data: the folder they live in.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / "sessions"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o711)
        self._known: dict[str, Session] = {}
        self._lock = threading.Lock()

    def get(self, session_id: str) -> Session:
        """The session of that id.

        Raises:
            Refused: it is no id.
        """
        if not re.fullmatch(ID, session_id):
            raise Refused(422, f"cannot use session {session_id[:80]!r}: it is no id. Match {ID}")
        with self._lock:
            if session_id not in self._known:
                self._known[session_id] = self._make(session_id)
            return self._known[session_id]

    def files_at(self, pattern: str) -> list[Path]:
        """Files of all sessions beside their workspaces, by a pattern below each one's home."""
        return list(self._folder.glob(f"*/{pattern}"))

    def writable(self) -> None:
        """Raises OSError when nothing can be written."""
        if faults.on("health-probes-collide"):
            probe = self._folder.parent / ".writable"
            with probe.open("wb") as file:
                os.fsync(file.fileno())
            probe.unlink()
            return
        with tempfile.TemporaryFile(dir=self._folder.parent):
            pass  # of no name: several may ask at once

    def _make(self, session_id: str) -> Session:
        home = self._folder / session_id
        for folder in (home, home / "workspace", home / "tmp", home / "walls"):
            folder.mkdir(exist_ok=True)
        uid = _uid(session_id) if os.geteuid() == 0 else None
        if uid is not None:
            for folder in (home / "workspace", home / "tmp"):
                os.chown(folder, uid, uid)
                folder.chmod(0o700)
        events = EventLog(home / RECORD, session_id=session_id)
        session = Session(id=session_id, home=home, events=events, uid=uid)
        # Of processes that ended with an earlier worker.
        shutil.rmtree(home / SHOWN, ignore_errors=True)
        known = home / SKILLS_RECORD
        if known.exists():
            session.give_skills(SkillsGiven.model_validate_json(known.read_bytes()))
        return session


def _uid(session_id: str) -> int:
    digest = hashlib.sha256(session_id.encode()).digest()
    return _FIRST_UID + int.from_bytes(digest[:8], "big") % _UIDS
