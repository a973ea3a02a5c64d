"""The relationship butler's tools: contacts, notes, reminders, important dates."""

from calendar import monthrange
from typing import Annotated, Any
from uuid import UUID

from butlers import faults
from butlers.butler import Butler
from butlers.errors import ButlerError
from butlers.sessions import plain
from pydantic import AwareDatetime, Field

ContactName = Annotated[
    str,
    Field(
        description="the person's name as the owner says it; made a contact when unknown",
        min_length=1, max_length=200, examples=["Alice", "Bob Miller"],
    ),
]
#: A date without a year may be one that not every year has.
_LEAP_YEAR = 2000

Limit = Annotated[int, Field(description="how many rows at most", ge=1, le=200)]


def register(butler: Butler) -> None:
    """Add the tools to the butler."""
    _contacts(butler)
    _notes(butler)
    _reminders(butler)
    _dates(butler)


async def _rows(butler: Butler, query: str, *values: Any) -> list[dict[str, Any]]:
    return [plain(row) for row in await butler.pool.fetch(query, *values)]


def _known_as(name: str) -> str:
    """How a name is kept, and looked for: with single blanks, and none around it."""
    return " ".join(name.split())


async def _contact(
    butler: Butler, name: str, *, email: str | None = None, phone: str | None = None,
    relation: str | None = None,
) -> dict[str, Any]:
    """The contact of that name, made when there is none; details given replace older ones."""
    row = await butler.pool.fetchrow(
        """
        INSERT INTO contacts (name, email, phone, relation) VALUES ($1, $2, $3, $4)
        ON CONFLICT (lower(name)) DO UPDATE SET updated_at = now(),
            email = coalesce(excluded.email, contacts.email),
            phone = coalesce(excluded.phone, contacts.phone),
            relation = coalesce(excluded.relation, contacts.relation)
        RETURNING *
        """,
        _known_as(name), email, phone, relation,
    )
    return plain(row)


