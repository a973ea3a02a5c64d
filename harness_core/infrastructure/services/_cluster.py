"""The data directory of a disposable server: initialised once, cached, copied for every start.

``initdb`` costs 300 ms and more; a copy in memory costs 25. The cache key covers everything that
shapes the result (the server's build, options of ``initdb``), so a changed option makes a new entry.
Passwords and server settings are no part of it: those are written into each copy.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import ChildExited, Unavailable
from harness_core.base.groups import lone_error
from harness_core.base.machine import (
    STATE_ELSEWHERE,
    PostgresBinaries,
    cache_directory,
    closed_to_others,
    disk_full,
    locked,
    writing,
)

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

#: What a full disk keeps us from writing.
_WHAT: Final = "the data directory of a PostgreSQL server"

#: Raise it when the content of a cached directory changes for a reason the key does not see.
_LAYOUT: Final = 1

#: A cached directory that was not used for so long belongs to a version that is gone.
_UNUSED_S: Final = 30 * 24 * 3600.0

#: From these versions on.
_BUILTIN_LOCALE_MAJOR: Final = 17
_CHECKSUMS_DEFAULT_MAJOR: Final = 18


def server_environment() -> dict[str, str]:
    """The whole environment of server processes: nothing of the caller's ``PG*`` settings."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def met_full_disk(tail: Sequence[str]) -> bool:
    """Whether a program's last lines report that there is no room (``LC_ALL`` is C)."""
    return any(os.strerror(errno.ENOSPC) in line for line in tail)


#: Uid and gid that the server runs as, when that is not ourselves.
Owner = tuple[int, int]


@asynccontextmanager
async def open_cluster(
    run: Run, binaries: PostgresBinaries, *, owner: Owner | None, evidence: Evidence
) -> AsyncIterator[Path]:
    """Yield a directory with an initialised data directory ``data`` in it; both go at the end.

    A data directory that had to be initialised is taken into the cache while the server already
    starts: on a disk that costs as long as ``initdb`` itself.

    Raises:
        ChildExited: ``initdb`` failed; carries its output.
        Unavailable: there is no usable cache directory, no room for another data directory, or no
            way to it for the server's user.
    """
    options = _initdb_options(binaries.major)
    entry = await blocking(_home) / _key(binaries, options)
    home = run.directory("postgres", in_memory=True)
    target = home / "data"
    closed = closed_to_others(home) if owner is not None else None
    if owner is not None and closed is not None:
        action = f"run PostgreSQL as user {owner[0]} in {home}"
        raise Unavailable(
            action,
            observed=f"only its owner may pass {closed}",
            next_step=f"Set {STATE_ELSEWHERE} or TMPDIR to a place that others may pass, "
            f"or: chmod o+x {closed}",
        )
    try:
        async with lone_error(), trio.open_nursery() as nursery:
            with writing(target, what=_WHAT, elsewhere=STATE_ELSEWHERE):
                cached = await blocking(_copy_cached, entry, target, owner)
            if not cached:
                # Several processes may get here at once; each initialises, the first one is kept.
                # That costs no more than waiting for it, and no lock outlives an await.
                made = await _initialise(run, binaries, options, owner=owner, evidence=evidence)
                with writing(target, what=_WHAT, elsewhere=STATE_ELSEWHERE):
                    await blocking(_copy_tree, made, target, owner=owner)
                nursery.start_soon(_keep, made, entry, evidence)
            yield home
    finally:
        with trio.CancelScope(shield=True):
            await blocking(partial(shutil.rmtree, home, ignore_errors=True))


async def _keep(made: Path, entry: Path, evidence: Evidence) -> None:
    try:
        await blocking(_take, made, entry)
    except OSError as error:
        # A full disk costs the next start its head start, and this run nothing.
        evidence.append("postgres-cache.txt", f"cannot cache {entry}: {error}")


def _initdb_options(major: int) -> tuple[str, ...]:
    options = [
        "--username=postgres",
        "--auth=trust",  # rewritten in every copy, before a server sees it
        "--encoding=UTF8",
        "--locale=C",
        "--wal-segsize=1",
        "--no-sync",
        "--no-instructions",
    ]
    if major >= _BUILTIN_LOCALE_MAJOR:
        # The server's own Unicode rules: the same order and case mapping on every machine.
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if major >= _CHECKSUMS_DEFAULT_MAJOR:
        options += ["--no-data-checksums"]
    return tuple(options)


def _key(binaries: PostgresBinaries, options: tuple[str, ...]) -> str:
    text = json.dumps([_LAYOUT, binaries.build, options])
    return f"{binaries.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _home() -> Path:
    """The directory of cached clusters; closed to everybody else, the server's user included."""
    home = cache_directory() / "postgres-data"
    home.mkdir(mode=0o700, exist_ok=True)
    return home


