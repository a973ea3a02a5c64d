"""Every name that a message was delivered by, so that it is known again by each of them."""

from alembic import op

revision = "switchboard_0003"
down_revision = "switchboard_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE message_names (
            kind text NOT NULL CHECK (kind IN ('event', 'key')),
            name text NOT NULL,
            request_id uuid NOT NULL
                REFERENCES message_inbox DEFERRABLE INITIALLY DEFERRED,
            PRIMARY KEY (kind, name)
        )
        """
    )
    op.execute("CREATE INDEX message_names_request_id ON message_names (request_id)")
    op.execute(
        """
        INSERT INTO message_names (kind, name, request_id)
        SELECT 'event', event_key, request_id FROM message_inbox
        UNION ALL
        SELECT 'key', idempotency_key, request_id FROM message_inbox
        WHERE idempotency_key IS NOT NULL
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE message_names")
