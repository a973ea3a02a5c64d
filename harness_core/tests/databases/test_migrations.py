"""Alembic chains: what the files say, what the database says, and the way between."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.base.errors import BadInput, HarnessError
from harness_core.infrastructure.databases import (
    Database,
    MigrationChain,
    applied_revisions,
    chain_hash,
    chain_heads,
    upgrade,
)

pytestmark = pytest.mark.real


@pytest.fixture
def chain(chain_directory: Path) -> MigrationChain:
    """The two revisions as a chain with a version table of its own."""
    return MigrationChain(name="core", directory=chain_directory, version_table="version_core")


async def test_a_chain_without_env_is_applied(database: Database, chain: MigrationChain) -> None:
    """Revision files alone are enough; the version table is the chain's own."""
    assert () == await applied_revisions(database.url, version_table="version_core")

    await upgrade(database.url, chain)

    await database.expect_table("t001", "t002", "version_core")
    await database.expect_migration_head(chain)
    assert ("r002",) == await applied_revisions(database.url, version_table="version_core")


async def test_a_chain_with_its_own_env_runs_that(database: Database, tmp_path: Path) -> None:
    """An ``env.py`` beside ``versions/`` is the product's, and gets URL and options from us."""
    from .conftest import write_revisions

    directory = tmp_path / "product"
    write_revisions(directory / "versions", 1)
    (directory / "env.py").write_text(
        "from alembic import context\n"
        "from sqlalchemy import create_engine, text\n"
        "url = context.config.get_main_option('sqlalchemy.url')\n"
        "with create_engine(url).begin() as connection:\n"
        "    word = context.config.get_main_option('word')\n"
        "    connection.execute(text('create table proof as select :w as word'), {'w': word})\n"
        "    context.configure(connection=connection, version_table='own')\n"
        "    context.run_migrations()\n"
        "connection.engine.dispose()\n"
    )
    await upgrade(
        database.url,
        MigrationChain(name="product", directory=directory, options={"word": "50%"}),
    )

    assert [{"word": "50%"}] == await database.rows("select word from proof")
    await database.expect_table("t001", "own")


async def test_a_database_behind_its_chain_is_seen(
    database: Database, chain: MigrationChain
) -> None:
    """A head that is not applied fails, with both revisions in the message."""
    await upgrade(database.url, chain, revision="r001")
    with pytest.raises(
        AssertionError, match=r"head.* r002 of 'core' in 'version_core', found r001"
    ):
        await database.expect_migration_head(chain)


async def test_a_stamp_beside_the_head_is_seen(database: Database, chain: MigrationChain) -> None:
    """A version table that says more than the files fails."""
    await upgrade(database.url, chain)
    await database.execute("insert into version_core values ('stranger')")
    with pytest.raises(AssertionError, match="found r002, stranger"):
        await database.expect_migration_head(chain)


async def test_a_missing_version_table_is_seen(database: Database, chain: MigrationChain) -> None:
    """A database that was never migrated differs from one that is behind."""
    with pytest.raises(AssertionError, match="expected a table 'version_core', found no tables"):
        await database.expect_migration_head(chain)


async def test_a_failing_revision_names_chain_and_reason(
    database: Database, chain: MigrationChain
) -> None:
    """The server's words are in the error, and nothing of the chain stays behind."""
    await database.execute("create table t002 (i int)")
    with pytest.raises(HarnessError) as caught:
        await upgrade(database.url, chain)

    assert "migrate core to heads (r002)" == caught.value.action
    assert 'relation "t002" already exists' in caught.value.observed
    assert () == await applied_revisions(database.url, version_table="version_core")


def test_heads_come_from_the_files(chain: MigrationChain) -> None:
    """No database is needed; a second head is listed too."""
    assert ("r002",) == chain_heads(chain)

    branch = (chain.directory / "r002.py").read_text().replace("'r002'", "'b002'", 1)
    (chain.directory / "b002.py").write_text(branch)

    assert ("b002", "r002") == chain_heads(chain)


@pytest.mark.parametrize("broken", ["missing", "unlinked", "syntax"])
def test_an_unusable_chain_is_one_clear_error(chain: MigrationChain, broken: str) -> None:
    """A missing directory, a revision that follows nothing, a file that is no Python."""
    if broken == "missing":
        chain = MigrationChain(name="core", directory=chain.directory / "nowhere")
    elif broken == "unlinked":
        (chain.directory / "r001.py").unlink()
    else:
        (chain.directory / "r002.py").write_text("def (")
    with pytest.raises(BadInput) as caught:
        chain_heads(chain)

    assert caught.value.where in {"core", str(chain.directory / "r002.py")}


def test_the_hash_follows_every_file(chain: MigrationChain) -> None:
    """Contents, names, the environment and the version table shape it; the place does not."""
    first = chain_hash(chain)
    moved = chain.directory.with_name("elsewhere")
    chain.directory.rename(moved)
    same = MigrationChain(name="core", directory=moved, version_table="version_core")
    seen = {first}

    assert first == chain_hash(same)

    (moved / "__pycache__").mkdir()
    (moved / "__pycache__/r001.pyc").write_bytes(b"x")
    assert first == chain_hash(same)

    (moved / "r002.py").write_text((moved / "r002.py").read_text() + "\n# changed\n")
    seen.add(chain_hash(same))
    (moved / "r002.py").rename(moved / "r002_renamed.py")
    seen.add(chain_hash(same))
    (moved / "data.sql").write_text("select 1")
    seen.add(chain_hash(same))
    (moved / "env.py").write_text("")
    seen.add(chain_hash(same))
    seen.add(chain_hash(MigrationChain(name="core", directory=moved)))
    seen.add(chain_hash(same, same))

    assert 7 == len(seen)
