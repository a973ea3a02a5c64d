"""What a reading tool is asked for is what it shows: of whom, since when, how many, in which order.

Called over MCP, without a model. A roster that lacks a tool, or an argument of it, skips its rows by
name.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from harness_core.assertions import fill
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.conversation import open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import parts_of
from suites.e2e.observe.sentences import expect_moment, expect_same

pytestmark = [
    pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE"),
    pytest.mark.capability("domain"),
]

#: Texts of this form, in what is written, are a moment before now.
_DAYS_AGO: Final = "days ago"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Some calls that write, and what a call that reads shows of them.

    Attributes:
        butler: whose tools they are.
        writes: tools and their arguments, in turn; a time is said as ``"3 days ago"``.
        reader: the tool that reads, and its arguments.
        known: the column that tells the things apart; only those with the token in them count.
        shown: what it shows of them, in this order; ``ordered`` says whether that is promised.
        ordered: the tool promises an order.
    """

    butler: str
    writes: Sequence[tuple[str, Mapping[str, Any]]]
    reader: tuple[str, Mapping[str, Any]]
    known: str
    shown: Sequence[str]
    ordered: bool = True


def _symptom(name: str, days: float, note: str) -> tuple[str, Mapping[str, Any]]:
    return "symptom_log", {
        "name": f"{name} {{token}}",
        "severity": 3,
        "notes": f"{note} {{token}}",
        "occurred_at": f"{days} {_DAYS_AGO}",
    }


def _measured(kind: str, days: float, note: str) -> tuple[str, Mapping[str, Any]]:
    return "measurement_log", {
        "kind": kind,
        "value": 61,
        "notes": f"{note} {{token}}",
        "measured_at": f"{days} {_DAYS_AGO}",
    }


def _meal(days: float, what: str) -> tuple[str, Mapping[str, Any]]:
    return "meal_log", {"description": f"{what} {{token}}", "eaten_at": f"{days} {_DAYS_AGO}"}


#: Written in another order than that of their times.
_SYMPTOMS: Final = (
    _symptom("ache", 2, "b"),
    _symptom("ache", 9, "d"),
    _symptom("itch", 1, "x"),
    _symptom("ache", 0.1, "a"),
    _symptom("ache", 4, "c"),
)
_PULSES: Final = (
    _measured("heart_rate", 3, "b"),
    _measured("sleep", 2, "x"),
    _measured("heart_rate", 20, "c"),
    _measured("heart_rate", 1, "a"),
)
_MEALS: Final = (_meal(2, "soup"), _meal(6, "cake"), _meal(0.5, "bread"))
_NOTES: Final = tuple(
    ("note_create", {"contact_name": f"{name} {{token}}", "body": f"{body} {{token}}"})
    for name, body in (
        ("Ana", "likes Maps"),
        ("Ana", "likes tea"),
        ("Anabel", "likes maps too"),
        ("Ana", "has a map of Ulm"),
    )
)
_THINGS: Final = tuple(
    (
        "entity_create",
        {"collection": f"{shelf} {{token}}", "name": f"{name} {{token}}", "data": data},
    )
    for shelf, name, data in (
        ("shelf", "atlas", {"about": "50% Sea"}),
        ("shelf", "novel", {"about": "sea_side"}),
        ("shelf 2", "globe", {"about": "sea"}),
        ("shelf", "lexicon", {"about": "land"}),
    )
)
_DATES: Final = tuple(
    (
        "important_date_add",
        {
            "contact_name": f"{name} {{token}}",
            "label": f"{label} {{token}}",
            "month": month,
            "day": day,
        },
    )
    for name, label, month, day in (
        ("Bo", "birthday", 11, 2),
        ("Bo", "wedding", 2, 29),
        ("Bob", "birthday", 1, 1),
        ("Bo", "name day", 11, 1),
    )
)

_PEOPLE: Final = (
    ("contact_create", {"name": "Cy {token}", "email": "cy@{token}.example"}),
    ("contact_create", {"name": "Dee {token}", "phone": "+49 30 {token}"}),
    ("contact_create", {"name": "Eve {token}", "relation": "cy-clist {token}"}),
)

