"""``workbench-migrate``: bring the database to the head of its migrations, then end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from workbench_controller.settings import database_url
from workbench_foundation import log
from workbench_foundation.errors import ConfigError, describe
from workbench_foundation.settings import Environment

#: A database server that boots beside us is waited for.
_WAIT_S = 30.0
_PAUSE_S = 0.1
#: "workbench" in ASCII, cut: one migrating process at a time.
_LOCK = 0x776F726B62656E63


def main() -> int:
    """Migrate; 0 when the database is at its head, 1 when it is not, 2 for a bad setting."""
    log.start("migrations")
    try:
        env = Environment()
        asyncio.run(_migrate(database_url(env), env.text("WORKBENCH_CATALOGUE_DATABASE_URL")))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    # The edge of the process: whatever stops a migration is logged, and is its exit status.
    except Exception as error:
        log.error("not_migrated", reason=describe(error))
        return 1
    return 0


async def _migrate(url: str, reader_url: str) -> None:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    deadline = asyncio.get_running_loop().time() + _WAIT_S
    while True:
        try:
            async with engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
            break
        except OSError:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_PAUSE_S)
    async with engine.connect() as connection:
        await connection.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
        async with create_async_engine(url).begin() as migrating:
            await migrating.run_sync(_upgrade)
            await migrating.run_sync(_let_read, reader_url)
    await engine.dispose()


def _upgrade(connection: object) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    log.info("migrated", head=ScriptDirectory.from_config(config).get_current_head())


def _let_read(connection: Any, reader_url: str) -> None:
    """Also where nothing was to be migrated: a copy on another server has no such role."""
    from workbench_controller.catalogue.role import make_reader

    make_reader(connection, reader_url)


if __name__ == "__main__":
    sys.exit(main())
