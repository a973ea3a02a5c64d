"""INT-013: an answer of the catalogue is complete and true, or says why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pytest

from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import result, use
from harness_core.system.subject import Subject
from suites.integration.cataloguing import (
    FIELDS,
    Catalogue,
    decimals,
    later_version,
    should_find,
)
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused

_CENT: Final = Decimal("0.01")
_MILLIGRAM: Final = Decimal("0.001")

#: The fewest parts that the catalogue must have.
_PARTS: Final = 150

#: The most candidates of a page.
_LIMIT: Final = 25


async def _all(catalogue: Catalogue) -> list[dict[str, Any]]:
    return await catalogue.walk(limit=_LIMIT)


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_every_part_is_complete(controller: HttpClient) -> None:
    """At least 150 parts: fasteners, bearings, servos and motors; each has every field of a candidate.

    What they cost by their ids is what a search says.
    """
    catalogue = Catalogue(controller)
    parts = await _all(catalogue)

    assert len(parts) >= _PARTS, f"expected {_PARTS} parts or more, found {len(parts)}"
    categories = {part["category"] for part in parts}
    lacking = {"screw", "nut", "washer", "bearing", "servo", "motor"} - categories
    assert not lacking, f"expected parts of the categories {lacking}, found {categories}"
    for part in parts:
        empty = [field for field in FIELDS if not part[field]]
        assert not empty, f"expected every field of a candidate filled, {empty} are empty in {part}"
        cost, tiers = decimals(part["unit_cost_usd"]), part["quantity_tiers"]
        costs = [decimals(tier["unit_cost_usd"]) for tier in tiers]
        amounts = [cost, *costs]
        exact = all(each == each.quantize(_CENT) and each > 0 for each in amounts)
        assert exact, f"expected amounts above zero with two places, found {amounts} in {part}"
        quantities = [tier["from_quantity"] for tier in tiers]
        rising = quantities == sorted(set(quantities))
        assert rising, f"expected tiers whose quantities rise, found {part}"
        assert quantities[0] == 1, f"expected tiers from 1 on, found {part}"
        cheaper = costs == sorted(costs, reverse=True) and costs[0] == cost
        assert cheaper, f"expected more of them to cost no more each, beginning with {cost}: {part}"
        assert part["weight_g"] > 0, f"expected a part that weighs something, found {part}"
    moving = [part for part in parts if part["category"] in {"servo", "motor"}]
    weak = [part["part_id"] for part in moving if not part["specs"].get("torque_n_m", 0) > 0]
    assert not weak, f"expected servos and motors with a torque_n_m, found none of {weak}"
    some = [part["part_id"] for part in parts[:: len(parts) // 20]]
    prices = await catalogue.prices([*some, "NO-SUCH-PART"])
    expect_same(
        {part["part_id"]: part["unit_cost_usd"] for part in parts if part["part_id"] in some},
        {price["part_id"]: price["unit_cost_usd"] for price in prices["prices"]},
        what="prices by search and by id",
    )
    assert prices["unknown"] == ["NO-SUCH-PART"], f"an unknown part has a price: {prices}"


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_a_walk_has_every_part_once(controller: HttpClient) -> None:
    """Pages of every size add up to the same parts, each once, cheapest first, then by id."""
    catalogue = Catalogue(controller)
    walks: list[tuple[dict[str, Any], tuple[int, ...]]] = [
        ({}, (7, 24, _LIMIT)),
        ({"category": "washer"}, (1, 2, 3)),
        ({"q": "iso"}, (4, 11)),
        ({"max_unit_cost_usd": "0.05"}, (1, 9)),
    ]
    for query, sizes in walks:
        told = (await catalogue.search(**query))["total"]
        for limit in sizes:
            found = await catalogue.walk(**query, limit=limit)
            order = [(decimals(part["unit_cost_usd"]), part["part_id"]) for part in found]
            what = f"{query} by pages of {limit}"
            once = len({part_id for _, part_id in order}) == len(order) == told
            assert once, f"expected every part once, {told} in all, of {what}, found {len(order)}"
            assert order == sorted(order), f"expected parts by cost, then by id, of {what}: {order}"


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_a_walk_goes_on_after_a_restart(breakable: Episodes) -> None:
    """Cursors are good after the controller was away, twice; what was seen does not come again."""
    catalogue = Catalogue(breakable.controller)
    query = {"category": "screw", "limit": 9}
    whole = [part["part_id"] for part in await catalogue.walk(**query)]
    page = await catalogue.search(**query)
    found = [part["part_id"] for part in page["candidates"]]
    for how in ("kill", "stop"):
        async with breakable.stack.outage("controller", how):
            pass
        page = await catalogue.search(**query, cursor=page["next_cursor"])
        found += [part["part_id"] for part in page["candidates"]]
    expect_same(whole[: len(found)], found, what="a walk with two restarts of the controller")


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_a_walk_is_of_one_version(breakable: Episodes, subject: Subject) -> None:
    """A version that is published within a walk changes nothing of that walk; a new one is of the new version.

    So are prices by id; parts that have left are in none of it, and a cursor of the new version is good
    beside one of the old.
    """
    catalogue = Catalogue(breakable.controller)
    query = {"category": "screw", "limit": 9}
    old = await catalogue.walk(**query)
    gone = [old[at]["part_id"] for at in (0, 8, 10, len(old) - 1)]
    page = await catalogue.search(**query)
    walked = page["candidates"]
    async with later_version(breakable.stack, subject, without=gone) as version:
        new = await catalogue.walk(**query)
        while page["next_cursor"] is not None:
            page = await catalogue.search(**query, cursor=page["next_cursor"])
            told = (page["catalogue_version"], page["total"])
            expect_same(
                (version - 1, len(old)), told, what="version and total of a walk that went on"
            )
            walked += page["candidates"]
        by_id = await catalogue.prices([gone[0], old[1]["part_id"]])

    expect_same(old, walked, what="parts of a walk within which a version was published")
    stayed = [each["part_id"] for each in old if each["part_id"] not in gone]
    expect_same(stayed, [each["part_id"] for each in new], what="parts of the new version")
    versions = {each["catalogue_version"] for each in new}
    expect_same({version}, versions, what="the version that parts of a new walk tell")
    expect_same(version, by_id["catalogue_version"], what="the version of prices by id")
    expect_same(gone[:1], by_id["unknown"], what="ids without a price once their part has left")


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_a_search_finds_what_meets_its_constraints(controller: HttpClient) -> None:
    """Neither more nor less, by the parts' own data: at a cap, a cent above it, a cent below it."""
    catalogue = Catalogue(controller)
    parts = await _all(catalogue)
    partial = _partial(parts)
    for query in [*_queries(parts), *partial]:
        if query in partial and (await catalogue.ask(**query)).status == 422:
            # A word that no part has may be refused.
            continue
        found = {part["part_id"] for part in await catalogue.walk(**query, limit=_LIMIT)}
        must, may = should_find(parts, query)
        lacking, excess = sorted(must - found), sorted(found - may)
        wrong = {"lacks": lacking, "has besides": excess} if lacking or excess else {}
        assert not wrong, f"expected exactly the parts that meet {query}; the walk {wrong}"


