"""The tables every butler has."""

from alembic import op

revision = "core_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE state (
            key text PRIMARY KEY,
            value jsonb NOT NULL,
            updated_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE scheduled_tasks (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            name text NOT NULL UNIQUE,
            cron text NOT NULL,
            prompt text NOT NULL,
            source text NOT NULL CHECK (source IN ('toml', 'db')),
            enabled boolean NOT NULL DEFAULT true,
            next_run_at timestamptz,
            last_run_at timestamptz,
            last_result jsonb
        )
        """
    )
    op.execute(
        """
        CREATE TABLE sessions (
            id uuid PRIMARY KEY,
            prompt text NOT NULL,
            trigger_source text NOT NULL,
            result text,
            tool_calls jsonb NOT NULL DEFAULT '[]',
            duration_ms integer,
            trace_id text,
            cost jsonb,
            started_at timestamptz NOT NULL DEFAULT now(),
            completed_at timestamptz,
            success boolean,
            error text,
            model text,
            input_tokens integer,
            output_tokens integer,
            request_id text
        )
        """
    )
    op.execute("CREATE INDEX sessions_started_at ON sessions (started_at)")
    op.execute("CREATE INDEX sessions_trace_id ON sessions (trace_id)")
    op.execute("CREATE INDEX sessions_request_id ON sessions (request_id)")


def downgrade() -> None:
    op.execute("DROP TABLE sessions, scheduled_tasks, state")
