"""Butlers that take no messages, such as one that only keeps the others going."""

from alembic import op

revision = "switchboard_0002"
down_revision = "switchboard_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE butler_registry ADD COLUMN routable boolean NOT NULL DEFAULT true")


def downgrade() -> None:
    op.execute("ALTER TABLE butler_registry DROP COLUMN routable")
