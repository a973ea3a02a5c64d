"""Hand-overs with their bytes, the lists that were issued, and what an episode starts from."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.execute(
        """
        CREATE TABLE handovers (
            handover_id text PRIMARY KEY,
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            session_id text NOT NULL,
            role text NOT NULL,
            refuses_plan boolean NOT NULL,
            event_seq bigint NOT NULL,
            accepted_at timestamptz NOT NULL,
            stored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            UNIQUE (session_id, event_seq)
        )
        """
    )
    op.execute("CREATE INDEX handovers_episode ON handovers (episode_id, event_seq)")
    op.execute(
        """
        CREATE TABLE handover_files (
            handover_id text NOT NULL REFERENCES handovers ON DELETE CASCADE,
            path text NOT NULL,
            sha256 text NOT NULL,
            content bytea NOT NULL,
            PRIMARY KEY (handover_id, path)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE todo_entries (
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            ordinal integer NOT NULL,
            id text NOT NULL,
            text text NOT NULL,
            PRIMARY KEY (episode_id, ordinal),
            UNIQUE (episode_id, id)
        )
        """
    )
    op.execute("ALTER TABLE episodes ADD handover_id text REFERENCES handovers")


def downgrade() -> None:
    """Forget them."""
    op.execute("ALTER TABLE episodes DROP handover_id")
    op.execute("DROP TABLE todo_entries, handover_files, handovers")