def _contacts(butler: Butler) -> None:
    @butler.tool
    async def contact_create(
        name: ContactName,
        email: Annotated[
            str | None, Field(description="email address", examples=["alice@example.com"])
        ] = None,
        phone: Annotated[
            str | None, Field(description="phone number", examples=["+1 555 0100"])
        ] = None,
        relation: Annotated[
            str | None,
            Field(description="who the person is to the owner", examples=["sister", "colleague"]),
        ] = None,
    ) -> dict[str, Any]:
        """Add a person to the owner's contacts, or new details of a known person."""
        contact = await _contact(butler, name, email=email, phone=phone, relation=relation)
        return {"status": "saved", "contact": contact}

    @butler.tool
    async def contact_search(
        query: Annotated[
            str, Field(description="part of a name, email, phone or relation", min_length=1,
                       examples=["alice"])
        ],
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """Find people among the owner's contacts."""
        return {
            "contacts": await _rows(
                butler,
                """
                SELECT * FROM contacts
                WHERE position(lower($1) IN lower(concat_ws(' ', name, email, phone, relation))) > 0
                ORDER BY name LIMIT $2
                """,
                _known_as(query), limit,
            )
        }


def _notes(butler: Butler) -> None:
    @butler.tool
    async def note_create(
        contact_name: ContactName,
        body: Annotated[
            str, Field(description="the fact to keep, one sentence", min_length=1,
                       max_length=4000, examples=["is allergic to peanuts"])
        ],
    ) -> dict[str, Any]:
        """Keep a fact about a person, such as a preference, an allergy or news."""
        contact = await _contact(butler, contact_name)
        row = await butler.pool.fetchrow(
            "INSERT INTO notes (contact_id, body) VALUES ($1, $2) RETURNING *",
            UUID(contact["id"]), body,
        )
        return {"status": "saved", "contact": contact["name"], "note": plain(row)}

    @butler.tool
    async def note_search(
        contact_name: Annotated[str | None, Field(description="only notes on this person")] = None,
        query: Annotated[str | None, Field(description="words in the note")] = None,
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """Find notes about people, newest first."""
        return {
            "notes": await _rows(
                butler,
                """
                SELECT n.*, c.name AS contact FROM notes n JOIN contacts c ON c.id = n.contact_id
                WHERE ($1::text IS NULL OR lower(c.name) = lower($1))
                  AND ($2::text IS NULL OR position(lower($2) IN lower(n.body)) > 0)
                ORDER BY n.created_at DESC LIMIT $3
                """,
                None if contact_name is None else _known_as(contact_name), query, limit,
            )
        }


def _reminders(butler: Butler) -> None:
    @butler.tool
    async def reminder_create(
        message: Annotated[
            str, Field(description="what to be reminded of", min_length=1, max_length=2000,
                       examples=["call Alice about the garden"])
        ],
        contact_name: Annotated[
            str | None,
            Field(description="the person it concerns, if any", max_length=200,
                  examples=["Alice"]),
        ] = None,
        due: Annotated[
            str | None,
            Field(description="when, in the owner's words", examples=["tomorrow", "next Friday"]),
        ] = None,
        due_at: Annotated[
            AwareDatetime | None,
            Field(description="the same as ISO 8601 time with zone, if it is certain",
                  examples=["2026-02-01T09:00:00Z"]),
        ] = None,
    ) -> dict[str, Any]:
        """Create a reminder for the owner, usually about a person: call, write, visit, buy."""
        contact = await _contact(butler, contact_name) if contact_name else None
        row = await butler.pool.fetchrow(
            """
            INSERT INTO reminders (contact_id, message, due, due_at) VALUES ($1, $2, $3, $4)
            RETURNING *
            """,
            UUID(contact["id"]) if contact else None, message, due, due_at,
        )
        return {"status": "saved", "reminder": plain(row)}

    @butler.tool
    async def reminder_list(
        include_done: Annotated[bool, Field(description="also what is done")] = False,
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """List the owner's reminders."""
        return {
            "reminders": await _rows(
                butler,
                """
                SELECT r.*, c.name AS contact FROM reminders r
                LEFT JOIN contacts c ON c.id = r.contact_id
                WHERE $1 OR NOT r.done ORDER BY r.due_at NULLS LAST, r.created_at LIMIT $2
                """,
                include_done, limit,
            )
        }

    @butler.tool
    async def reminder_complete(
        reminder_id: Annotated[UUID, Field(description="id of the reminder")],
    ) -> dict[str, Any]:
        """Mark a reminder as done."""
        row = await butler.pool.fetchrow(
            "UPDATE reminders SET done = true WHERE id = $1 OR $2 AND (contact_id, message) ="
            " (SELECT contact_id, message FROM reminders WHERE id = $1) RETURNING *",
            reminder_id, faults.on("reminders-of-like-words"),
        )
        if row is None:
            raise ButlerError(f"cannot complete reminder {reminder_id}: it does not exist")
        return {"status": "done", "reminder": plain(row)}


def _dates(butler: Butler) -> None:
    @butler.tool
    async def important_date_add(
        contact_name: ContactName,
        label: Annotated[
            str, Field(description="what the date is, lower case", min_length=1, max_length=100,
                       examples=["birthday", "anniversary"])
        ],
        month: Annotated[int, Field(description="month, 1 to 12", ge=1, le=12, examples=[3])],
        day: Annotated[int, Field(description="day of the month", ge=1, le=31, examples=[14])],
        year: Annotated[
            int | None, Field(description="year, if known", ge=1800, le=2200, examples=[1990])
        ] = None,
    ) -> dict[str, Any]:
        """Keep a yearly date of a person, such as a birthday or an anniversary."""
        last = monthrange(year or _LEAP_YEAR, month)[1]
        if day > last and not faults.on("date-unchecked"):
            raise ButlerError(f"cannot keep {month}-{day} of {year or 'any year'}: no such day")
        contact = await _contact(butler, contact_name)
        row = await butler.pool.fetchrow(
            """
            INSERT INTO important_dates (contact_id, label, month, day, year)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (contact_id, label) DO UPDATE SET month = excluded.month,
                day = excluded.day, year = coalesce(excluded.year, important_dates.year)
            RETURNING *
            """,
            UUID(contact["id"]), label.strip().lower(), month, day, year,
        )
        return {"status": "saved", "contact": contact["name"], "date": plain(row)}

    @butler.tool
    async def important_date_list(
        contact_name: Annotated[str | None, Field(description="only dates of this person")] = None,
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """List birthdays, anniversaries and other yearly dates."""
        return {
            "dates": await _rows(
                butler,
                """
                SELECT d.*, c.name AS contact FROM important_dates d
                JOIN contacts c ON c.id = d.contact_id
                WHERE $1::text IS NULL OR lower(c.name) = lower($1)
                ORDER BY d.month, d.day LIMIT $2
                """,
                None if contact_name is None else _known_as(contact_name), limit,
            )
        }
