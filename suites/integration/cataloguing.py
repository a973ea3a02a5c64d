"""The catalogue of parts as its callers have it, and a judge of its answers that shares nothing with it.

The judge reads the whole walk once and computes by itself, from what the parts say, which of them a
search must find.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from harness_core.front.skips import not_run
from harness_core.infrastructure.databases import Database
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.stack import CatalogueColumns, columns_of, layout_of

__all__ = [
    "FIELDS",
    "Catalogue",
    "contents",
    "decimals",
    "later_version",
    "reader_of",
    "should_find",
]

#: What every candidate must have.
FIELDS: Final = (
    *("part_id", "manufacturer", "specs", "unit_cost_usd", "quantity_tiers", "source"),
    *("catalogue_version", "fit_rationale"),
)

#: What a search may take, one that waits for a database that is away too.
_ANSWER_S: Final = 30.0

#: More pages than any walk here has.
_PAGES: Final = 400

#: Caps of a search, and what of a part each is about.
_CAPS: Final = {"max_unit_cost_usd": "unit_cost_usd", "max_weight_g": "weight_g"}

_COMPARED: Final[dict[str, Callable[[Decimal, Decimal], bool]]] = {
    "<=": lambda found, asked: found <= asked,
    ">=": lambda found, asked: found >= asked,
    "=": lambda found, asked: found == asked,
}


class Catalogue:
    """Searches over HTTP.

    Args:
        controller: a client with the key.
    """

    def __init__(self, controller: HttpClient) -> None:
        self._client = controller

    async def ask(self, **query: object) -> Response:
        """One search, whatever comes of it; a list is a parameter that is given several times."""
        return await self._client.get(
            f"/cots/search?{urlencode(query, doseq=True)}", seconds=patience(_ANSWER_S)
        )

    async def search(self, **query: object) -> dict[str, Any]:
        """One search that must be answered.

        Raises:
            AssertionError: it was refused.
        """
        answer = await self.ask(**query)

        assert 200 == answer.status, f"expected the search {query} answered, found {answer}"
        page: dict[str, Any] = answer.json()
        _is_one_answer(page, query)
        return page

    async def walk(self, **query: object) -> list[dict[str, Any]]:
        """Every candidate of a search, page by page.

        Raises:
            AssertionError: a page is refused, empty, of another version or of another total, or its cursor
                leads nowhere.
        """
        found: list[dict[str, Any]] = []
        seen: set[tuple[int, int]] = set()
        page = await self.search(**query)
        for _ in range(_PAGES):
            found += page["candidates"]
            seen.add((page["catalogue_version"], page["total"]))
            assert 1 == len(seen), f"the pages of {query} are of several versions or totals: {seen}"
            ends = page["next_cursor"] is None
            assert ends == (len(found) >= page["total"]), (
                f"expected a cursor after each page of {query} but the last, full or not: of "
                f"{page['total']} parts {len(found)} are found, and the next cursor is {page['next_cursor']}"
            )
            if ends:
                return found
            assert page["candidates"], f"the search {query} has an empty page before its end"
            page = await self.search(**query, cursor=page["next_cursor"])
        raise AssertionError(f"the search {query} has more than {_PAGES} pages")

    async def prices(self, part_ids: Sequence[str]) -> dict[str, Any]:
        """What parts cost by their ids."""
        answer = await self._client.get(f"/cots/prices?{urlencode({'part_id': part_ids}, True)}")  # noqa: FBT003 - urlencode has it so

        assert 200 == answer.status, f"expected the prices of {part_ids}, found {answer}"
        return answer.json()


def _is_one_answer(page: Mapping[str, Any], query: Mapping[str, Any]) -> None:
    """Candidates or why there are none; each of the answer's version, and with its fit to each constraint."""
    none = page["no_match"] is not None
    assert none == (0 == page["total"]), (
        f"expected candidates for {query}, or why there are none, and not both: {page}"
    )
    candidates = page["candidates"]
    most = query.get("limit", len(candidates))
    assert len(candidates) <= int(str(most)), (
        f"expected {most} candidates at most for {query}: {page}"
    )
    version = page["catalogue_version"]
    for part in candidates:
        assert version == part["catalogue_version"], (
            f"expected parts of version {version}, which the answer is of, found {part}"
        )
        assert part["fit_rationale"].strip(), f"expected why a part fits {query}, found {part}"
        told = {fit["constraint"]: fit["margin"] for fit in part["fit"]}
        margins = _margins(part, query)
        lacking = sorted(set(margins) - set(told))
        assert not lacking, (
            f"expected {part['part_id']} to say how it meets each of {sorted(margins)}, found {told}"
        )
        wrong = {
            name: told[name]
            for name, margin in margins.items()
            if margin is not None and told[name] is not None and decimals(told[name]) != margin
        }
        assert not wrong, (
            f"expected by how much {part['part_id']} meets its constraints, {margins}, found {wrong}"
        )


