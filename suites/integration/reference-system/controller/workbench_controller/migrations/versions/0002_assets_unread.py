"""Assets that were never read: an upload may fail before the file's size is known."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let size and digest be unknown."""
    op.execute("ALTER TABLE assets ALTER size_bytes DROP NOT NULL, ALTER sha256 DROP NOT NULL")


def downgrade() -> None:
    """Forget the assets that were never read."""
    op.execute("DELETE FROM assets WHERE size_bytes IS NULL OR sha256 IS NULL")
    op.execute("ALTER TABLE assets ALTER size_bytes SET NOT NULL, ALTER sha256 SET NOT NULL")
