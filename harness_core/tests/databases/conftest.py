"""One PostgreSQL server for the tests of this folder; every test gets a database of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness_core.base.bridge import open_loop
from harness_core.base.evidence import open_evidence
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE, Database
from harness_core.infrastructure.databases._server import Server
from harness_core.infrastructure.services import PostgresService, open_postgres
from harness_core.process import Run, open_run


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, provider: str
) -> Iterator[tuple[Run, PostgresService]]:
    """A server in a loop of its own, as suites hold theirs; tests run in other loops."""
    url = os.environ.get(POSTGRES_URL_VARIABLE) if provider == "external" else None
    evidence = open_evidence(tmp_path_factory.mktemp("evidence"))
    with (
        open_loop() as loop,
        loop.hold(open_run(evidence=evidence)) as run,
        loop.hold(open_postgres(run, evidence=evidence, provider=provider, url=url)) as postgres,
    ):
        yield run, postgres


@pytest.fixture
def postgres(server: tuple[Run, PostgresService]) -> PostgresService:
    """The server alone."""
    return server[1]


@pytest.fixture
def run(server: tuple[Run, PostgresService]) -> Run:
    """Its run."""
    return server[0]


@pytest.fixture
async def database(
    postgres: PostgresService, request: pytest.FixtureRequest
) -> AsyncIterator[Database]:
    """An empty database."""
    name = f"hs_tests_{abs(hash(request.node.nodeid))}"
    async with Server(postgres.url, run_id="tests", in_memory=postgres.in_memory) as admin:
        await admin.create(name)
        try:
            async with Database(postgres.url(name)) as opened:
                yield opened
        finally:
            await admin.drop(name)


@pytest.fixture
def chain_directory(tmp_path: Path) -> Path:
    """Two revisions without an ``env.py``."""
    directory = tmp_path / "chain"
    write_revisions(directory, 2)
    return directory


def write_revisions(directory: Path, count: int) -> None:
    """A chain of ``count`` revisions, each of which makes one table."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        down = repr(f"r{number - 1:03}") if number > 1 else "None"
        (directory / f"r{number:03}.py").write_text(
            "from alembic import op\n"
            "import sqlalchemy as sa\n"
            f"revision = 'r{number:03}'\n"
            f"down_revision = {down}\n"
            "branch_labels = None\n"
            "depends_on = None\n\n\n"
            "def upgrade():\n"
            f"    op.create_table('t{number:03}', sa.Column('id', sa.Integer, primary_key=True),\n"
            "                    sa.Column('word', sa.Text))\n"
        )
