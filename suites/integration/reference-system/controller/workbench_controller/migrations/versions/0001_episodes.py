"""Episodes, what becomes of them, what they tell and what they leave."""

from alembic import op
from workbench_foundation import faults

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE episodes (
            episode_id text PRIMARY KEY,
            session_id text NOT NULL UNIQUE,
            workflow_id text NOT NULL UNIQUE,
            run_id text,
            trace_id text NOT NULL,
            status text NOT NULL CHECK (status IN
                ('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
            reason text NOT NULL,
            role text NOT NULL,
            task text NOT NULL,
            seed bigint NOT NULL,
            variant text NOT NULL,
            metadata jsonb NOT NULL,
            interrupt_requested_at timestamptz,
            drained boolean NOT NULL DEFAULT false,
            settled boolean NOT NULL DEFAULT false,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX episodes_created_at ON episodes (created_at DESC)")
    op.execute("CREATE INDEX episodes_undrained ON episodes (created_at) WHERE NOT drained")
    op.execute("CREATE INDEX episodes_unsettled ON episodes (created_at) WHERE NOT settled")
    op.execute(
        """
        CREATE TABLE episode_transitions (
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            ordinal integer NOT NULL,
            from_status text,
            to_status text NOT NULL,
            reason text NOT NULL,
            workflow_id text NOT NULL,
            run_id text,
            at timestamptz NOT NULL,
            PRIMARY KEY (episode_id, ordinal)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE events (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            session_id text NOT NULL,
            source text NOT NULL CHECK (source IN ('worker', 'controller')),
            seq bigint NOT NULL,
            kind text NOT NULL,
            episode_id text,
            trace_id text,
            at timestamptz NOT NULL,
            payload jsonb NOT NULL,
            stored_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """
    )
    unique = "" if faults.on("events-stored-twice") else "UNIQUE"
    op.execute(f"CREATE {unique} INDEX events_once ON events (session_id, source, seq)")
    op.execute("CREATE INDEX events_episode ON events (episode_id)")
    op.execute(
        """
        CREATE TABLE traces (
            id text PRIMARY KEY,
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            ordinal integer NOT NULL,
            trace_id text NOT NULL,
            kind text NOT NULL CHECK (kind IN ('model', 'tool')),
            name text NOT NULL,
            ok boolean NOT NULL,
            detail jsonb NOT NULL,
            started_at timestamptz NOT NULL,
            finished_at timestamptz NOT NULL,
            UNIQUE (episode_id, ordinal)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE assets (
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            path text NOT NULL,
            status text NOT NULL CHECK (status IN ('uploaded', 'failed')),
            bucket text NOT NULL,
            key text NOT NULL,
            etag text,
            version_id text,
            size_bytes bigint NOT NULL,
            sha256 text NOT NULL,
            attempts integer NOT NULL,
            error text,
            created_at timestamptz NOT NULL,
            PRIMARY KEY (episode_id, path)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE assets, traces, events, episode_transitions, episodes")
