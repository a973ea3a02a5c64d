"""Jobs: long work that the worker reports of by callbacks, and each step of it."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_STATUSES = "('queued', 'running', 'completed', 'failed')"


def upgrade() -> None:
    """Make the tables."""
    op.execute(
        f"""
        CREATE TABLE jobs (
            job_id text PRIMARY KEY,
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            operation text NOT NULL,
            arguments jsonb NOT NULL,
            status text NOT NULL CHECK (status IN {_STATUSES}),
            reason text NOT NULL,
            result jsonb,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX jobs_episode ON jobs (episode_id, created_at)")
    op.execute(
        f"""
        CREATE TABLE job_steps (
            job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
            sequence integer NOT NULL,
            status text NOT NULL CHECK (status IN {_STATUSES}),
            reason text NOT NULL,
            sha256 text,
            at timestamptz NOT NULL,
            PRIMARY KEY (job_id, sequence)
        )
        """
    )


def downgrade() -> None:
    """Forget them."""
    op.execute("DROP TABLE job_steps")
    op.execute("DROP TABLE jobs")
