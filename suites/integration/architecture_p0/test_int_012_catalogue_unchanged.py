"""INT-012: whatever is searched for in the catalogue, by whomever, nothing is changed by it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pytest
import trio

from harness_core.base.errors import ChildExited
from harness_core.doubles.http import HttpClient, Response, Unanswered
from harness_core.doubles.turns import result, say, use
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.cataloguing import Catalogue, contents, reader_of
from suites.integration.comparing import consecutive, expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.hostile import HOSTILE, expect_nothing_told, secrets_of
from suites.integration.patience import SOON_S, eventually, patience_with_a_stack
from suites.integration.refusals import expect_refused

#: The longest request that a server must answer, if only to refuse it.
_READ_CHARS: Final = 100_000

#: What the role that reads must not be able to do, `{table}` being each table of the database.
_WRITES: Final = (
    "insert into {table} select * from {table} limit 1",
    "insert into {table} default values",
    "update {table} set {column} = {column}",
    "delete from {table}",
    "truncate {table}",
    "alter table {table} add column evil int",
    "drop table {table}",
    "comment on table {table} is 'evil'",
    "create index on {table} ({column})",
    "select 1 from {table} for update",
    "create table evil (like {table})",
    "create temporary table evil as select 1 from {table}",
    "create view evil as select 1 from {table}",
    "copy {table} to '/tmp/evil'",
    "copy {table} to program 'true'",
)
#: What may only be warned of, and done in vain: the rights and rows afterwards show it.
_IN_VAIN: Final = ("grant all on {table} to public", "analyze {table}")
#: And what it must not do to anything else.
_POWERS: Final = (
    *("create schema evil", "create sequence evil", "create function evil() returns int return 1"),
    *("create role evil", "create database evil", "drop extension plpgsql", "set role pg_monitor"),
    *(
        "select lo_create(0)",
        "select lo_from_bytea(0, 'evil')",
        "select pg_read_file('PG_VERSION')",
    ),
    *("alter system set work_mem = '1MB'", "select pg_reload_conf()", "create publication evil"),
    "alter role current_user createdb",
)


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
@pytest.mark.parametrize("kind", sorted(HOSTILE))
async def test_int_012_words_are_data(kind: str, stack: Stack, controller: HttpClient) -> None:
    """Words that mean something to databases and shells are looked for, or refused: 400 to 431.

    What is found holds each of them; no answer tells of the database or of a secret, and the
    catalogue is the same afterwards.
    """
    catalogue = Catalogue(controller)
    secrets = secrets_of(stack)
    before, sound = await contents(stack), await catalogue.search(q="servo", limit=1)
    for words in HOSTILE[kind]:
        # A request that is larger than a server reads may be cut off.
        with suppress(*[Unanswered] if len(words) > _READ_CHARS else []):
            _is_harmless(words, await catalogue.ask(q=words, limit=5), secrets)

    expect_same(before, await contents(stack), what=f"the database before and after {kind}")
    again = await catalogue.search(q="servo", limit=1)
    expect_same(sound, again, what=f"an ordinary search before and after {kind}")


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
async def test_int_012_bytes_that_are_no_text_are_harmless(
    stack: Stack, controller: HttpClient
) -> None:
    """A query whose bytes are no UTF-8, or no query at all, is answered or refused, and no more."""
    before, secrets = await contents(stack), secrets_of(stack)
    for query in _NO_TEXT:
        answer = await controller.get(f"/cots/search?{query}")
        assert answer.status == 200 or 400 <= answer.status < 432, (
            f"expected the query {query!r} to be answered or refused, found {answer}"
        )
        leaked = [name for name, value in secrets.items() if value in answer.text]
        assert not leaked, f"the answer to {query!r} holds what the controller keeps: {leaked}"
    expect_refused(await controller.get("/cots/search?q=%00"), 400, 422)
    expect_same(before, await contents(stack), what="the database before and after such bytes")


#: Queries of a URL: no UTF-8, halves of characters, overlong forms, bare signs.
_NO_TEXT: Final = (
    *("q=%ff", "q=%c3%28", "q=%ed%a0%80", "q=%c0%80", "q=%f4%90%80%80", "q=iso%80", "q=%u0041"),
    *("q=%", "q=%2", "q=%zz", "q", "=", "&&&", "q=1&q=2", "q[]=iso", "q[$ne]=1", "spec=%ff=1"),
    *("cursor=%ff", "category=%ff", "max_unit_cost_usd=%d9%a1", "limit=%ef%bc%95", "%ff=1"),
)


def _is_harmless(words: str, answer: Response, secrets: Mapping[str, str]) -> None:
    """Answered as a search or refused as malformed, and telling nothing."""
    shown = repr(words[:80])
    assert answer.status == 200 or 400 <= answer.status < 432, (
        f"expected the words {shown} to be looked for or refused, found {answer}"
    )
    expect_nothing_told(words, answer.text, secrets)
    if answer.status != 200:
        return
    found = answer.json()
    for part in found["candidates"]:
        # Why it fits repeats what was asked for, whatever the part is.
        own = {key: value for key, value in part.items() if key not in {"fit", "fit_rationale"}}
        text = json.dumps(own, ensure_ascii=False).casefold()
        lacking = [word for word in words.casefold().split() if word not in text]
        assert not lacking, f"the words {shown} found {part['part_id']}, which lacks {lacking}"
    silent = not found["candidates"] and not found["no_match"]
    assert not silent, f"the search for {shown} finds nothing and does not say why: {answer}"


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
async def test_int_012_the_role_that_reads_can_only_read(
    stack: Stack, subject: Subject, controller: HttpClient
) -> None:
    """By trying: everything that writes is refused to the role by which the catalogue is read.

    So is reading what is no part of the catalogue; and searches are made by that role.
    """
    before = await contents(stack)
    tables = await stack.rows(
        "select table_name as name, min(column_name) as field from information_schema.columns"
        " where table_schema = 'public' group by table_name order by table_name"
    )
    readable: dict[str, int] = {}
    async with reader_of(stack, subject) as reader:
        [who] = await reader.rows("select current_user as name, pg_backend_pid() as pid")
        # Whatever the role is set to can be set otherwise by whoever is that role.
        await reader.rows("set default_transaction_read_only = off")
        for table in tables:
            names = {"table": f'"{table["name"]}"', "column": f'"{table["field"]}"'}
            for statement in _WRITES:
                await _is_refused(reader, statement.format(**names))
            for statement in _IN_VAIN:
                await _is_refused(reader, statement.format(**names), warned=True)
            if await _can_read(reader, names["table"]):
                [counted] = await reader.rows(f"select count(*) as n from {names['table']}")
                readable[table["name"]] = counted["n"]
        for statement in _POWERS:
            await _is_refused(reader, statement)
        await _searches_are_made_by(who, stack, Catalogue(controller))

    parts = max(readable.values(), default=0)
    assert parts >= 150, f"expected the role to read 150 parts or more, it reads {readable}"
    private = {"episodes", "events", "traces", "assets", "alembic_version"} & set(readable)
    assert not private, f"the role that reads the catalogue reads {private} as well"
    expect_same(before, await contents(stack), what="the database before and after the attempts")


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
async def test_int_012_a_role_that_may_do_more_is_not_taken(
    breakable: Episodes, subject: Subject
) -> None:
    """A role that could write is named by the migration, which fails, or can only read afterwards.

    So for one that was made a member of the tables' owner, one that may make roles, and one that was let
    write.
    """
    stack = breakable.stack
    async with reader_of(stack, subject) as reader:
        [who] = await reader.rows("select current_user as name, quote_ident(current_user) as role")
    [owner] = await stack.rows("select quote_ident(current_user) as name")
    role, tables = who["role"], await stack.rows(_CATALOGUE, (who["name"],))
    before = await contents(stack)
    for given, taken, tried in (
        (f"grant {owner['name']} to {role}", f"revoke {owner['name']} from {role}", _AS_OWNER),
        (f"alter role {role} createrole", f"alter role {role} nocreaterole", _MAKES_ROLES),
        *(
            (f"grant all on {table['name']} to {role}", "select 1", f"delete from {table['name']}")
            for table in tables[:1]
        ),
    ):
        await stack.rows(given)
        try:
            if await _migrated(stack):
                async with reader_of(stack, subject) as reader:
                    await reader.rows("set default_transaction_read_only = off")
                    await _is_refused(reader, tried.format(owner=owner["name"]))
        finally:
            await stack.rows(taken)
    assert await _migrated(stack), "expected a migration to end well with the role as it was"
    expect_same(before, await contents(stack), what="the database before and after those rights")


#: What a role can read, quoted.
_CATALOGUE: Final = (
    "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace ="
    " 'public'::regnamespace and has_table_privilege(%s, oid, 'SELECT') order by 1"
)
_AS_OWNER: Final = "set role {owner}"
_MAKES_ROLES: Final = "create role evil"


async def _migrated(stack: Stack) -> bool:
    """Run the migration again: whether it ended well."""
    try:
        await stack.restart("migrations")
    except ChildExited:
        return False
    return True


async def _is_refused(reader: Any, statement: str, *, warned: bool = False) -> None:
    refused: Exception | None = None
    try:
        await reader.rows(statement)
    # The driver's own errors are no part of what tests may import.
    except Exception as error:  # noqa: BLE001
        refused = error

    if warned and refused is None:
        return
    assert refused is not None, f"the role that reads the catalogue was let do {statement!r}"
    # An error of another kind would hide what the role may do.
    state = getattr(refused, "sqlstate", "none")
    assert state in _DENIED, f"expected {statement!r} to be denied, it failed with {refused!r}"


#: A search connects at once, if it has no connection yet.
_CONNECTS_S: Final = 6.0

#: PostgreSQL's codes for insufficient privilege, and for a column that nobody may write.
_DENIED: Final = frozenset({"42501", "428C9"})


async def _searches_are_made_by(who: Mapping[str, Any], stack: Stack, catalogue: Catalogue) -> None:
    """While searches are made, somebody else is connected as the role."""

    async def connected() -> bool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(catalogue.search)
            found = await stack.rows(
                "select pid from pg_stat_activity where datname = current_database()"
                " and usename = %s and pid <> %s",
                (who["name"], who["pid"]),
            )
        return bool(found)

    await eventually(
        connected,
        seconds=_CONNECTS_S,
        expected=f"searches to be made by {who['name']}, the role that can only read",
        seen=lambda: "no connection of it",
    )


async def _can_read(reader: Any, table: str) -> bool:
    [may] = await reader.rows("select has_table_privilege(%s, 'SELECT') as read", (table,))
    return bool(may["read"])


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
async def test_int_012_an_agents_search_is_one_event_and_one_line(episodes: Episodes) -> None:
    """What an agent's search leaves: one event, one line of the journal that names it, and no file.

    A search without a match leaves the same, one that is malformed leaves neither; so it is in every
    round, and in a second episode. Each is answered what the API answers. The model provider is a
    stand-in: the gateway does the turns.
    """
    catalogue = Catalogue(episodes.controller)
    first = await catalogue.search(category="bearing", limit=1)
    searches: list[dict[str, Any]] = [
        {"category": "bearing", "limit": 1},
        {"category": "bearing", "limit": 1, "cursor": first["next_cursor"]},
        {"q": "servo", "max_unit_cost_usd": "0.01", "limit": 1},
        {"q": "m4", "spec": ["length_mm=20"], "limit": 1},
        {"q": "' or 1=1 --", "limit": 1},
    ]
    malformed: list[dict[str, Any]] = [
        {"spec": ["colour=red"]},
        {"cursor": "AAAA"},
        {"q": "m4", "cursor": first["next_cursor"]},
    ]
    idle = await episodes.run(new_token(), say("There is nothing to find."), role="planner")
    usual = _others(await episodes.events(idle["episode_id"]))
    begun = await episodes.session(idle["session_id"]).files()
    before = await contents(episodes.stack)
    for round_ in (1, 2):
        token = new_token()
        asked = [*searches, *malformed] if round_ == 1 else [*malformed, *reversed(searches)]
        turns = [use("search_catalogue", **arguments) for arguments in asked]
        episode = await episodes.run(token, *turns, role="planner")
        sound = [arguments for arguments in asked if arguments not in malformed]
        others = _others(await episodes.events(episode["episode_id"]))
        await _left_what_it_may(episodes, episode, sound, asked)
        left = await episodes.session(episode["session_id"]).files()
        expect_same(
            begun, left, what="files of an agent that does nothing, and of one that searches"
        )
        expect_same(
            usual, others, what="events of an agent that does nothing, and of one that searches"
        )

    expect_same(before, await contents(episodes.stack), what="the catalogue before and after")


async def _left_what_it_may(
    episodes: Episodes,
    episode: Mapping[str, Any],
    sound: Sequence[dict[str, Any]],
    asked: Sequence[dict[str, Any]],
) -> None:
    """Events and lines of an episode whose agent has searched and done nothing else."""
    what = f"in episode {episode['episode_id']}"
    events = await episodes.events(episode["episode_id"])
    searched = calls(events, "cots_search")

    assert len(sound) == len(searched), (
        f"expected one event for each of {len(sound)} searches {what}, found {len(searched)}"
    )
    lines = (await episodes.get(episode["episode_id"]))["journal"]
    assert len(sound) == len(lines), (
        f"expected one line of the journal for each of {len(sound)} searches {what}: {lines}"
    )
    consecutive((line["ordinal"] for line in lines), what=f"lines of the journal {what}")
    expect_same(
        [(event["source"], event["seq"]) for event in searched],
        [(line["event_source"], line["event_seq"]) for line in lines],
        what=f"events of the searches {what}, and those that the journal names",
    )
    told = [trace for trace in episode["traces"] if trace["name"] == "search_catalogue"]
    expect_same(
        [arguments in sound for arguments in asked],
        [trace["ok"] for trace in told],
        what=f"which of the searches {what} were carried out",
    )
    catalogue = Catalogue(episodes.controller)
    answers = [trace["detail"]["result"] for trace in told if trace["ok"]]
    for arguments, answer, event, line in zip(sound, answers, searched, lines, strict=True):
        by_api = (await catalogue.ask(**arguments)).json()
        expect_same(by_api, json.loads(answer), what=f"API and tool, searching for {arguments}")
        ids = [part["part_id"] for part in by_api["candidates"]]
        recorded = (event["payload"]["part_ids"], event["payload"]["total"])
        expect_same((ids, by_api["total"]), recorded, what=f"the event of a search for {arguments}")
        for name, told in (("event", event["payload"]), ("line of the journal", line)):
            said = json.dumps(told, ensure_ascii=False)
            lacking = [text for text in _asked_for(arguments) if text not in said]
            assert not lacking, (
                f"expected what was searched for, {lacking}, in its {name}, found {said}"
            )


def _asked_for(arguments: Mapping[str, Any]) -> list[str]:
    """What a search looks for, word by word; not how much of it is shown."""
    found = [value for name, value in arguments.items() if name not in {"limit", "cursor"}]
    return [text for each in found for text in (each if isinstance(each, list) else [str(each)])]


def _others(events: Sequence[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """How many events of other kinds there are, by kind and tool."""
    return Counter(
        (event["kind"], str(event["payload"].get("tool", "")))
        for event in events
        if event["kind"] != "cots_search"
    )


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
async def test_int_012_two_agents_at_once_get_their_own_answers(episodes: Episodes) -> None:
    """Two planners search for different things at the same time, again and again.

    What each then writes is what it found; its events name no part of the other's. The model
    provider is a stand-in: the gateway does the turns.
    """
    catalogue = Catalogue(episodes.controller)
    wanted = {
        "servo": ("ROBOTIS", "TOWERPRO", "HITEC"),
        "bearing": ("SKF-608", "SKF-6000", "SKF-625"),
    }
    tokens = {category: new_token() for category in wanted}
    accepted = {}
    for category, words in wanted.items():
        turns = [use("search_catalogue", q=word, limit=3) for word in words]
        chosen = result("search_catalogue", "candidates.0.part_id")
        kept = use("fs_write", path="chosen.txt", content=chosen)
        await episodes.rehearse(tokens[category], *turns, kept)

    async def submit(category: str) -> None:
        accepted[category] = await episodes.submit(tokens[category], role="planner")

    async with trio.open_nursery() as nursery:
        for category in wanted:
            nursery.start_soon(submit, category)
    for category, words in wanted.items():
        episode = await episodes.until(accepted[category]["episode_id"], "completed")
        searched = calls(await episodes.events(episode["episode_id"]), "cots_search")
        found = [event["payload"]["part_ids"] for event in searched]
        expected = [await _first_ids(catalogue, word) for word in words]
        expect_same(expected, found, what=f"what the planner of a {category} found, in its events")
        chosen_id = (await episodes.session(episode["session_id"]).read("chosen.txt")).json()
        known = {part_id for page in expected for part_id in page}
        assert chosen_id["content"] in known, (
            f"the planner of a {category} was answered {chosen_id['content']!r}, expected one of {known}"
        )


async def _first_ids(catalogue: Catalogue, word: str) -> list[str]:
    """The ids of the first three parts that a word finds, each of which holds the word."""
    page = await catalogue.search(q=word, limit=3)
    found = [part["part_id"] for part in page["candidates"]]
    strange = [part_id for part_id in found if word not in part_id]

    assert found, f"expected parts called {word}, found {page}"
    assert not strange, f"a search for {word} is answered with {strange}"
    return found


@pytest.mark.covers("INT-012")
@pytest.mark.integration_p0
@pytest.mark.parametrize(("how", "times"), [("stop", 2), ("pause", 1)])
async def test_int_012_without_its_database_there_is_no_answer(
    breakable: Episodes, subject: Subject, how: str, times: int
) -> None:
    """While the database is away a search is refused with 503; when it is back all is as before.

    The second time as well, and for an agent's search too. The model provider is a stand-in: the
    gateway does the turns.
    """
    catalogue = Catalogue(breakable.controller)
    before = await catalogue.search(category="motor", limit=2)
    for _ in range(times):
        async with breakable.stack.outage("postgres", how):
            # It waits for as long as its stack waits for a database.
            asked = {"params": {"category": "motor", "limit": 2}}
            most_s = patience_with_a_stack(SOON_S)
            away = await breakable.controller.get("/cots/search", **asked, seconds=most_s)
        expect_refused(away, 503)

        async def back() -> bool:
            return (await catalogue.ask(category="motor", limit=2)).status == 200

        await eventually(
            back, seconds=SOON_S, expected="the catalogue to be back with its database"
        )
        after = await catalogue.search(category="motor", limit=2)
        expect_same(before, after, what="a search before and after an outage of the database")
    if "episodes" not in subject.capabilities:
        return
    episode = await breakable.run(
        new_token(), use("search_catalogue", category="motor", limit=2), role="planner"
    )
    [event] = calls(await breakable.events(episode["episode_id"]), "cots_search")
    ids = [part["part_id"] for part in before["candidates"]]
    expect_same(ids, event["payload"]["part_ids"], what="what an agent finds after the outages")
