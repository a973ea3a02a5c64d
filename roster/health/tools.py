"""The health butler's tools: measurements, symptoms, medications, meals."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from butlers import faults
from butlers.butler import Butler
from butlers.sessions import plain
from pydantic import AwareDatetime, Field

Notes = Annotated[
    str | None, Field(description="anything else worth keeping, in the owner's words")
]
When = Annotated[
    AwareDatetime | None,
    Field(
        description="ISO 8601 time with zone; leave out for now",
        examples=["2026-01-31T08:00:00Z"],
    ),
]
Limit = Annotated[int, Field(description="how many rows at most", ge=1, le=200)]
Days = Annotated[int, Field(description="how many days back", ge=1, le=3660)]
Medication = Annotated[
    str,
    Field(
        description="name of the medicine, lower case", min_length=1, max_length=200,
        examples=["ibuprofen", "metformin", "aspirin"],
    ),
]


def register(butler: Butler) -> None:
    """Add the tools to the butler."""
    _measurements(butler)
    _symptoms(butler)
    _medications(butler)
    _meals(butler)


def _known_as(name: str) -> str:
    """How the name of a symptom or a medicine is kept, and looked for."""
    return name.strip().lower()


async def _fetchrow(butler: Butler, query: str, *values: Any) -> dict[str, Any]:
    pool = await _elsewhere(butler) if faults.on("tool-wrong-database") else butler.pool
    # asyncpg writes a float into a numeric column digit by binary digit: 38.4 would be
    # 38.39999999999999857891452847979962825775146484375.
    exact = [Decimal(str(v)) if isinstance(v, float) else v for v in values]
    row = await pool.fetchrow(query, *exact)
    return plain(row) if row is not None else {}


async def _rows(butler: Butler, query: str, *values: Any) -> list[dict[str, Any]]:
    return [plain(row) for row in await butler.pool.fetch(query, *values)]


def _measurements(butler: Butler) -> None:
    kinds = Literal[
        "weight", "blood_pressure", "heart_rate", "temperature", "blood_sugar", "height",
        "sleep", "steps", "oxygen_saturation",
    ]

    @butler.tool
    async def measurement_log(
        kind: Annotated[
            kinds, Field(description="what was measured", examples=["weight", "heart_rate"])
        ],
        value: Annotated[
            float, Field(description="the number; systolic for blood pressure",
                         examples=[72.5, 120])
        ],
        unit: Annotated[
            str | None,
            Field(description="unit as given", examples=["kg", "mmHg", "bpm", "°C", "h"]),
        ] = None,
        value2: Annotated[
            float | None,
            Field(
                description="second number of a pair: the diastolic 80 of a blood pressure 120/80",
                examples=[80],
            ),
        ] = None,
        notes: Notes = None,
        measured_at: When = None,
    ) -> dict[str, Any]:
        """Record a measurement of the body such as weight, blood pressure, pulse, temperature."""
        row = await _fetchrow(
            butler,
            """
            INSERT INTO measurements (kind, value, value2, unit, notes, measured_at)
            VALUES ($1, $2, $3, $4, $5, coalesce($6, now())) RETURNING *
            """,
            kind, value, value2, unit, notes, measured_at,
        )
        return {"status": "logged", "measurement": row}

    @butler.tool
    async def measurement_history(
        kind: Annotated[kinds, Field(description="what was measured")],
        days: Days = 30,
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """Show past measurements of one kind, newest first."""
        return {
            "measurements": await _rows(
                butler,
                """
                SELECT * FROM measurements
                WHERE kind = $1 AND measured_at >= now() - make_interval(days => $2)
                ORDER BY measured_at DESC LIMIT $3
                """,
                kind, days, limit,
            )
        }


def _symptoms(butler: Butler) -> None:
    @butler.tool
    async def symptom_log(
        name: Annotated[
            str,
            Field(
                description="symptom, lower-case noun, e.g. headache", min_length=1,
                max_length=200, examples=["headache", "nausea", "back pain", "fever", "cough"],
            ),
        ],
        severity: Annotated[
            int, Field(description="how bad, 1 (barely) to 10 (worst)", ge=1, le=10, examples=[7])
        ],
        notes: Notes = None,
        occurred_at: When = None,
    ) -> dict[str, Any]:
        """Record a symptom the owner feels, such as a headache, with its severity."""
        if faults.on("claimed-not-done"):
            return {"status": "logged", "symptom": {"name": name.lower(), "severity": severity}}
        row = await _fetchrow(
            butler,
            """
            INSERT INTO symptoms (name, severity, notes, occurred_at)
            VALUES ($1, $2, $3, coalesce($4, now())) RETURNING *
            """,
            _known_as(name), severity, notes, occurred_at,
        )
        return {"status": "logged", "symptom": row}

    @butler.tool
    async def symptom_search(
        name: Annotated[
            str | None, Field(description="symptom or a part of it", examples=["headache"])
        ] = None,
        days: Days = 90,
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """Find past symptoms, newest first."""
        return {
            "symptoms": await _rows(
                butler,
                """
                SELECT * FROM symptoms
                WHERE ($1::text IS NULL OR position($1 IN name) > 0)
                  AND occurred_at >= now() - make_interval(days => $2)
                ORDER BY occurred_at DESC LIMIT $3
                """,
                None if name is None else _known_as(name), days, limit,
            )
        }


def _medications(butler: Butler) -> None:
    @butler.tool
    async def medication_add(
        name: Medication,
        dosage: Annotated[
            str | None, Field(description="amount of one dose", examples=["400 mg", "1 tablet"])
        ] = None,
        frequency: Annotated[
            str | None, Field(description="how often", examples=["twice a day", "as needed"])
        ] = None,
    ) -> dict[str, Any]:
        """Put a medicine on the owner's list, e.g. a new prescription, or change its dosage."""
        if faults.on("medicine-read-first"):
            known = await _fetchrow(
                butler, "SELECT * FROM medications WHERE name = $1", _known_as(name)
            )
            dosage = dosage or known.get("dosage")
            frequency = frequency or known.get("frequency")
        row = await _fetchrow(
            butler,
            """
            INSERT INTO medications (name, dosage, frequency) VALUES ($1, $2, $3)
            ON CONFLICT (name) DO UPDATE SET active = true,
                dosage = coalesce(excluded.dosage, medications.dosage),
                frequency = coalesce(excluded.frequency, medications.frequency)
            RETURNING *
            """,
            _known_as(name), dosage, frequency,
        )
        return {"status": "added", "medication": row}

    @butler.tool
    async def medication_log_dose(
        name: Medication,
        dosage: Annotated[
            str | None, Field(description="amount taken", examples=["400 mg", "1 tablet"])
        ] = None,
        notes: Notes = None,
        taken_at: When = None,
    ) -> dict[str, Any]:
        """Record a dose of a medicine that the owner took, e.g. took 400 mg of ibuprofen."""
        row = await _fetchrow(
            butler,
            """
            WITH medicine AS (
                INSERT INTO medications (name, dosage) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET name = excluded.name
                RETURNING id, name, dosage
            )
            INSERT INTO medication_doses (medication_id, dosage, notes, taken_at)
            SELECT id, coalesce($2, dosage), $3, coalesce($4, now()) FROM medicine
            WHERE NOT $5 OR $4 IS NULL OR $4 NOT IN (
                SELECT taken_at FROM medication_doses WHERE medication_id = medicine.id
            )
            RETURNING *
            """,
            _known_as(name), dosage, notes, taken_at, faults.on("doses-of-a-moment-merged"),
        )
        return {"status": "logged", "dose": row}

    @butler.tool
    async def medication_list(
        active_only: Annotated[bool, Field(description="leave out what was stopped")] = True,
    ) -> dict[str, Any]:
        """List the owner's medicines with the time of the last dose."""
        return {
            "medications": await _rows(
                butler,
                """
                SELECT m.*, max(CASE WHEN $2 THEN d.created_at ELSE d.taken_at END) AS last_taken_at,
                       CASE WHEN $2 THEN count(*) ELSE count(d.id) END AS doses
                FROM medications m LEFT JOIN medication_doses d ON d.medication_id = m.id
                WHERE m.active OR NOT $1 GROUP BY m.id ORDER BY m.name
                """,
                active_only, faults.on("last-dose-by-its-row"),
            )
        }


