"""Backups: what was taken when, and where it lies."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table; one backup at a time is under way."""
    op.execute(
        """
        CREATE TABLE backups (
            backup_id text PRIMARY KEY,
            workflow_id text NOT NULL UNIQUE,
            status text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
            bucket text NOT NULL,
            prefix text NOT NULL,
            database jsonb,
            manifest jsonb,
            objects integer NOT NULL DEFAULT 0,
            missing jsonb NOT NULL DEFAULT '[]',
            size_bytes bigint NOT NULL DEFAULT 0,
            reason text,
            settled boolean NOT NULL DEFAULT false,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            ended_at timestamptz,
            expired_at timestamptz
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX backups_at_once ON backups (status) WHERE status = 'running'")
    op.execute("CREATE INDEX backups_created_at ON backups (created_at DESC)")


def downgrade() -> None:
    """Forget them; their objects stay."""
    op.execute("DROP TABLE backups")
