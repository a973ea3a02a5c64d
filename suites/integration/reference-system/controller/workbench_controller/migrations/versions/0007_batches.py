"""Batches: which episodes were submitted together, and how many of them run at once."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE batches (
            batch_id text PRIMARY KEY,
            workflow_id text NOT NULL UNIQUE,
            concurrency integer NOT NULL CHECK (concurrency > 0),
            interrupt_requested_at timestamptz,
            created_at timestamptz NOT NULL
        )
        """
    )
    op.execute("ALTER TABLE episodes ADD batch_id text REFERENCES batches, ADD batch_place integer")
    op.execute("CREATE UNIQUE INDEX episodes_batch ON episodes (batch_id, batch_place)")


def downgrade() -> None:
    """Forget it."""
    op.execute("ALTER TABLE episodes DROP batch_id, DROP batch_place")
    op.execute("DROP TABLE batches")
