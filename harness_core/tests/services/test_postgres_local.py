"""A PostgreSQL server of our own on this machine: its port, its cached data directory, its binaries."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, PortTaken
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import (
    PostgresService,
    find_postgres_binaries,
    open_postgres,
    postgres_answers,
)
from harness_core.process import Run, open_run

pytestmark = pytest.mark.real


async def write_mark(service: PostgresService) -> None:
    """Leave a table."""
    async with Database(service.url()) as database:
        await database.execute("create table mark (word text)")


async def test_a_squatter_is_named(run: Run, evidence: Evidence) -> None:
    """Who takes the port of a stopped server is named when it starts again."""
    async with open_postgres(run, evidence=evidence) as service:
        await service.stop()
        with socket.socket() as squatter:
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind(("127.0.0.1", int(service.address.rpartition(":")[2])))
            squatter.listen()
            with pytest.raises(PortTaken) as caught:
                await service.start()
        await service.start()

        assert str(os.getpid()) in caught.value.owner
        assert "authentication" == await postgres_answers(service)


async def test_nobody_is_given_the_port_of_a_stopped_server(run: Run, evidence: Evidence) -> None:
    """Between stop and start the port is closed to clients and taken for others."""
    async with open_postgres(run, evidence=evidence) as service:
        await service.stop()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", int(service.address.rpartition(":")[2])))


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_password_that_was_changed_stays_so(run: Run, evidence: Evidence, how: str) -> None:
    """What a product has set is data: it is there when the server is started again."""
    async with open_postgres(run, evidence=evidence) as service:
        ours = service.url()
        theirs = ours.replace(ours.rpartition("@")[0].rpartition(":")[2], "theirs")
        async with Database(ours) as database:
            await database.execute("alter role postgres password 'theirs'")

        await getattr(service, how)()
        await service.start()

        async with Database(theirs) as database:
            assert [{"one": 1}] == await database.rows("select 1 as one")


async def test_first_starts_at_once_share_one_cache(
    run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three first starts with an empty cache all succeed and leave one cached directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def start(name: str) -> None:
        async with open_postgres(run, evidence=evidence.child(name)) as service:
            await write_mark(service)

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(start, name)

    kept = sorted((tmp_path / "cache/staging-harness/postgres-data").iterdir())
    assert ["lock"] == [path.name for path in kept if path.is_file()]
    assert 1 == len([path for path in kept if path.is_dir()])


async def test_a_damaged_cache_is_replaced(
    run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached directory with a file cut short (power loss) is made again, not started from."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with open_postgres(run, evidence=evidence.child("first")):
        pass
    (size,) = (tmp_path / "cache").rglob("size.json")
    before = json.loads(size.read_text())
    control = size.parent / "data/global/pg_control"
    control.write_bytes(control.read_bytes()[:100])
    async with open_postgres(run, evidence=evidence.child("second")) as service:
        await write_mark(service)

    (size,) = (tmp_path / "cache").rglob("size.json")
    assert before[0] == json.loads(size.read_text())[0]
    assert 8192 == (size.parent / "data/global/pg_control").stat().st_size


async def test_an_unusable_cache_falls_back(
    run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache directory that others can write is not trusted; the next candidate is used."""
    open_to_all = tmp_path / "cache/staging-harness"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    async with open_postgres(run, evidence=evidence):
        pass

    assert [] == list(open_to_all.iterdir())
    assert (tmp_path / "home/.cache/staging-harness/postgres-data").is_dir()


async def test_it_works_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evidence: Evidence
) -> None:
    """With the state moved to a long path on disk the server starts there, and says so."""
    home = Path("/var/tmp") / f"harness-test-{os.getpid()}" / ("long-" * 20)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(home))
    try:
        async with (
            open_run(evidence=evidence) as run,
            open_postgres(run, evidence=evidence) as service,
        ):
            in_memory = service.in_memory
            await write_mark(service)
    finally:
        await blocking(subprocess.run, ["rm", "-rf", str(home.parent)], check=True)

    assert in_memory is False


async def test_missing_binaries_are_one_clear_error(
    run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory without a server is refused by naming the variable that holds it."""
    find_postgres_binaries.cache_clear()
    monkeypatch.setenv("HARNESS_POSTGRES_BIN", str(tmp_path))
    try:
        with pytest.raises(BadInput) as caught:
            async with open_postgres(run, evidence=evidence):
                pass
    finally:
        find_postgres_binaries.cache_clear()

    assert "HARNESS_POSTGRES_BIN" == caught.value.key


async def test_a_backup_of_the_running_server_can_be_taken(
    run: Run, evidence: Evidence, tmp_path: Path
) -> None:
    """wal_level is what PostgreSQL has by default: pg_basebackup copies the server as it runs."""
    tool = find_postgres_binaries().directory / "pg_basebackup"
    async with open_postgres(run, evidence=evidence) as service:
        await write_mark(service)
        argv = [tool, "--pgdata", tmp_path / "copy", "--dbname", service.url(), "--no-sync"]
        done = await blocking(subprocess.run, argv, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    assert (tmp_path / "copy/PG_VERSION").is_file()


async def test_text_search_speaks_what_initdb_chose(run: Run, evidence: Evidence) -> None:
    """Our configuration file replaces that of initdb; without a word on it words are not stemmed."""
    async with (
        open_postgres(run, evidence=evidence) as service,
        Database(service.url()) as database,
    ):
        found = await database.rows("select to_tsvector('the running servers')::text as words")

    assert [{"words": "'run':2 'server':3"}] == found


async def test_settings_of_a_run_come_from_its_environment(
    run: Run, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HARNESS_POSTGRES_SETTINGS turns logical decoding on; what an opener asks for comes last."""
    monkeypatch.setenv("HARNESS_POSTGRES_SETTINGS", "wal_level=logical 'work_mem=3 MB' jit=on")
    async with (
        open_postgres(run, evidence=evidence, settings={"jit": "off"}) as service,
        Database(service.url()) as database,
    ):
        slot = "select slot_name::text from pg_create_logical_replication_slot('mark', 'pgoutput')"
        made = await database.rows(slot)
        found = await database.rows(
            "select current_setting('work_mem') work_mem, current_setting('jit') jit"
        )

    assert [{"slot_name": "mark"}] == made
    assert [{"work_mem": "3MB", "jit": "off"}] == found


@pytest.mark.parametrize("text", ["wal_level", "=logical", "a-b=c", "a='"])
async def test_a_malformed_setting_is_refused(
    run: Run, evidence: Evidence, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A word that is no name=value names the variable, before a server is started."""
    monkeypatch.setenv("HARNESS_POSTGRES_SETTINGS", text)
    with pytest.raises(BadInput) as caught:
        open_postgres(run, evidence=evidence)

    assert ("HARNESS_POSTGRES_SETTINGS", text) == (caught.value.key, caught.value.found)
