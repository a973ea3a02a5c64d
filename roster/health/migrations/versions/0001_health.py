"""Measurements, symptoms, medications with doses, meals."""

from alembic import op
from butlers import faults

revision = "health_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE measurements (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            kind text NOT NULL,
            value numeric NOT NULL,
            value2 numeric,
            unit text,
            notes text,
            measured_at timestamptz NOT NULL DEFAULT now(),
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    severity = "severity integer NOT NULL CHECK (severity BETWEEN 1 AND 10),"
    if faults.on("migration-missing-column"):
        severity = ""
    op.execute(
        f"""
        CREATE TABLE symptoms (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            name text NOT NULL,
            {severity}
            notes text,
            occurred_at timestamptz NOT NULL DEFAULT now(),
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE medications (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            name text NOT NULL UNIQUE,
            dosage text,
            frequency text,
            active boolean NOT NULL DEFAULT true,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE medication_doses (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            medication_id uuid NOT NULL REFERENCES medications (id) ON DELETE CASCADE,
            dosage text,
            notes text,
            taken_at timestamptz NOT NULL DEFAULT now(),
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE medication_doses, medications, symptoms, measurements")
