"""The catalogue of parts that can be bought, and the journal of what agents looked for.

Every version of the catalogue stays: who walks through one, or has planned with its prices, can be
answered from it.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from workbench_controller.catalogue.partsfile import path_of, read_parts

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_VERSION = 1


def upgrade() -> None:
    """Make the tables, and store the first version."""
    op.execute(
        """
        CREATE TABLE catalogue_versions (
            version integer PRIMARY KEY CHECK (version > 0),
            published_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    op.execute(
        """
        CREATE TABLE catalogue_parts (
            version integer NOT NULL REFERENCES catalogue_versions,
            part_id text NOT NULL,
            category text NOT NULL,
            manufacturer text NOT NULL,
            name text NOT NULL,
            unit_cost_usd numeric(9, 2) NOT NULL CHECK (unit_cost_usd > 0),
            quantity_tiers jsonb NOT NULL,
            weight_g numeric(10, 3) NOT NULL CHECK (weight_g > 0),
            source text NOT NULL,
            specs jsonb NOT NULL,
            PRIMARY KEY (version, part_id)
        )
        """
    )
    op.execute(
        """
        CREATE TABLE journal (
            episode_id text NOT NULL REFERENCES episodes ON DELETE CASCADE,
            ordinal integer NOT NULL,
            job_id text NOT NULL,
            at timestamptz NOT NULL,
            intent text NOT NULL,
            result text NOT NULL,
            event_source text NOT NULL,
            event_seq bigint NOT NULL,
            PRIMARY KEY (episode_id, ordinal),
            UNIQUE (episode_id, job_id)
        )
        """
    )
    connection = op.get_bind()
    connection.execute(
        sa.text("INSERT INTO catalogue_versions (version) VALUES (:version)"), {"version": _VERSION}
    )
    connection.execute(
        sa.text(
            "INSERT INTO catalogue_parts (version, part_id, category, manufacturer, name,"
            " unit_cost_usd, quantity_tiers, weight_g, source, specs) VALUES (:version, :part_id,"
            " :category, :manufacturer, :name, :unit_cost_usd, CAST(:tiers AS jsonb), :weight_g,"
            " :source, CAST(:specs AS jsonb))"
        ),
        [
            {
                "version": _VERSION,
                "part_id": part.part_id,
                "category": part.category,
                "manufacturer": part.manufacturer,
                "name": part.name,
                "unit_cost_usd": part.unit_cost_usd,
                "tiers": json.dumps([[quantity, str(cost)] for quantity, cost in part.tiers]),
                "weight_g": part.weight_g,
                "source": part.source,
                "specs": json.dumps({key: str(value) for key, value in part.specs.items()}),
            }
            for part in read_parts(path_of(_VERSION))
        ],
    )


def downgrade() -> None:
    """Forget the catalogue; the role that read it belongs to the server, and stays."""
    op.execute("DROP TABLE journal, catalogue_parts, catalogue_versions")
