"""Attempts at the steps of an episode: which process made each, and how it ended."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.execute(
        """
        CREATE TABLE attempts (
            run_id text NOT NULL,
            activity_id text NOT NULL,
            attempt integer NOT NULL,
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            activity text NOT NULL,
            job_id text,
            pid integer NOT NULL,
            life text NOT NULL,
            began_at timestamptz NOT NULL,
            ended_at timestamptz,
            termination_reason text CHECK (termination_reason IN
                ('completed', 'failed', 'cancelled', 'preempted')),
            PRIMARY KEY (run_id, activity_id, attempt)
        )
        """
    )
    op.execute("CREATE INDEX attempts_episode ON attempts (episode_id)")


def downgrade() -> None:
    """Forget them."""
    op.execute("DROP TABLE attempts")
