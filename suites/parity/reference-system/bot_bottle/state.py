"""What is recorded of a bottle, in `~/.bot-bottle/state/<identity>/`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bot_bottle import faults
from bot_bottle.errors import HeldError, StateError, told
from bot_bottle.host import Host

_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

#: From before there were several backends.
OLDEST_BACKEND = "docker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A bottle's record. `image` is set once an approved proposal has changed it."""

    identity: str
    agent_name: str
    cwd: str
    copy_cwd: bool
    started_at: str
    compose_project: str
    backend: str
    image: str = ""


_TYPES = {"copy_cwd": bool}


class State:
    """The records of one home."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.root = host.root / "state"

    def new_identity(self, name: str) -> str:
        return f"{name}-{secrets.token_hex(3)}"

    def folder(self, identity: str) -> Path:
        """The folder of a bottle that is recorded.

        Raises:
            StateError: it is no identity, or nothing is recorded under it.
        """
        if not _IDENTITY.fullmatch(identity):
            raise StateError(f"cannot find {identity!r}: that is no identity of a bottle")
        folder = self.root / identity
        with told(StateError, f"find {identity}"):
            is_there = folder.is_dir()
        if not is_there:
            raise StateError(f"cannot find {identity}: nothing is recorded in {folder}")
        return folder

    @contextlib.contextmanager
    def created(self, metadata: Metadata) -> Iterator[None]:
        """Record a bottle and hold it: nobody sees the record of one that is not held yet."""
        folder = self.root / metadata.identity
        with self._alone(), told(StateError, f"record {metadata.identity} in {folder}"):
            folder.mkdir(parents=True)
            try:
                self._take(metadata.identity)
                (folder / "transcript").mkdir()
                self.write(metadata)
            except (OSError, StateError):
                shutil.rmtree(folder, ignore_errors=True)
                raise
        with self._held(metadata.identity):
            yield

    def write(self, metadata: Metadata) -> None:
        content = asdict(metadata)
        if faults.on("metadata-default-backend"):
            content["backend"] = OLDEST_BACKEND
        write_atomically(self.root / metadata.identity / "metadata.json", content)

    def read(self, identity: str) -> Metadata:
        """The record of a bottle.

        Raises:
            StateError: missing or damaged; nothing is changed.
        """
        file = self.folder(identity) / "metadata.json"
        try:
            return _parse(file, identity)
        except StateError:
            if faults.on("resume-deletes-damaged"):
                shutil.rmtree(file.parent)
            raise

    def identities(self) -> list[str]:
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if path.is_dir())

    def is_recorded(self, identity: str) -> bool:
        return _IDENTITY.fullmatch(identity) is not None and (self.root / identity).is_dir()

    def preserve(self, identity: str) -> None:
        """Let the record of a bottle outlive it.

        Raises:
            StateError: nothing is recorded of it, or no longer.
        """
        self.folder(identity)
        with self._alone(), told(StateError, f"preserve {identity}"):
            (self.folder(identity) / "preserve").touch()

    def is_preserved(self, identity: str) -> bool:
        return (self.root / identity / "preserve").exists()

    def remove(self, identity: str, *, preserved_too: bool = False) -> bool:
        """Remove what is recorded of a bottle unless that is preserved; nobody sees half of it.

        It is looked at here, where nobody preserves it meanwhile. False when it is kept.
        """
        trash = self._host.root / "trash"
        with self._alone(), told(StateError, f"remove the record of {identity}"):
            if self.is_preserved(identity) and not preserved_too:
                return False
            trash.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                (self.root / identity).rename(trash / f"{identity}.{secrets.token_hex(4)}")
        self.sweep()
        return True

    def sweep(self) -> None:
        """Finish what a removal left that was interrupted."""
        with self._alone():
            shutil.rmtree(self._host.root / "trash", ignore_errors=True)

    @contextlib.contextmanager
    def locked(self, identity: str) -> Iterator[None]:
        """Hold a bottle while it runs.

        Raises:
            HeldError: another launcher that lives holds it.
            StateError: nothing is recorded of it, or it cannot be held.
        """
        self.folder(identity)
        with self._alone():
            self.folder(identity)
            holder = self.holder(identity)
            if holder is not None:
                raise HeldError(f"cannot launch {identity}: process {holder} runs it")
            with told(StateError, f"launch {identity}"):
                self._take(identity)
        with self._held(identity):
            yield

    def holder(self, identity: str) -> int | None:
        """The live process that runs a bottle."""
        try:
            text = (self.root / identity / "lock").read_text()
            pid, began = text.split()
        except (OSError, ValueError):
            return None
        return int(pid) if pid.isdigit() and _began(int(pid)) == began else None


    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process of this home is here at the same time; the kernel ends it with us."""
        with told(StateError, f"make {self._host.root}"):
            self._host.root.mkdir(parents=True, exist_ok=True)
        with alone(self._host.root / "guard"):
            yield

    def _take(self, identity: str) -> None:
        (self.root / identity / "lock").write_text(f"{os.getpid()} {_began(os.getpid())}")

    def let_go(self, identity: str) -> None:
        """Hold a bottle no longer."""
        with told(StateError, f"let go of {identity}"):
            (self.root / identity / "lock").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _held(self, identity: str) -> Iterator[None]:
        try:
            yield
        finally:
            self.let_go(identity)


@contextlib.contextmanager
def alone(guard: Path) -> Iterator[None]:
    """Wait until no other process is in such a block on the same file.

    Raises:
        StateError: the file cannot be opened or locked.
    """
    with contextlib.ExitStack() as stack:
        with told(StateError, f"lock {guard}"):
            file = stack.enter_context(guard.open("ab"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: dict[str, object]) -> None:
    """Write a file, or leave it as it is.

    Raises:
        StateError: it cannot be written.
    """
    draft = path.with_suffix(".draft")
    with told(StateError, f"write {path}"):
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(path)


def _began(pid: int) -> str | None:
    """When a live process began, so that a number used again is not mistaken for it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "unknown"


def _parse(file: Path, identity: str) -> Metadata:
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise StateError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise StateError(f"cannot read {file}: it is damaged, no JSON") from error
    if not isinstance(content, dict):
        raise StateError(f"cannot read {file}: found no mapping")
    known: dict[str, object] = {"backend": "", "image": "", "compose_project": ""}
    for key in Metadata.__dataclass_fields__:
        value = content.get(key, known.get(key))
        if not isinstance(value, _TYPES.get(key, str)):
            raise StateError(f"cannot read {file}: {key} is missing, or of the wrong type")
        known[key] = value
    if known["identity"] != identity:
        raise StateError(f"cannot read {file}: it is the record of another identity")
    if not faults.on("old-records-resumed-alone"):
        known["backend"] = known["backend"] or OLDEST_BACKEND
    return Metadata(**known)  # type: ignore[arg-type]
