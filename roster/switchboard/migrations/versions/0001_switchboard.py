"""Registry, inbox and routing log."""

from alembic import op

revision = "switchboard_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE butler_registry (
            name text PRIMARY KEY,
            endpoint_url text NOT NULL,
            description text NOT NULL DEFAULT '',
            capabilities jsonb NOT NULL DEFAULT '[]',
            eligibility_state text NOT NULL DEFAULT 'active'
                CHECK (eligibility_state IN ('active', 'stale', 'quarantined')),
            last_seen_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE message_inbox (
            request_id uuid PRIMARY KEY,
            channel text NOT NULL,
            payload jsonb NOT NULL,
            normalized_text text NOT NULL,
            lifecycle_state text NOT NULL DEFAULT 'accepted' CHECK (
                lifecycle_state IN ('accepted', 'planned', 'parsed', 'errored', 'completed')
            ),
            decomposition jsonb,
            dispatch_outcomes jsonb,
            response_summary text,
            trace_id text NOT NULL,
            traceparent text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            event_key text NOT NULL UNIQUE,
            idempotency_key text UNIQUE
        )
        """
    )
    op.execute("CREATE INDEX message_inbox_state ON message_inbox (lifecycle_state, created_at)")
    op.execute("CREATE INDEX message_inbox_trace_id ON message_inbox (trace_id)")
    op.execute(
        """
        CREATE TABLE routing_log (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            source_butler text NOT NULL,
            target_butler text NOT NULL,
            tool_name text NOT NULL,
            success boolean NOT NULL,
            duration_ms integer NOT NULL,
            error text,
            error_class text,
            trace_id text,
            request_id uuid,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute("CREATE INDEX routing_log_request_id ON routing_log (request_id)")


def downgrade() -> None:
    op.execute("DROP TABLE routing_log, message_inbox, butler_registry")
