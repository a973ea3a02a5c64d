"""What an asset is, and of which media type."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let each asset say so; of those that are there it is not known."""
    op.execute("ALTER TABLE assets ADD kind text NOT NULL DEFAULT 'own', ADD media_type text")


def downgrade() -> None:
    """Forget it."""
    op.execute("ALTER TABLE assets DROP kind, DROP media_type")