def _margins(part: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Decimal | None]:
    """Name of each constraint of a search to how far a part is inside; none where there is no distance."""
    found: dict[str, Decimal | None] = {}
    if str(query.get("q", "")).strip():
        found["q"] = None
    if "category" in query:
        found["category"] = None
    for cap, field in _CAPS.items():
        if cap in query:
            found[cap] = decimals(query[cap]) - decimals(part[field])
    for spec in query.get("spec", ()):
        sign = next(sign for sign in _COMPARED if sign in spec)
        key, asked = spec.split(sign, 1)
        value = part["specs"].get(key)
        inside = None
        if sign != "=" and value is not None and not isinstance(value, str):
            inside = (decimals(asked) - decimals(value)) * (1 if sign == "<=" else -1)
        found[spec] = inside
    return found


def should_find(
    parts: Sequence[dict[str, Any]], query: Mapping[str, Any]
) -> tuple[set[str], set[str]]:
    """The ids that a search must find, and those that it may find, by what the parts say of themselves.

    They differ where a word occurs in what is not a part's name: what words are looked for in besides
    is the product's choice.
    """
    fitting = [part for part in parts if _fits(part, query)]
    words = str(query.get("q", "")).casefold().split()
    must = {
        part["part_id"]
        for part in fitting
        if all(word in part["name"].casefold() for word in words)
    }
    may = {
        part["part_id"]
        for part in fitting
        if all(word in json.dumps(part, ensure_ascii=False).casefold() for word in words)
    }
    return must, may


