"""The skills of each episode: the commit that it has them of, or why it has none."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Episodes that were there before have had no skills, and say nothing of them."""
    op.execute("ALTER TABLE episodes ADD COLUMN skills jsonb")
    op.execute("CREATE INDEX episodes_by_skills ON episodes ((skills ->> 'commit'))")


def downgrade() -> None:
    """Forget them."""
    op.execute("DROP INDEX episodes_by_skills")
    op.execute("ALTER TABLE episodes DROP COLUMN skills")
