"""Flows of several roles, and what their reviewers decided."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_STATUS = "('queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted')"


def upgrade() -> None:
    """Make the tables."""
    op.execute(
        f"""
        CREATE TABLE flows (
            flow_id text PRIMARY KEY,
            purpose text NOT NULL CHECK (purpose IN ('engineering', 'benchmark')),
            workflow_id text NOT NULL UNIQUE,
            run_id text,
            status text NOT NULL CHECK (status IN {_STATUS}),
            reason text NOT NULL,
            task text NOT NULL,
            seed bigint NOT NULL,
            variant text NOT NULL,
            metadata jsonb NOT NULL,
            benchmark_id text REFERENCES flows,
            given_id text REFERENCES handovers,
            handover_id text REFERENCES handovers,
            interrupt_requested_at timestamptz,
            settled boolean NOT NULL DEFAULT false,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX flows_created_at ON flows (created_at DESC)")
    op.execute("CREATE INDEX flows_unsettled ON flows (created_at) WHERE NOT settled")
    op.execute(
        f"""
        CREATE TABLE flow_transitions (
            flow_id text NOT NULL REFERENCES flows ON DELETE CASCADE,
            ordinal integer NOT NULL,
            status text NOT NULL CHECK (status IN {_STATUS}),
            cause text NOT NULL,
            role text,
            round integer,
            episode_id text UNIQUE REFERENCES episodes,
            reason text NOT NULL,
            at timestamptz NOT NULL,
            PRIMARY KEY (flow_id, ordinal)
        )
        """
    )
    op.execute("ALTER TABLE episodes ADD flow_id text REFERENCES flows")
    op.execute(
        """
        CREATE TABLE decisions (
            decision_id text PRIMARY KEY REFERENCES handovers ON DELETE CASCADE,
            flow_id text REFERENCES flows,
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            session_id text NOT NULL,
            reviewed_id text NOT NULL REFERENCES handovers,
            decision text NOT NULL CHECK (decision IN
                ('approved', 'rejected', 'confirm_plan_refusal', 'reject_plan_refusal')),
            evidence jsonb NOT NULL,
            comments jsonb NOT NULL,
            event_seq bigint NOT NULL,
            decided_at timestamptz NOT NULL
        )
        """
    )
    op.execute("CREATE INDEX decisions_reviewed ON decisions (reviewed_id)")
    op.execute("CREATE INDEX decisions_flow ON decisions (flow_id)")
    op.execute("CREATE INDEX decisions_episode ON decisions (episode_id)")


def downgrade() -> None:
    """Forget them."""
    op.execute("DROP TABLE decisions")
    op.execute("ALTER TABLE episodes DROP flow_id")
    op.execute("DROP TABLE flow_transitions, flows")
