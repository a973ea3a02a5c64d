"""PostgreSQL by its providers: each passes the conformance check, or says why it cannot."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from harness_core.bridge import blocking
from harness_core.containers import LABEL_RUN, build_images, engine_client, image_tag
from harness_core.db import Database
from harness_core.engine import find_engine
from harness_core.errors import BadInput, ChildExited, HarnessError, PortTaken, Unavailable
from harness_core.evidence import Evidence, open_evidence
from harness_core.process import Run, memory_root, open_run, state_root
from harness_core.services import PostgresService, open_postgres, postgres_answers
from harness_core.testing import ServiceState, check_service

pytestmark = pytest.mark.real


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """A directory for logs."""
    return open_evidence(tmp_path / "evidence")


@pytest.fixture
async def run(evidence: Evidence) -> AsyncIterator[Run]:
    """A run of its own for each test."""
    async with open_run(evidence=evidence) as opened:
        yield opened


def leftovers(run: Run):
    """What a server of this run has on this machine: processes, directories, shared memory."""

    def look() -> list[str]:
        directories = [
            str(path)
            for root in (memory_root(), state_root())
            if root is not None
            for path in (root / run.id).glob("postgres*")
        ]
        processes = [
            f"{entry.name} {command}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit()
            and run.id in (command := _command(entry))
            and "_warden.py" not in command  # the run's own, there as long as the run
        ]
        # Line by line and without times: attaching and detaching elsewhere is not ours.
        segments = [
            f"segment {row.split()[1]}"
            for row in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
            if row.split()[3] == "56" and row.split()[6] == "0"
        ]
        return [*directories, *processes, *segments]

    return look


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


async def write_mark(service: PostgresService) -> None:
    """Leave a table."""
    async with Database(service.url()) as database:
        await database.execute("create table mark (word text)")


async def read_mark(service: PostgresService) -> bool:
    """Whether the table is there."""
    async with Database(service.url()) as database:
        rows = await database.rows("select to_regclass('mark') is not null as there")
        return bool(rows[0]["there"])


async def test_local_passes_the_conformance_check(run: Run, evidence: Evidence) -> None:
    """A server of our own can be taken away and given back in every way, and leaves nothing."""
    await check_service(
        lambda: open_postgres(run, evidence=evidence),
        ask=postgres_answers,
        state=ServiceState(write=write_mark, read=read_mark),
        leftovers=leftovers(run),
    )
    async with open_postgres(run, evidence=evidence) as service:
        assert "authentication" == await postgres_answers(service)


async def test_external_passes_the_conformance_check(run: Run, evidence: Evidence) -> None:
    """A server of somebody else is used, never taken away, and lives on."""
    async with open_postgres(run, evidence=evidence) as theirs:
        await check_service(
            lambda: open_postgres(run, evidence=evidence, provider="external", url=theirs.url()),
            ask=postgres_answers,
            controllable=False,
        )

        assert "authentication" == await postgres_answers(theirs)


@pytest.mark.docker
@pytest.mark.requires("docker")
@pytest.mark.parametrize("image", ["postgres-baked", "postgres"])
async def test_container_passes_the_conformance_check(
    run: Run, evidence: Evidence, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server in a container is taken away and given back like a local one, and leaves nothing."""
    await blocking(build_images, find_engine(), names=(image,), say=print)
    monkeypatch.setenv("HARNESS_POSTGRES_IMAGE", image_tag(image))
    await check_service(
        lambda: open_postgres(run, evidence=evidence, provider="container"),
        ask=postgres_answers,
        state=ServiceState(write=write_mark, read=read_mark),
        leftovers=lambda: containers_of(run),
    )


def containers_of(run: Run) -> list[str]:
    """What the engine holds for this run, containers and volumes."""
    label = {"label": f"{LABEL_RUN}={run.id}"}
    with engine_client(find_engine()) as client:
        containers = client.containers.list(all=True, filters=label, ignore_removed=True)
        volumes = client.volumes.list(filters={"dangling": True})
    return [each.name for each in (*containers, *volumes)]