def _meals(butler: Butler) -> None:
    @butler.tool
    async def meal_log(
        description: Annotated[
            str,
            Field(description="what was eaten", min_length=1, max_length=2000,
                  examples=["oatmeal with blueberries"]),
        ],
        kind: Annotated[
            Literal["breakfast", "lunch", "dinner", "snack"],
            Field(description="which meal it was", examples=["lunch"]),
        ] = "snack",
        calories: Annotated[
            int | None, Field(description="kilocalories if given", ge=0, le=20000, examples=[350])
        ] = None,
        eaten_at: When = None,
    ) -> dict[str, Any]:
        """Record a meal or a snack the owner ate."""
        row = await _fetchrow(
            butler,
            """
            INSERT INTO meals (kind, description, calories, eaten_at)
            VALUES ($1, $2, $3, coalesce($4, now())) RETURNING *
            """,
            kind, description, calories, eaten_at,
        )
        return {"status": "logged", "meal": row}

    @butler.tool
    async def meal_history(days: Days = 7, limit: Limit = 50) -> dict[str, Any]:
        """Show past meals, newest first."""
        return {
            "meals": await _rows(
                butler,
                """
                SELECT * FROM meals WHERE eaten_at >= now() - make_interval(days => $1)
                ORDER BY eaten_at DESC LIMIT $2
                """,
                days, limit,
            )
        }


async def _elsewhere(butler: Butler) -> Any:
    """Only for the planted fault `tool-wrong-database`: a connection to general's database."""
    from butlers.misplaced import pool_of_general

    return await pool_of_general(butler, tables=("measurements", "symptoms", "medications",
                                                 "medication_doses", "meals"))
