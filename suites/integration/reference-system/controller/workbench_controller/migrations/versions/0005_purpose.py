"""What episodes work at, and the geometry of environments that were handed over."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What there is so far was engineering."""
    for table in ("episodes", "handovers"):
        op.execute(
            f"ALTER TABLE {table} ADD purpose text NOT NULL DEFAULT 'engineering'"
            " CHECK (purpose IN ('engineering', 'benchmark'))"
        )
    op.execute("ALTER TABLE handovers ADD geometry jsonb NOT NULL DEFAULT '[]'")


def downgrade() -> None:
    """Forget it."""
    op.execute("ALTER TABLE handovers DROP geometry, DROP purpose")
    op.execute("ALTER TABLE episodes DROP purpose")
