"""Meals, and the indexes that histories are read by."""

from alembic import op

revision = "health_0002"
down_revision = "health_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE meals (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            kind text NOT NULL CHECK (kind IN ('breakfast', 'lunch', 'dinner', 'snack')),
            description text NOT NULL,
            calories integer,
            eaten_at timestamptz NOT NULL DEFAULT now(),
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute("CREATE INDEX measurements_kind ON measurements (kind, measured_at DESC)")
    op.execute("CREATE INDEX symptoms_name ON symptoms (name, occurred_at DESC)")


def downgrade() -> None:
    op.execute("DROP INDEX symptoms_name, measurements_kind")
    op.execute("DROP TABLE meals")
