"""Entries of journals: what was made of a result, what is next, and all observations that it rests on."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lines that were there before rest on the one event that they name."""
    op.execute(
        """
        ALTER TABLE journal
            ADD COLUMN reflection text,
            ADD COLUMN next_step text,
            ADD COLUMN observations jsonb NOT NULL DEFAULT '[]'
        """
    )
    op.execute(
        "UPDATE journal SET observations ="
        " jsonb_build_array(jsonb_build_object('source', event_source, 'seq', event_seq))"
    )


def downgrade() -> None:
    """Forget them."""
    for name in ("reflection", "next_step", "observations"):
        op.execute(f"ALTER TABLE journal DROP COLUMN {name}")
