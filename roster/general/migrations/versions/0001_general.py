"""Collections and the entities in them."""

from alembic import op

revision = "general_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE collections (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            name text NOT NULL UNIQUE,
            description text,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE entities (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            collection_id uuid NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
            name text NOT NULL,
            data jsonb NOT NULL DEFAULT '{}',
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX entities_name ON entities (collection_id, lower(name))")


def downgrade() -> None:
    op.execute("DROP TABLE entities, collections")
