"""PostgreSQL as its users see it, on the servers that ``--services`` names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from harness_core.base.errors import ChildExited, HarnessError, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import open_postgres
from harness_core.process import Run

pytestmark = pytest.mark.real

KIND = "postgres"


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


async def test_an_open_connection_hangs_while_the_server_is_paused(ours) -> None:
    """Pause freezes the forks too: a query on a connection from before gets no answer."""
    async with (
        ours() as service,
        Database(service.url()) as database,
    ):
        await database.rows("select 1")
        await service.pause()
        with trio.move_on_after(0.3) as scope:
            await database.rows("select 1")
        await service.resume()

        assert scope.cancelled_caught
        assert [{"n": 1}] == await database.rows("select 1 as n")


async def test_restart_keeps_address_and_data(ours) -> None:
    """A handle from before a restart works after it, and finds its rows."""
    async with (
        ours() as service,
        Database(service.url()) as database,
    ):
        await database.execute("create table t (n int)")
        await database.execute("insert into t values (7)")
        url = service.url()
        await service.restart()

        assert url == service.url()
        assert [{"n": 7}] == await database.rows("select n from t")


async def test_commits_survive_a_kill(ours) -> None:
    """What was committed a moment before a crash is there after it."""
    async with (
        ours() as service,
        Database(service.url()) as database,
    ):
        await database.execute("create table t as select generate_series(1, 1000) as n")
        await service.kill()
        await service.start()

        assert 1000 == (await database.one("select count(*) as n from t"))["n"]


async def test_a_wrong_password_is_refused(ours) -> None:
    """Other users of the machine cannot enter through the loopback port."""
    async with ours() as service:
        url = service.url()
        password = url.split(":")[2].partition("@")[0]
        async with Database(url.replace(password, "guess")) as stranger:
            with pytest.raises(Unavailable, match="password authentication failed"):
                await stranger.rows("select 1")


async def test_the_password_is_in_no_evidence(ours, evidence: Evidence) -> None:
    """Nothing written under the evidence directory holds the password."""
    async with ours() as service:
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


async def test_settings_reach_the_server(ours) -> None:
    """A caller's setting replaces ours."""
    async with (
        ours(settings={"max_connections": "17"}) as service,
        Database(service.url()) as database,
    ):
        assert {"max_connections": "17"} == await database.one("show max_connections")


async def test_pausing_a_stopped_server_is_refused(ours) -> None:
    """There is nothing to freeze; the error says so."""
    async with ours() as service:
        await service.stop()
        with pytest.raises(HarnessError, match="it is not running"):
            await service.pause()


async def test_a_bad_setting_shows_the_servers_words(
    ours, leftovers: Callable[[str], list[str]]
) -> None:
    """A server that gives up while it starts is reported with exit status and output."""
    before = leftovers("postgres")
    with pytest.raises(ChildExited) as caught:
        async with ours(settings={"work_mem": "a lot"}):
            pass

    assert "postgres" == caught.value.name
    assert any("work_mem" in line for line in caught.value.tail)
    assert before == leftovers("postgres")