def _queries(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Around values that parts have, so that each decides about some of them."""
    found: list[dict[str, Any]] = []
    by_category: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        by_category.setdefault(part["category"], []).append(part)
    for category, members in by_category.items():
        middle = members[len(members) // 2]
        cost, weight = decimals(middle["unit_cost_usd"]), decimals(middle["weight_g"])
        found += [
            {"category": category, "max_unit_cost_usd": str(cost + step)}
            for step in (-_CENT, Decimal(0), _CENT)
        ]
        found += [
            {"category": category, "max_weight_g": str(weight + step)}
            for step in (-_MILLIGRAM, Decimal(0), _MILLIGRAM)
        ]
        for key, value in middle["specs"].items():
            if isinstance(value, str):
                found.append({"category": category, "spec": [f"{key}={value.upper()}"]})
                continue
            number = f"{decimals(value).normalize():f}"
            found += [{"category": category, "spec": [f"{key}{sign}{number}"]} for sign in _SIGNS]
    found += [
        {"q": "m4", "spec": ["length_mm>=12", "length_mm<=20"], "max_unit_cost_usd": "0.07"},
        {"q": "M4 HEAD", "category": "screw"},
        {"spec": ["torque_n_m>=1.5"], "max_unit_cost_usd": "50.00"},
        {"spec": ["bore_mm=8", "outer_diameter_mm<=22"], "max_weight_g": "12"},
        {"spec": ["bore_mm=8"], "category": "bearing", "q": "608"},
        # A constraint of nothing is a constraint.
        *({cap: "0"} for cap in ("max_unit_cost_usd", "max_weight_g")),
        *({"spec": [f"{key}{sign}0"]} for key in ("torque_n_m", "length_mm") for sign in _SIGNS),
    ]
    return found


def _partial(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Words that are parts of words that parts have, or longer: a specification that is a word is that word."""
    words = {
        (key, value)
        for part in parts
        for key, value in part["specs"].items()
        if isinstance(value, str)
    }
    found = {
        (key, other)
        for key, value in words
        for other in (value[:-1], value[1:], value.split()[0], f"{value}0")
        if other == other.strip() != ""
    }
    return [{"spec": [f"{key}={other}"]} for key, other in sorted(found)]


_SIGNS: Final = ("<=", ">=", "=")


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_candidates_say_by_how_much_they_fit(controller: HttpClient) -> None:
    """Each candidate has a fit for each constraint, and its margin is what the part's data say."""
    catalogue = Catalogue(controller)
    query = {
        "q": "head",
        "category": "screw",
        "max_unit_cost_usd": "0.15",
        "max_weight_g": "9.5",
        "spec": ["length_mm>=12", "length_mm<=30", "drive=hex socket"],
    }
    found = await catalogue.walk(**query, limit=_LIMIT)

    assert len(found) > _LIMIT, f"expected more than a page of screws, found {len(found)}"
    for part in found:
        length = decimals(part["specs"]["length_mm"])
        margins = {
            "max_unit_cost_usd": Decimal("0.15") - decimals(part["unit_cost_usd"]),
            "max_weight_g": Decimal("9.5") - decimals(part["weight_g"]),
            "length_mm>=12": length - 12,
            "length_mm<=30": 30 - length,
        }
        told = {
            fit["constraint"]: decimals(fit["margin"])
            for fit in part["fit"]
            if fit["margin"] is not None
        }
        expect_same(margins, told, what=f"by how much {part['part_id']} meets its constraints")
        named = {fit["constraint"] for fit in part["fit"]}
        lacking = {"q", "category", "drive=hex socket", *margins} - named
        assert not lacking, f"{part['part_id']} does not say how it meets {lacking}: {part['fit']}"
        unsaid = [fit for fit in part["fit"] if fit["says"] not in part["fit_rationale"]]
        assert not unsaid, f"the rationale of {part['part_id']} leaves out {unsaid}"


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_no_match_says_what_to_relax(episodes: Episodes, subject: Subject) -> None:
    """Without a match there is no candidate: a reason, the nearest real part, and what that part misses.

    Without those constraints the search finds it. An agent is told the same. The model provider is a
    stand-in: the gateway does the turns.
    """
    catalogue = Catalogue(episodes.controller)
    parts = {part["part_id"]: part for part in await _all(catalogue)}
    for query in _VAIN:
        answer = await catalogue.search(**query)
        none = answer["no_match"]

        assert [] == answer["candidates"], f"expected no candidate for {query}, found {answer}"
        assert none, f"a search for {query} finds nothing and does not say why: {answer}"
        assert 0 == answer["total"], f"nothing found for {query}, and a total: {answer['total']}"
        assert answer["next_cursor"] is None, (
            f"nothing found for {query}, and a next page: {answer}"
        )
        assert none["reason"].strip(), f"no match for {query} and no reason: {none}"
        nearest = parts.get(none["nearest"]["part_id"])
        assert nearest, f"the nearest part to {query} is none of the catalogue: {none['nearest']}"
        true = all(nearest[key] == value for key, value in none["nearest"].items())
        assert true, f"the nearest part is told otherwise than it is: {none['nearest']}, {nearest}"
        assert none["relax"], f"no match for {query}, and nothing to relax: {none}"
        met = [each for each in none["relax"] if should_find([nearest], _alone(query, each))[0]]
        assert not met, f"the nearest part meets what is to be relaxed: {nearest} meets {met}"
        found = {part["part_id"] for part in await catalogue.walk(**_relaxed(query, none["relax"]))}
        assert nearest["part_id"] in found, (
            f"without {none['relax']} the search {query} does not find {nearest['part_id']}"
        )
    await _misses_least(catalogue, parts)
    if "episodes" in subject.capabilities:
        await _an_agent_is_told_the_same(episodes, catalogue)


async def _an_agent_is_told_the_same(episodes: Episodes, catalogue: Catalogue) -> None:
    """By the tool: the nearest part, and the reason in the event of the search."""
    token = new_token()
    arguments = _VAIN[0]
    advice = result("search_catalogue", "no_match.nearest.part_id")
    writing = use("fs_write", path="nearest.txt", content=advice)
    for_nothing = {"category": "nut", "max_unit_cost_usd": 0}
    episode = await episodes.run(
        token,
        use("search_catalogue", **arguments),
        writing,
        use("search_catalogue", **for_nothing),
        role="planner",
    )
    written = (await episodes.session(episode["session_id"]).read("nearest.txt")).json()
    by_api = (await catalogue.search(**arguments))["no_match"]
    event, vain = calls(await episodes.events(episode["episode_id"]), "cots_search")
    expect_same([], vain["payload"]["part_ids"], what=f"parts found for {for_nothing}, by tool")
    expect_same(by_api["nearest"]["part_id"], written["content"], what="the nearest part, by tool")
    expect_same(by_api["reason"], event["payload"]["no_match"], what="the reason in the event")


async def _misses_least(catalogue: Catalogue, parts: Mapping[str, Any]) -> None:
    """Of a part that is what was asked for, and a cent too dear, and one that is cheap and another, the first."""
    bearings = [part for part in parts.values() if part["category"] == "bearing"]
    dear = min(Decimal(str(part["unit_cost_usd"])) for part in bearings)
    for words in ({"q": "bearing"}, {"category": "bearing"}):
        query = {**words, "max_unit_cost_usd": f"{dear - Decimal('0.01'):.2f}"}
        none = (await catalogue.search(**query))["no_match"]
        assert none, f"expected no bearing for less than {dear} USD, found one: {query}"
        nearest = parts[none["nearest"]["part_id"]]
        assert "bearing" == nearest["category"], (
            f"expected a bearing that is a little too dear to be nearest for {query}, found {nearest}"
        )


#: Searches that no part meets: by a cap, by a specification, by words, by two things together.
_VAIN: Final[tuple[dict[str, Any], ...]] = (
    {"category": "servo", "spec": ["torque_n_m>=11"]},
    {"category": "motor", "max_unit_cost_usd": "0.01"},
    {"q": "unobtainium"},
    {"category": "bearing", "spec": ["bore_mm=8"], "max_weight_g": "0.5"},
    {"category": "screw", "spec": ["thread=M4", "length_mm=13"]},
    {"category": "washer", "spec": ["thread=M6"], "max_unit_cost_usd": "0.01", "q": "zzz"},
    {"category": "nut", "spec": ["torque_n_m>=1"]},
    {"q": "m4", "max_unit_cost_usd": "0"},
    {"category": "bearing", "max_weight_g": "0.000"},
)


def _alone(query: dict[str, Any], relax: dict[str, Any]) -> dict[str, Any]:
    """A search by that one of its constraints which is to be relaxed."""
    name = relax["constraint"]
    if name == "q":
        return {"q": relax["asked"]}
    return {name: query[name]} if name in query else {"spec": [name]}


def _relaxed(query: dict[str, Any], relax: list[dict[str, Any]]) -> dict[str, Any]:
    """A search without the constraints that are to be relaxed."""
    named = {each["constraint"] for each in relax}
    dropped = {each["asked"] for each in relax if each["constraint"] == "q"}
    rest = {key: value for key, value in query.items() if key not in {*named, "q", "spec"}}
    words = [word for word in str(query.get("q", "")).split() if word not in dropped]
    specs = [spec for spec in query.get("spec", ()) if spec not in named]
    return {**rest, "q": " ".join(words), "spec": specs, "limit": _LIMIT}


@pytest.mark.covers("INT-013")
@pytest.mark.integration_p0
async def test_int_013_what_cannot_be_asked_is_refused(controller: HttpClient) -> None:
    """With a reason, and never left out: unknown parameters, specifications, limits, cursors."""
    catalogue = Catalogue(controller)
    for limit in (1, _LIMIT):
        page = await catalogue.search(limit=limit)
        assert limit == len(page["candidates"]), f"expected {limit} candidates, found {page}"
    cursor = page["next_cursor"]
    malformed: list[dict[str, object]] = [
        *({"limit": limit} for limit in (0, -1, _LIMIT + 1, 10**20, "ten", "1.5", "")),
        *({"category": category} for category in ("SERVO", "anvil", "", "servo ")),
        *({"max_unit_cost_usd": cost} for cost in ("-0.01", "NaN", "Infinity", "1e400", "0.001")),
        *({"max_unit_cost_usd": cost} for cost in ("five", "1,5", "", "9" * 40)),
        *({"max_weight_g": weight} for weight in ("-1", "NaN", "0.0001", "heavy", "")),
        *({"spec": [spec]} for spec in ("colour=red", "torque_n_m", "torque=1", "=", ">=5", "")),
        *(
            {"spec": [spec]}
            for spec in ("thread>=M4", "length_mm=long", "length_mm=1;2", "__x__=1")
        ),
        {"spec": ["length_mm>=1"] * 9},
        {"spec": ["thread=M4", "colour=red"]},
        *({"colour": "red"}, {"offset": 5}, {"Q": "m4"}, {"q": "x" * 201}),
        *({"cursor": text} for text in ("", "1", "AAAA", "e30", f"{cursor}x", "x" * 500, "é")),
        *({"cursor": text} for text in (cursor[:-4], cursor.swapcase(), cursor[4:])),
        *({"cursor": cursor, key: value} for key, value in (("q", "m4"), ("max_weight_g", "5"))),
        {"cursor": cursor, "category": "servo"},
        {"cursor": cursor, "spec": ["thread=M4"]},
    ]
    for query in malformed:
        expect_refused(await catalogue.ask(**query), 400, 422)
    refused = await catalogue.ask(spec=["colour=red"])
    reason = expect_refused(refused, 400, 422, says="colour")
    known = [key for key in ("thread", "torque_n_m", "bore_mm") if key not in reason]
    assert not known, f"expected the refusal to name what can be asked, {known} are not in {reason}"
    again = await catalogue.search(cursor=cursor, limit=3)
    assert 3 == len(again["candidates"]), f"the cursor is used up by what was refused: {again}"
