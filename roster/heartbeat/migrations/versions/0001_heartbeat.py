"""Beats, and what each butler answered to them."""

from alembic import op

revision = "heartbeat_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE beats (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            trigger_source text NOT NULL CHECK (trigger_source IN ('clock', 'asked')),
            started_at timestamptz NOT NULL DEFAULT now(),
            completed_at timestamptz,
            error text
        )
        """
    )
    op.execute(
        """
        CREATE TABLE ticks (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            beat_id uuid NOT NULL REFERENCES beats (id) ON DELETE CASCADE,
            butler text NOT NULL,
            started_at timestamptz NOT NULL DEFAULT now(),
            completed_at timestamptz,
            success boolean,
            ran jsonb,
            error text,
            error_class text,
            duration_ms integer,
            UNIQUE (beat_id, butler)
        )
        """
    )
    op.execute("CREATE INDEX ticks_butler ON ticks (butler, started_at DESC)")
    op.execute("CREATE INDEX beats_started_at ON beats (started_at)")


def downgrade() -> None:
    op.execute("DROP TABLE ticks, beats")
