"""Databases of dead runs on a server that is not ours."""

from __future__ import annotations

import pytest
import trio

from harness_core.base.errors import Unavailable
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE, Database, sweep_databases
from harness_core.infrastructure.databases._server import Server
from harness_core.infrastructure.services import PostgresService


def make(postgres: PostgresService, *names: str, run_id: str) -> None:
    """Databases as a run would have left them."""

    async def create() -> None:
        async with Server(postgres.url, run_id=run_id, in_memory=False) as server:
            for name in names:
                await server.create(name)

    trio.run(create)


def listed(postgres: PostgresService) -> set[str]:
    """The databases of the server."""

    async def read() -> set[str]:
        async with Database(postgres.url()) as admin:
            rows = await admin.rows("SELECT datname FROM pg_database")
        return {row["datname"] for row in rows}

    return trio.run(read)


def test_only_the_databases_of_that_run_are_dropped(
    postgres: PostgresService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep drops what the dead run made, and leaves those of another run alone."""
    make(postgres, "hs_dead_a", "hs_dead_b", run_id="dead")
    make(postgres, "hs_alive_a", run_id="alive")
    monkeypatch.setenv(POSTGRES_URL_VARIABLE, postgres.url())
    removed = sweep_databases({"kind": "database", "server": postgres.address, "run": "dead"})
    left = listed(postgres)

    assert "hs_dead_a" in removed
    assert "hs_dead_b" in removed
    assert {"hs_alive_a"} == {name for name in left if name.startswith(("hs_dead", "hs_alive"))}
    assert "" == sweep_databases({"kind": "database", "server": postgres.address, "run": "dead"})
    sweep_databases({"kind": "database", "server": postgres.address, "run": "alive"})


@pytest.mark.parametrize("given", ["", "postgresql://me:secret-word@127.0.0.1:1/postgres"])
def test_another_server_is_never_touched(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the URL of the very server the ledger names, the sweep says what it needs."""
    monkeypatch.setenv(POSTGRES_URL_VARIABLE, given)
    with pytest.raises(Unavailable) as caught:
        sweep_databases({"kind": "database", "server": "10.1.2.3:5432", "run": "dead"})

    assert POSTGRES_URL_VARIABLE in caught.value.next_step
    assert "secret-word" not in str(caught.value)