READS: Final[Mapping[str, Read]] = {
    "symptoms-of-a-name": Read(
        butler="health",
        writes=_SYMPTOMS,
        reader=("symptom_search", {"name": "ACHE {token}"}),
        known="notes",
        shown="abcd",
    ),
    "symptoms-of-some-days": Read(
        butler="health",
        writes=_SYMPTOMS,
        reader=("symptom_search", {"name": "{token}", "days": 3}),
        known="notes",
        shown="axb",
    ),
    "symptoms-at-most": Read(
        butler="health",
        writes=_SYMPTOMS,
        reader=("symptom_search", {"name": "{token}", "limit": 3}),
        known="notes",
        shown="axb",
    ),
    "symptoms-with-a-sign": Read(
        butler="health",
        writes=(_symptom("50%", 1, "a"), _symptom("500", 2, "x"), _symptom("50", 3, "x")),
        reader=("symptom_search", {"name": "50% {token}"}),
        known="notes",
        shown="a",
    ),
    "measurements-at-most": Read(
        butler="health",
        writes=[_measured("oxygen_saturation", days, note) for days, note in ((-1, "a"), (2, "b"))],
        reader=("measurement_history", {"kind": "oxygen_saturation", "limit": 1}),
        known="notes",
        shown="a",
    ),
    "measurements-of-a-kind": Read(
        butler="health",
        writes=_PULSES,
        reader=("measurement_history", {"kind": "heart_rate", "limit": 200}),
        known="notes",
        shown="abc",
    ),
    "measurements-of-some-days": Read(
        butler="health",
        writes=_PULSES,
        reader=("measurement_history", {"kind": "heart_rate", "days": 4, "limit": 200}),
        known="notes",
        shown="ab",
    ),
    "meals-of-some-days": Read(
        butler="health",
        writes=_MEALS,
        reader=("meal_history", {"days": 3, "limit": 200}),
        known="description",
        shown=("bread", "soup"),
    ),
    "notes-on-a-person": Read(
        butler="relationship",
        writes=_NOTES,
        reader=("note_search", {"contact_name": "Ana {token}"}),
        known="body",
        shown=("has a map of Ulm", "likes tea", "likes Maps"),
    ),
    "notes-with-a-word": Read(
        butler="relationship",
        writes=_NOTES,
        reader=("note_search", {"contact_name": "Ana {token}", "query": "map"}),
        known="body",
        shown=("has a map of Ulm", "likes Maps"),
    ),
    "notes-with-a-sign": Read(
        butler="relationship",
        writes=_NOTES,
        reader=("note_search", {"contact_name": "Ana {token}", "query": "m_p"}),
        known="body",
        shown=(),
    ),
    "notes-at-most": Read(
        butler="relationship",
        writes=_NOTES,
        reader=("note_search", {"query": "{token}", "limit": 1}),
        known="body",
        shown=("has a map of Ulm",),
    ),
    "dates-of-a-person": Read(
        butler="relationship",
        writes=_DATES,
        reader=("important_date_list", {"contact_name": "Bo {token}"}),
        known="label",
        shown=("wedding", "name day", "birthday"),
        ordered=False,
    ),
    "people-by-a-part": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "@{token}.EXAMPLE"}),
        known="name",
        shown=("Cy",),
    ),
    "people-by-a-number": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "49 30 {token}"}),
        known="name",
        shown=("Dee",),
    ),
    "people-by-what-they-are": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "CY-clist {token}"}),
        known="name",
        shown=("Eve",),
    ),
    "people-by-their-name": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "e {token}"}),
        known="name",
        shown=("Dee", "Eve"),
        ordered=False,
    ),
    "people-by-a-sign": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "_ {token}"}),
        known="name",
        shown=(),
    ),
    "people-at-most": Read(
        butler="relationship",
        writes=_PEOPLE,
        reader=("contact_search", {"query": "cy {token}", "limit": 1}),
        known="name",
        shown=("Cy",),
    ),
    "things-of-a-shelf": Read(
        butler="general",
        writes=_THINGS,
        reader=("entity_search", {"collection": "shelf {token}"}),
        known="name",
        shown=("atlas", "lexicon", "novel"),
        ordered=False,
    ),
    "things-with-a-word": Read(
        butler="general",
        writes=_THINGS,
        reader=("entity_search", {"collection": "shelf {token}", "query": "sea"}),
        known="name",
        shown=("atlas", "novel"),
        ordered=False,
    ),
    "things-at-most": Read(
        butler="general",
        writes=_THINGS[-1:],
        reader=("entity_search", {"collection": "shelf {token}", "limit": 1}),
        known="name",
        shown=("lexicon",),
    ),
    "things-with-a-sign": Read(
        butler="general",
        writes=_THINGS,
        reader=("entity_search", {"collection": "shelf {token}", "query": "%"}),
        known="name",
        shown=("atlas",),
        ordered=False,
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_reading_tool_shows_what_was_asked_for(
    ecosystem: Ecosystem, token: str, read: Read
) -> None:
    """Neither more nor less than what fits the question, and the newest first where that is said."""
    butler = ecosystem[read.butler]
    offered = await butler.tools()
    for tool, arguments in (*read.writes, read.reader):
        lacking = arguments.keys() - offered.get(tool, {}).get("properties", {}).keys()
        if tool not in offered or lacking:
            not_run("subject", f"{read.butler} has no tool {tool} with {', '.join(arguments)}")
    reader, question = read.reader
    async with open_conversation(butler) as client:
        for tool, arguments in read.writes:
            await client.call(tool, **_dated(fill(arguments, token)))
        answer = await client.call(reader, **fill(question, token))
    found = [
        str(part[read.known]).replace(token, "").strip()
        for part in parts_of(answer)
        if isinstance(part, Mapping) and token in str(part.get(read.known))
    ]

    expect_same(
        f"{reader} with {fill(question, token)} shows what fits",
        expected=list(read.shown) if read.ordered else sorted(read.shown),
        found=found if read.ordered else sorted(found),
    )


async def test_what_is_done_is_left_out(ecosystem: Ecosystem, token: str) -> None:
    """A reminder that is done is shown only to who asks for those, too."""
    relationship = ecosystem["relationship"]
    offered = await relationship.tools()
    if not {
        "reminder_create",
        "reminder_complete",
    } <= offered.keys() or "include_done" not in offered.get("reminder_list", {}).get(
        "properties", {}
    ):
        not_run("subject", "relationship has no list of reminders that can leave out the done")
    async with open_conversation(relationship) as client:
        for name in ("a", "b"):
            await client.call("reminder_create", message=f"{name} {token}")
        rows = await relationship.database.rows(
            "SELECT id FROM reminders WHERE message = %s", (f"a {token}",)
        )

        assert len(rows) == 1, f"reminder_create made a row, found {rows}"
        await client.call("reminder_complete", reminder_id=str(rows[0]["id"]))
        found = {}
        for done in (False, True):
            answer = await client.call("reminder_list", include_done=done, limit=200)
            found[done] = sorted(
                str(part["message"]).replace(token, "").strip()
                for part in parts_of(answer)
                if isinstance(part, Mapping) and token in str(part.get("message"))
            )

    expect_same(
        "what is done is left out, unless it is asked for",
        expected={False: ["b"], True: ["a", "b"]},
        found=found,
    )


def _dated(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments whose times are said as the product wants them."""
    now = dt.datetime.now(dt.UTC)
    return {
        key: (now - dt.timedelta(days=float(value.split()[0]))).isoformat()
        if isinstance(value, str) and value.endswith(_DAYS_AGO)
        else value
        for key, value in arguments.items()
    }


async def test_a_list_says_what_belongs_to_each(ecosystem: Ecosystem, token: str) -> None:
    """Doses of a medicine and the last one as it was taken, things of a collection; of an empty one, none."""
    health, general = ecosystem["health"], ecosystem["general"]
    for butler, tools in (
        (health, {"medication_add", "medication_log_dose", "medication_list"}),
        (general, {"collection_create", "entity_create", "collection_list"}),
    ):
        if lacking := sorted(tools - (await butler.tools()).keys()):
            not_run("subject", f"{butler.name} lacks {lacking}")
    last, *others = (_dated({"at": f"{days} {_DAYS_AGO}"})["at"] for days in (1, 9, 4))
    await health.call("medication_add", name=f"untaken {token}")
    for at in (others[0], last, others[1]):
        await health.call("medication_log_dose", name=f"taken {token}", taken_at=at)
    for number in range(2):
        await general.call("entity_create", collection=f"full {token}", name=f"{number} {token}")
    await general.call("collection_create", name=f"empty {token}")
    answers = (
        await health.call("medication_list"),
        await general.call("collection_list", limit=200),
    )
    shown = {
        part["name"].split()[0]: part
        for answer in answers
        for part in parts_of(answer)
        if isinstance(part, Mapping) and token in str(part.get("name"))
    }

    lacking = {"taken", "untaken", "full", "empty"} - shown.keys()
    assert not lacking, f"a list shows what was added, and lacks {sorted(lacking)}: {answers}"
    for key, counts in (
        ("doses", {"taken": 3, "untaken": 0}),
        ("entities", {"full": 2, "empty": 0}),
    ):
        for name, count in counts.items():
            if key in shown[name]:  # names of columns are the product's choice
                expect_same(f"{key} of {name}", expected=count, found=shown[name][key])
    if "last_taken_at" in shown["taken"]:
        found = expect_moment("the last dose", shown["taken"]["last_taken_at"])
        expect_same("the last dose", expected=dt.datetime.fromisoformat(str(last)), found=found)
        expect_same("of none", expected=None, found=shown["untaken"]["last_taken_at"])
