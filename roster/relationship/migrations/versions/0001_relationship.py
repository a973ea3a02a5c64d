"""Contacts, notes, reminders, important dates."""

from alembic import op

revision = "relationship_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE contacts (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            name text NOT NULL,
            email text,
            phone text,
            relation text,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute("CREATE UNIQUE INDEX contacts_name ON contacts (lower(name))")
    op.execute(
        """
        CREATE TABLE notes (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            contact_id uuid NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
            body text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE reminders (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            contact_id uuid REFERENCES contacts (id) ON DELETE CASCADE,
            message text NOT NULL,
            due text,
            due_at timestamptz,
            done boolean NOT NULL DEFAULT false,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE important_dates (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            contact_id uuid NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
            label text NOT NULL,
            month integer NOT NULL CHECK (month BETWEEN 1 AND 12),
            day integer NOT NULL CHECK (day BETWEEN 1 AND 31),
            year integer,
            created_at timestamptz NOT NULL DEFAULT now(),
            UNIQUE (contact_id, label)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE important_dates, reminders, notes, contacts")