async def test_container_says_what_is_missing(
    run: Run, evidence: Evidence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without an engine one error names the place that was asked and what to do."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(Unavailable) as refused:
        async with open_postgres(run, evidence=evidence, provider="container"):
            pass

    assert f"unix://{tmp_path}/docker.sock" in refused.value.observed
    assert "--services local" in refused.value.next_step


async def test_an_open_connection_hangs_while_the_server_is_paused(
    run: Run, evidence: Evidence
) -> None:
    """Pause freezes the forks too: a query on a connection from before gets no answer."""
    async with (
        open_postgres(run, evidence=evidence) as service,
        Database(service.url()) as database,
    ):
        await database.rows("select 1")
        await service.pause()
        with trio.move_on_after(0.3) as scope:
            await database.rows("select 1")
        await service.resume()

        assert scope.cancelled_caught
        assert [{"n": 1}] == await database.rows("select 1 as n")


async def test_restart_keeps_address_and_data(run: Run, evidence: Evidence) -> None:
    """A handle from before a restart works after it, and finds its rows."""
    async with (
        open_postgres(run, evidence=evidence) as service,
        Database(service.url()) as database,
    ):
        await database.execute("create table t (n int)")
        await database.execute("insert into t values (7)")
        url = service.url()
        await service.restart()

        assert url == service.url()
        assert [{"n": 7}] == await database.rows("select n from t")


async def test_commits_survive_a_kill(run: Run, evidence: Evidence) -> None:
    """What was committed a moment before a crash is there after it."""
    async with (
        open_postgres(run, evidence=evidence) as service,
        Database(service.url()) as database,
    ):
        await database.execute("create table t as select generate_series(1, 1000) as n")
        await service.kill()
        await service.start()

        assert 1000 == (await database.one("select count(*) as n from t"))["n"]


async def test_a_wrong_password_is_refused(run: Run, evidence: Evidence) -> None:
    """Other users of the machine cannot enter through the loopback port."""
    async with open_postgres(run, evidence=evidence) as service:
        url = service.url()
        password = url.split(":")[2].partition("@")[0]
        async with Database(url.replace(password, "guess")) as stranger:
            with pytest.raises(Unavailable, match="password authentication failed"):
                await stranger.rows("select 1")


async def test_the_password_is_in_no_evidence(run: Run, evidence: Evidence) -> None:
    """Nothing written under the evidence directory holds the password."""
    async with open_postgres(run, evidence=evidence) as service:
        password = service.url().split(":")[2].partition("@")[0]
        evidence.write_text("url.txt", service.url())
        async with Database(service.url()) as database:
            with pytest.raises(Exception, match="syntax"):
                await database.rows(f"select '{password}' from")
        files = [path for path in evidence.path.rglob("*") if path.is_file()]
        logged = "".join(path.read_text() for path in files)

    assert 32 == len(password)
    assert "ready to accept connections" in logged
    assert password not in logged


async def test_two_servers_do_not_meet(run: Run, evidence: Evidence) -> None:
    """Servers of one run have addresses, passwords and data of their own."""
    async with (
        open_postgres(run, evidence=evidence.child("a")) as first,
        open_postgres(run, evidence=evidence.child("b")) as second,
    ):
        await write_mark(first)

        assert first.address != second.address
        assert not await read_mark(second)


async def test_settings_reach_the_server(run: Run, evidence: Evidence) -> None:
    """A caller's setting replaces ours."""
    async with (
        open_postgres(run, evidence=evidence, settings={"max_connections": "17"}) as service,
        Database(service.url()) as database,
    ):
        assert {"max_connections": "17"} == await database.one("show max_connections")


async def test_a_bad_setting_shows_the_servers_words(run: Run, evidence: Evidence) -> None:
    """A server that gives up while it starts is reported with exit status and output."""
    before = leftovers(run)()
    with pytest.raises(ChildExited) as caught:
        async with open_postgres(run, evidence=evidence, settings={"work_mem": "a lot"}):
            pass

    assert "postgres" == caught.value.name
    assert any("work_mem" in line for line in caught.value.tail)
    assert before == leftovers(run)()


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


async def test_pausing_a_stopped_server_is_refused(run: Run, evidence: Evidence) -> None:
    """There is nothing to freeze; the error says so."""
    async with open_postgres(run, evidence=evidence) as service:
        await service.stop()
        with pytest.raises(HarnessError, match="it is not running"):
            await service.pause()


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
    from harness_core.services import find_postgres_binaries

    find_postgres_binaries.cache_clear()
    monkeypatch.setenv("HARNESS_POSTGRES_BIN", str(tmp_path))
    try:
        with pytest.raises(BadInput) as caught:
            async with open_postgres(run, evidence=evidence):
                pass
    finally:
        find_postgres_binaries.cache_clear()

    assert "HARNESS_POSTGRES_BIN" == caught.value.key


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        pytest.param({"provider": "cloud"}, "provider", id="unknown-provider"),
        pytest.param({"url": "postgresql://h/"}, "url", id="url-for-local"),
        pytest.param({"provider": "external"}, "url", id="external-without-url"),
        pytest.param({"provider": "external", "url": "mysql://h/"}, "url", id="other-scheme"),
        pytest.param({"provider": "external", "url": "postgresql:///x"}, "url", id="no-host"),
        pytest.param({"provider": "external", "url": "postgresql://h:x/"}, "url", id="no-port"),
        pytest.param(
            {"provider": "external", "url": "postgresql://h/", "settings": {"jit": "on"}},
            "settings",
            id="settings",
        ),
    ],
)
async def test_malformed_arguments_are_refused(
    run: Run, evidence: Evidence, arguments: dict[str, object], key: str
) -> None:
    """Each mistake in the choice of a provider gives one error that names the argument."""
    with pytest.raises(BadInput) as caught:
        async with open_postgres(run, evidence=evidence, **arguments):
            pass

    assert key == caught.value.key


async def test_a_dead_external_server_is_one_clear_error(run: Run, evidence: Evidence) -> None:
    """Nobody at the URL: the error names the address and never the password."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Unavailable) as caught:
        async with open_postgres(
            run,
            evidence=evidence,
            provider="external",
            url=f"postgresql://me:geheimnis@127.0.0.1:{port}/x",
        ):
            pass

    assert f"reach the external postgres on 127.0.0.1:{port}" == caught.value.action
    assert "geheimnis" not in str(caught.value)
