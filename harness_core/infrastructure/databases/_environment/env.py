"""The alembic environment for chains that come as revision files alone; alembic executes it."""  # noqa: INP001

from alembic import context
from sqlalchemy import create_engine, pool

config = context.config
engine = create_engine(config.get_main_option("sqlalchemy.url") or "", poolclass=pool.NullPool)
try:
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            version_table=config.get_main_option("version_table") or "alembic_version",
            transaction_per_migration=False,
        )
        with context.begin_transaction():
            context.run_migrations()
finally:
    engine.dispose()