async def _initialise(
    run: Run,
    binaries: PostgresBinaries,
    options: tuple[str, ...],
    *,
    owner: Owner | None,
    evidence: Evidence,
) -> Path:
    """Run ``initdb`` in a directory its user can reach; returns the data directory."""
    work = run.directory("initdb", in_memory=True)
    if owner is not None:
        os.chown(work, *owner)
    async with run.child(
        (str(binaries.initdb), "--pgdata", str(work / "data"), *options),
        name="initdb",
        env=server_environment(),
        cwd=work,
        evidence=evidence,
        user=owner[0] if owner is not None else None,
    ) as child:
        returncode = await child.wait()
        if returncode != 0 and met_full_disk(child.tail()):
            raise disk_full(
                work, what=_WHAT, elsewhere=STATE_ELSEWHERE, tail=child.tail(), log=child.log
            )
        if returncode != 0:
            raise ChildExited(
                "initialise a PostgreSQL data directory",
                name="initdb",
                returncode=returncode,
                next_step="Read its output, or name another server by HARNESS_POSTGRES_BIN",
                tail=child.tail(),
                log=child.log,
            )
    return work / "data"


def _take(made: Path, entry: Path) -> None:
    """Store a fresh directory in the cache, unless another process was first; the original goes."""
    partial = entry.with_name(f"partial.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        partial.mkdir(mode=0o700)
        size = _copy_tree(made, partial / "data", owner=None)
        (partial / "size.json").write_text(json.dumps(size))
        with locked(entry.parent / "lock"):
            if _recorded_size(entry) is None:
                shutil.rmtree(entry, ignore_errors=True)
                partial.rename(entry)
            _prune(entry.parent, keep=entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(made.parent, ignore_errors=True)


def _prune(home: Path, *, keep: Path) -> None:
    oldest = time.time() - _UNUSED_S
    for path in home.iterdir():
        if path.is_dir() and path != keep and path.stat().st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)


def _copy_cached(entry: Path, target: Path, owner: Owner | None) -> bool:
    """Copy the cached directory to ``target``; false when there is none or it is damaged.

    A machine that lost power may hold a directory with files cut short (nothing is synced); the
    sizes recorded when it was made tell. A damaged entry is removed.
    """
    expected = _recorded_size(entry)
    if expected is None:
        return False
    try:
        copied = _copy_tree(entry / "data", target, owner=owner)
    except FileNotFoundError:
        copied = []
    if copied == expected:
        os.utime(entry)
        return True
    shutil.rmtree(target, ignore_errors=True)
    with locked(entry.parent / "lock"):
        shutil.rmtree(entry, ignore_errors=True)
    return False


def _recorded_size(entry: Path) -> list[int] | None:
    try:
        found = json.loads((entry / "size.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, list) else None


def _copy_tree(source: Path, target: Path, *, owner: Owner | None) -> list[int]:
    """Copy a tree of plain files; twice as fast as ``cp -a`` or ``shutil.copytree`` here.

    Returns:
        Number of files and of bytes copied.
    """
    uid, gid = owner or (-1, -1)
    files = size_bytes = 0
    pending = [(str(source), str(target))]
    while pending:
        below, copy = pending.pop()
        os.mkdir(copy, 0o700)  # noqa: PTH102 - a thousand Path objects cost as much as the copy
        os.chown(copy, uid, gid)
        with os.scandir(below) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, f"{copy}/{entry.name}"))
                else:
                    files += 1
                    size_bytes += _copy_file(entry.path, f"{copy}/{entry.name}", uid, gid)
    return [files, size_bytes]


def _copy_file(source: str, target: str, uid: int, gid: int) -> int:
    with (
        _opened(source, os.O_RDONLY) as reader,
        _opened(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as writer,
    ):
        os.fchown(writer, uid, gid)
        done, whole = 0, os.fstat(reader).st_size
        while done < whole and (moved := os.sendfile(writer, reader, done, whole - done)):
            done += moved
        return done


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_settings(data: Path, settings: Mapping[str, str], *, owner: Owner | None) -> None:
    """Replace the copy's configuration and access rules by ours.

    The socket lies in the data directory, which only the server's user can enter: whoever reaches
    it may be trusted, and it is how the password is set.
    """
    lines = [f"{key} = '{_quoted(value)}'" for key, value in settings.items()]
    rules = [  # "all" is every database, which replication is not
        "local all,replication all trust",
        "host all,replication all 127.0.0.1/32 scram-sha-256",
    ]
    for name, content in (("postgresql.conf", lines), ("pg_hba.conf", rules)):
        path = data / name
        with writing(data, what=_WHAT, elsewhere=STATE_ELSEWHERE):
            path.write_text("\n".join(content) + "\n")
        if owner is not None:
            os.chown(path, *owner)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
