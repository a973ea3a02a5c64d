"""What Langfuse has been told: of traces, of events, of whole episodes, and of feedback."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TOLD = {"episodes": "created_at", "events": "id", "traces": "started_at"}


def upgrade() -> None:
    """Nothing has been told of what was there before."""
    for table, order in _TOLD.items():
        op.execute(f"ALTER TABLE {table} ADD COLUMN langfuse_trace_id text")
        op.execute(
            f"CREATE INDEX {table}_untold ON {table} ({order}) WHERE langfuse_trace_id IS NULL"
        )
    op.execute(
        """
        ALTER TABLE traces
            ADD COLUMN feedback_score double precision,
            ADD COLUMN feedback_comment text,
            ADD COLUMN feedback_at timestamptz,
            ADD COLUMN feedback_forwarded boolean
        """
    )
    op.execute(
        "CREATE INDEX traces_unforwarded ON traces (feedback_at) WHERE NOT feedback_forwarded"
    )


def downgrade() -> None:
    """Forget it, and the feedback."""
    for name in ("score", "comment", "at", "forwarded"):
        op.execute(f"ALTER TABLE traces DROP COLUMN feedback_{name}")
    for table in _TOLD:
        op.execute(f"ALTER TABLE {table} DROP COLUMN langfuse_trace_id")
