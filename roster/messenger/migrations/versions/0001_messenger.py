"""Delivery requests, the attempts at each, and receipts of what went out."""

from alembic import op

revision = "messenger_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE delivery_requests (
            id uuid PRIMARY KEY,
            origin_butler text NOT NULL,
            channel text NOT NULL,
            recipient text,
            message text NOT NULL,
            status text NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'delivered', 'failed')),
            error text,
            error_class text,
            idempotency_key text NOT NULL UNIQUE,
            request_id text,
            trace_id text,
            created_at timestamptz NOT NULL DEFAULT now(),
            completed_at timestamptz
        )
        """
    )
    op.execute(
        """
        CREATE TABLE delivery_attempts (
            id uuid PRIMARY KEY,
            delivery_id uuid NOT NULL REFERENCES delivery_requests (id) ON DELETE CASCADE,
            attempt_number integer NOT NULL,
            started_at timestamptz NOT NULL DEFAULT now(),
            completed_at timestamptz,
            success boolean,
            error text,
            error_class text,
            duration_ms integer,
            UNIQUE (delivery_id, attempt_number)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE delivery_receipts (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            delivery_id uuid NOT NULL REFERENCES delivery_requests (id) ON DELETE CASCADE,
            attempt_id uuid NOT NULL UNIQUE REFERENCES delivery_attempts (id) ON DELETE CASCADE,
            channel text NOT NULL,
            recipient text NOT NULL,
            external_message_id text,
            answer jsonb,
            received_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute("CREATE INDEX delivery_requests_status ON delivery_requests (status, created_at)")


def downgrade() -> None:
    op.execute("DROP TABLE delivery_receipts, delivery_attempts, delivery_requests")
