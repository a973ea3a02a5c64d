"""PostgreSQL as its users see it, on the servers that ``--services`` names."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, ChildExited, HarnessError, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import build_images, image_tag
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE, Database
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import PostgresService, open_postgres, postgres_answers
from harness_core.process import Run
from harness_core.tests.conformance.services import ServiceState, check_service

pytestmark = pytest.mark.real

Open = Callable[..., AbstractAsyncContextManager[PostgresService]]


@pytest.fixture
def opened(run: Run, evidence: Evidence, provider: str) -> Open:
    """Opens a server of the chosen provider."""
    url = os.environ.get(POSTGRES_URL_VARIABLE) if provider == "external" else None

    def opener(*, evidence: Evidence = evidence, **more: object):
        return open_postgres(run, evidence=evidence, provider=provider, url=url, **more)

    return opener


@pytest.fixture
def ours(opened: Open, provider: str) -> Open:
    """The same, where the server is ours to settle and to take away."""
    if provider == "external":
        not_run("options", "an external server is not ours to take away")
    return opened


async def write_mark(service: PostgresService) -> None:
    """Leave a table."""
    async with Database(service.url()) as database:
        await database.execute("create table mark (word text)")


async def read_mark(service: PostgresService) -> bool:
    """Whether the table is there."""
    async with Database(service.url()) as database:
        rows = await database.rows("select to_regclass('mark') is not null as there")
        return bool(rows[0]["there"])


STATE = ServiceState(write=write_mark, read=read_mark)


async def test_the_chosen_provider_passes_the_conformance_check(
    opened: Open, provider: str, leftovers: Callable[[str], list[str]]
) -> None:
    """A server can be taken away and given back in every way, unless it is somebody else's."""
    await check_service(
        opened,
        ask=postgres_answers,
        state=STATE,
        leftovers=partial(leftovers, "postgres"),
        controllable=provider != "external",
    )
    async with opened() as service:
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
    run: Run,
    evidence: Evidence,
    image: str,
    leftovers: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server in a container is taken away and given back like a local one, and leaves nothing."""
    await blocking(build_images, find_engine(), names=(image,), say=print)
    monkeypatch.setenv("HARNESS_POSTGRES_IMAGE", image_tag(image))
    await check_service(
        lambda: open_postgres(run, evidence=evidence, provider="container"),
        ask=postgres_answers,
        state=STATE,
        leftovers=partial(leftovers, "postgres"),
    )


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


async def test_an_open_connection_hangs_while_the_server_is_paused(ours: Open) -> None:
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


async def test_restart_keeps_address_and_data(ours: Open) -> None:
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


async def test_commits_survive_a_kill(ours: Open) -> None:
    """What was committed a moment before a crash is there after it."""
    async with (
        ours() as service,
        Database(service.url()) as database,
    ):
        await database.execute("create table t as select generate_series(1, 1000) as n")
        await service.kill()
        await service.start()

        assert 1000 == (await database.one("select count(*) as n from t"))["n"]


async def test_a_wrong_password_is_refused(ours: Open) -> None:
    """Other users of the machine cannot enter through the loopback port."""
    async with ours() as service:
        url = service.url()
        password = url.split(":")[2].partition("@")[0]
        async with Database(url.replace(password, "guess")) as stranger:
            with pytest.raises(Unavailable, match="password authentication failed"):
                await stranger.rows("select 1")


async def test_the_password_is_in_no_evidence(ours: Open, evidence: Evidence) -> None:
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


async def test_two_servers_do_not_meet(ours: Open, evidence: Evidence) -> None:
    """Servers of one run have addresses, passwords and data of their own."""
    async with (
        ours(evidence=evidence.child("a")) as first,
        ours(evidence=evidence.child("b")) as second,
    ):
        await write_mark(first)

        assert first.address != second.address
        assert not await read_mark(second)


async def test_settings_reach_the_server(ours: Open) -> None:
    """A caller's setting replaces ours."""
    async with (
        ours(settings={"max_connections": "17"}) as service,
        Database(service.url()) as database,
    ):
        assert {"max_connections": "17"} == await database.one("show max_connections")


async def test_pausing_a_stopped_server_is_refused(ours: Open) -> None:
    """There is nothing to freeze; the error says so."""
    async with ours() as service:
        await service.stop()
        with pytest.raises(HarnessError, match="it is not running"):
            await service.pause()


async def test_a_bad_setting_shows_the_servers_words(
    ours: Open, leftovers: Callable[[str], list[str]]
) -> None:
    """A server that gives up while it starts is reported with exit status and output."""
    before = leftovers("postgres")
    with pytest.raises(ChildExited) as caught:
        async with ours(settings={"work_mem": "a lot"}):
            pass

    assert "postgres" == caught.value.name
    assert any("work_mem" in line for line in caught.value.tail)
    assert before == leftovers("postgres")


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
