"""Decisions that call what they approve optimal."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Decisions that were there before say nothing of it."""
    op.execute("ALTER TABLE decisions ADD COLUMN optimal boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    """Forget it."""
    op.execute("ALTER TABLE decisions DROP COLUMN optimal")
