"""Alembic's environment: one connection, given by :mod:`workbench_controller.migrate`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