def _fits(part: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    within = all(
        decimals(part[field]) <= decimals(query[cap])
        for cap, field in _CAPS.items()
        if cap in query
    )
    of_category = query.get("category", part["category"]) == part["category"]
    return within and of_category and all(_has(part, each) for each in query.get("spec", ()))


def _has(part: Mapping[str, Any], spec: str) -> bool:
    sign = next(sign for sign in ("<=", ">=", "=") if sign in spec)
    key, asked = spec.split(sign, 1)
    found = part["specs"].get(key)
    if found is None:
        return False
    if isinstance(found, str):
        return found.casefold() == asked.casefold()
    return _COMPARED[sign](decimals(found), decimals(asked))


def decimals(value: object) -> Decimal:
    """A number as it is written: of JSON, or a text."""
    return Decimal(str(value))


def reader_of(stack: Stack, subject: Subject) -> Database:
    """The stack's database, as the role by which its controller reads the catalogue.

    Raises:
        HarnessError: the controller's environment does not say which.
    """
    name = layout_of(subject).catalogue
    given = urlsplit(stack["controller"].environment.get(name, ""))
    if not given.username or not given.password:
        raise HarnessError(
            "be the role that reads the catalogue",
            observed=f"the controller's environment has no URL with a role and a password in {name}",
            next_step="Name the variable in the subject file: [stack] catalogue",
        )
    real = urlsplit(stack.access.database_url)
    who = f"{quote(given.username, safe='')}:{quote(given.password, safe='')}"
    return Database(f"postgresql://{who}@{real.hostname}:{real.port}{real.path}")


@asynccontextmanager
async def later_version(
    stack: Stack,
    subject: Subject,
    *,
    without: Collection[str],
    specs: Mapping[str, Mapping[str, object]] | None = None,
) -> AsyncIterator[int]:
    """The next version of the catalogue is published for as long as the block lasts; its number.

    It has every part of the one before but some, and some with other specifications. Its rows go where those of the one before lie: into each
    table that the role which reads can read and that has a version; those without a part's id come first.

    Args:
        stack: whose catalogue it is.
        subject: says who reads it.
        without: ids of parts that have left.
        specs: id of a part to the specifications that are other ones.
    """
    columns = columns_of(subject)
    async with reader_of(stack, subject) as reader:
        tables = await reader.rows(
            "select table_name as name, bool_or(column_name = %s) as parts"
            " from information_schema.columns where table_schema = 'public'"
            " group by 1 having bool_or(column_name = %s) order by 2, 1",
            (columns.part_id, columns.version),
        )
    if not any(table["parts"] for table in tables):
        lacks = f"no table of its catalogue has a {columns.part_id} and a {columns.version}"
        not_run("subject", f"{lacks}: [catalogue] in {subject.path.name} names its columns")
    names = {table["name"]: columns.part_id if table["parts"] else "" for table in tables}
    *_, last = names
    [row] = await stack.rows(f'select max({columns.version}) as version from "{last}"')
    version = row["version"] + 1
    others = {
        name: await _respecified(stack, columns, name, version - 1, specs or {})
        for name, column in names.items()
        if column
    }
    if specs and not any(rows for rows in others.values()):
        not_run("subject", f"no row of its catalogue holds the specifications {dict(specs)}")
    # No API publishes: migrations do. One statement: who reads meanwhile sees all of it or nothing.
    steps = [
        f'i{number} as (insert into "{name}" select (jsonb_populate_record(t, \'{{"{columns.version}": {version}}}\'::jsonb'
        + (f" || coalesce(%({name})s::jsonb -> {column}, '{{}}')" if column else "")
        + ")).*"
        f' from "{name}" t where {columns.version} = {version - 1}'
        + (f" and not {column} = any(%(without)s))" if column else ")")
        for number, (name, column) in enumerate(names.items())
    ]
    values = {name: json.dumps(rows) for name, rows in others.items()}
    await stack.rows(f"with {', '.join(steps)} select 1", {"without": list(without), **values})
    try:
        yield version
    finally:
        for name in reversed(names):
            await stack.rows(  # lint: allow writes-rows: no API takes a version back
                f'delete from "{name}" where {columns.version} = {version}'
            )


async def _respecified(
    stack: Stack,
    columns: CatalogueColumns,
    table: str,
    version: int,
    specs: Mapping[str, Mapping[str, object]],
) -> dict[str, dict[str, Any]]:
    """Of each part whose row holds such specifications, the columns as they are with the other ones."""
    changed = {}
    for part_id, values in specs.items():
        rows = await stack.rows(
            f'select to_jsonb(t) as row from "{table}" t'
            f" where {columns.version} = %(version)s and {columns.part_id} = %(part_id)s",
            {"version": version, "part_id": part_id},
        )
        for row in rows:
            others = {
                key: {
                    name: type(found)(values[name]) if name in values else found
                    for name, found in column.items()
                }
                for key, column in row["row"].items()
                if isinstance(column, dict) and set(values) <= set(column)
            }
            if others:
                changed[part_id] = others
    return changed


async def contents(stack: Stack) -> dict[str, Any]:
    """All of the database that no work changes: rows of each such table, tables, rights, objects.

    A table holds work, which goes on whatever a test does, when it has a column that names an episode, a
    session, a flow, a batch or a job.
    """
    tables = await stack.rows(
        "select table_name as name from information_schema.tables as t where table_schema = 'public'"
        " and table_type = 'BASE TABLE' and not exists (select from information_schema.columns as c"
        " where c.table_schema = 'public' and c.table_name = t.table_name"
        " and c.column_name in ('episode_id', 'session_id', 'flow_id', 'batch_id', 'job_id')) order by 1"
    )
    found: dict[str, Any] = {}
    for table in tables:
        [row] = await stack.rows(
            "select count(*) as rows, md5(string_agg(t::text, chr(10) order by t::text)) as content"
            f' from "{table["name"]}" as t'
        )
        found[f"table {table['name']}"] = row
    found["columns"] = await stack.rows(
        "select table_name, column_name, data_type from information_schema.columns"
        " where table_schema = 'public' order by 1, 2"
    )
    found["rights"] = await stack.rows(
        "select relname, relacl::text as acl from pg_class"
        " where relnamespace = 'public'::regnamespace order by 1"
    )
    found["objects"] = await stack.rows("select count(*) as n from pg_largeobject_metadata")
    return found
