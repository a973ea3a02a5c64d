"""Everything about one person, over several messages, is about one person.

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: nothing leaves the
machine, and what arrived can be read.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import ZoneInfo

import pytest

from harness_core.doubles.http import Answer, Recorded, Rule
from harness_core.doubles.turns import route, use
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import expect_journey
from suites.e2e.observe.journey import follow
from suites.e2e.observe.sentences import expect_moment
from suites.e2e.worlds.credentialed import Connected

pytestmark = [pytest.mark.main, pytest.mark.covers("E2E-PERSISTENCE")]


@pytest.mark.slow
@pytest.mark.capability("domain")
async def test_a_person_is_one_contact(ecosystem: Ecosystem, token: str) -> None:
    """A contact, a note, a reminder and a birthday in four messages leave one contact."""
    name = f"Ida {token.capitalize()}"
    birthday = {"label": "birthday", "month": 7, "day": 21, "year": 1988}
    for text, turn in (
        (
            f"Add a contact: {name}, email {token}@example.com",
            use("contact_create", name=name, email=f"{token}@example.com"),
        ),
        (
            f"Note about {name}: she collects stamps",
            use("note_create", contact_name=name, body="she collects stamps"),
        ),
        (
            f"Remind me to call {name} tomorrow",
            use("reminder_create", contact_name=name, message=f"call {name}"),
        ),
        (
            f"The birthday of {name} is on 1988-07-21",
            use("important_date_add", contact_name=name, **birthday),
        ),
    ):
        sent = await ecosystem.send(text, model=[route("relationship"), turn])
        expect_journey(await follow(ecosystem, sent), ["relationship"])
    database = ecosystem["relationship"].database
    (contact,) = await database.rows("SELECT * FROM contacts WHERE name ILIKE %s", (f"%{token}%",))

    assert (name, f"{token}@example.com") == (contact["name"], contact["email"]), (
        f"the contact is who was named; found {contact}"
    )
    for table in ("notes", "reminders", "important_dates"):
        await database.expect_count(table, where={"contact_id": contact["id"]}, count=1)
    await database.expect_row(
        "important_dates",
        where={"contact_id": contact["id"]},
        columns={"year": 1988, "month": 7, "day": 21},
    )


@pytest.mark.capability("domain")
async def test_two_people_are_not_mixed_up(ecosystem: Ecosystem, token: str) -> None:
    """Notes about two people in one message stand each with its own person.

    The name of one is the beginning of the other's.
    """
    first, second = f"Leo {token.capitalize()}", f"Leo {token.capitalize()}son"
    journey = await follow(
        ecosystem,
        await ecosystem.send(
            f"Note about {first}: he likes jazz. Note about {second}: she likes opera.",
            model=[
                route("relationship"),
                (
                    use("note_create", contact_name=first, body="he likes jazz"),
                    use("note_create", contact_name=second, body="she likes opera"),
                ),
            ],
        ),
    )
    expect_journey(journey, ["relationship"])
    rows = await ecosystem["relationship"].database.rows(
        "SELECT c.name, n.body FROM notes n JOIN contacts c ON c.id = n.contact_id "
        "WHERE c.name LIKE %s ORDER BY c.name",
        (f"%{token.capitalize()}%",),
    )

    assert [first, second] == [row["name"] for row in rows], (
        f"each note is about its own person\n{rows}"
    )
    assert "jazz" in rows[0]["body"], f"what is said of one stands with that one; found {rows[0]}"
    assert "opera" not in rows[0]["body"], f"and not with the other; found {rows[0]}"
    assert "opera" in rows[1]["body"], f"what is said of one stands with that one; found {rows[1]}"


@pytest.mark.covers("E2E-DELIVERY")
@pytest.mark.capability("modules")
@pytest.mark.parametrize(
    ("starts", "ends"),
    [("+00:00", "+00:00"), ("+09:00", "+09:00"), ("-03:30", "-03:30"), ("+02:00", "-04:00")],
    ids=["+00:00", "+09:00", "-03:30", "over-zones"],
)
async def test_an_appointment_reaches_the_calendar(
    connected: Connected, token: str, starts: str, ends: str
) -> None:
    """With a calendar that works, an appointment is made there, with its time and the token.

    Its time keeps the zone in which it was given: who looks into the calendar finds the hour that was
    said. A journey begins in one zone and ends in another.
    """
    mark = connected.calendar.mark()
    prompt = f'Create the calendar event "concert with Alice {token}" on 2031-05-17 at 19:30'
    await connected.butlers.rehearse(
        prompt,
        [
            use(
                "calendar_event_create",
                title=f"concert with Alice {token}",
                starts_at=f"2031-05-17T19:30:00{starts}",
                ends_at=f"2031-05-17T22:00:00{ends}",
            )
        ],
    )
    answer = await connected.butlers["relationship"].call("trigger", prompt=prompt)
    made = connected.calendar.matching("*/events", method="POST", since=mark)

    assert answer["success"] is True, f"the session succeeds\n{answer}"
    assert 1 == len(made), f"one event is made in the calendar\n{answer}"
    assert token in made[0].json()["summary"], f"it has its title; found {made[0].json()}"
    event = made[0].json()
    for side, hour, offset in (("start", "19:30", starts), ("end", "22:00", ends)):
        found = expect_moment(f"{side} of an event", event[side]["dateTime"])
        given = datetime.fromisoformat(f"2031-05-17T{hour}:00{offset}")

        assert found == given, (
            f"the {side} of an event is what was asked for, {given}; found {found}"
        )
        if zone := event[side].get("timeZone"):
            found = found.astimezone(ZoneInfo(zone))

        assert found.utcoffset() == given.utcoffset(), (
            f"a time keeps its zone: the {side} was given as {given}, and the calendar has {event[side]}"
        )
    assert f"Bearer {connected.calendar_token}" == dict(made[0].headers)["authorization"], (
        "the calendar is asked with its own token"
    )
    if connected.calendar_id:
        place = f"/calendars/{quote(connected.calendar_id, safe='')}/events"
        assert made[0].path.endswith(place), (
            f"it is made in the calendar that was chosen, {place}; found {made[0].path}"
        )


@pytest.mark.covers("E2E-DELIVERY")
@pytest.mark.capability("modules")
async def test_an_appointment_without_an_end_has_a_length(connected: Connected, token: str) -> None:
    """Where its end is not said, and need not be: it begins when it was said, and ends after that."""
    relationship = connected.butlers["relationship"]
    schema = (await relationship.tools()).get("calendar_event_create", {})
    if "ends_at" in schema.get("required", ["ends_at"]):
        not_run("subject", "an appointment needs an end")
    mark = connected.calendar.mark()
    said = "2031-12-31T23:30:00+05:45"
    await relationship.call("calendar_event_create", title=f"walk {token}", starts_at=said)
    (event,) = [
        made.json() for made in connected.calendar.matching("*/events", method="POST", since=mark)
    ]
    starts, ends = (
        expect_moment(f"{side} of an event", event[side]["dateTime"]) for side in ("start", "end")
    )

    assert starts == datetime.fromisoformat(said), (
        f"the start of an event is what was asked for, {said}; found {starts}"
    )
    assert timedelta() < ends - starts <= timedelta(days=1), (
        f"an appointment ends after its start, on the day of it: found {starts} to {ends}"
    )
    assert ends.utcoffset() == starts.utcoffset(), (
        f"both times of an appointment are of the zone that was said: found {starts} to {ends}"
    )


@pytest.mark.covers("E2E-DELIVERY")
@pytest.mark.capability("modules")
async def test_a_calendar_of_two_pages_is_shown_whole(connected: Connected, token: str) -> None:
    """What the calendar has on a second page is shown, or it is said that there is more."""
    relationship = connected.butlers["relationship"]
    if "calendar_event_list" not in await relationship.tools():
        not_run("subject", "relationship has no tool calendar_event_list")

    def page(request: Recorded) -> Answer:
        later = "pageToken" in parse_qs(urlsplit(request.target).query)
        events = [{"id": f"e{later}", "summary": f"{'later' if later else 'first'} {token}"}]
        return Answer(json={"items": events} | ({} if later else {"nextPageToken": "p2"}))

    has = Rule(path="/calendars/*/events", method="GET", answer=page)
    connected.calendar.add_rule(has)
    try:
        answer = str(await relationship.call("calendar_event_list", days=30))
    finally:
        connected.calendar.remove_rule(has)

    assert f"first {token}" in answer, f"the first page is shown, found {answer}"
    told = any(each in answer for each in (f"later {token}", "more", "nextPage"))
    assert told, f"a second page is shown, or said to be there, found {answer}"


@pytest.mark.covers("E2E-DELIVERY")
@pytest.mark.capability("modules")
@pytest.mark.parametrize("pages", [0, 1])
async def test_a_calendar_in_trouble_is_not_an_empty_one(
    connected: Connected, token: str, pages: int
) -> None:
    """When the calendar fails, at once or after its first page, that is said: nothing is left out unsaid."""
    relationship = connected.butlers["relationship"]
    if "calendar_event_list" not in await relationship.tools():
        not_run("subject", "relationship has no tool calendar_event_list")

    def fails(request: Recorded) -> Answer:
        later = "pageToken" in parse_qs(urlsplit(request.target).query)
        if pages and not later:
            first = [{"id": "e1", "summary": f"first {token}"}]
            return Answer(json={"items": first, "nextPageToken": "p2"})
        return Answer(status=503, json={"error": {"code": 503, "message": "backend error"}})

    trouble = Rule(path="/calendars/*/events", method="GET", answer=fails)
    connected.calendar.add_rule(trouble)
    try:
        answer = await relationship.try_call("calendar_event_list", {"days": 30})
    finally:
        connected.calendar.remove_rule(trouble)
    again = await relationship.try_call("calendar_event_list", {"days": 30})

    said = answer.is_error or any(
        words in answer.text.lower() for words in ("503", "error", "fail", "unavailable", "more")
    )
    assert said, (
        f"what is not shown is never left out in silence: the calendar failed after {pages} pages, "
        f"and the answer is {answer.text}"
    )
    assert answer.text.strip(), "the calendar failed, and the answer has no word"
    assert not again.is_error, f"the calendar works again, and the answer is {again.text}"


@pytest.mark.covers("E2E-DELIVERY")
@pytest.mark.capability("modules")
@pytest.mark.parametrize("days", [1, 30])
async def test_what_is_in_the_calendar_is_shown(
    connected: Connected, token: str, days: int
) -> None:
    """The calendar is asked for the days that were asked for, and what it has is shown."""
    relationship = connected.butlers["relationship"]
    if "calendar_event_list" not in await relationship.tools():
        not_run("subject", "relationship has no tool calendar_event_list")
    events = [{"id": f"e{n}", "summary": f"{n} {token}"} for n in range(3)]
    has = Rule(path="/calendars/*/events", method="GET", answer=Answer(json={"items": events}))
    connected.calendar.add_rule(has)
    mark = connected.calendar.mark()
    try:
        answer = await relationship.call("calendar_event_list", days=days)
    finally:
        connected.calendar.remove_rule(has)
    asked = connected.calendar.matching("*/events", method="GET", since=mark)

    assert 1 == len(asked), f"the calendar is asked once; found {asked}"
    lacking = [event["summary"] for event in events if event["summary"] not in str(answer)]
    assert not lacking, f"what the calendar has is shown; {lacking} is not in {answer}"
    query = parse_qs(urlsplit(asked[0].target).query)
    since, until = (
        expect_moment(f"{side} of a query", query.get(side, [None])[0])
        for side in ("timeMin", "timeMax")
    )
    assert timedelta(days=days) == until - since, (
        f"{days} days were asked for; found {since} to {until}"
    )
    assert abs(datetime.now(UTC) - since) < timedelta(minutes=10), (
        f"the coming days begin now; found {since}"
    )
