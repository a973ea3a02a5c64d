"""The catalogue as a library: its file, what a search asks of a part, and where a walk goes on."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from workbench_contract.catalogue import CANDIDATES, CatalogueAnswer, CatalogueQuery
from workbench_controller.catalogue.constraints import BadConstraint, constraints_of
from workbench_controller.catalogue.cursor import BadCursor, read_cursor
from workbench_controller.catalogue.part import Part
from workbench_controller.catalogue.partsfile import path_of, read_parts
from workbench_controller.catalogue.reader import Catalogue, NoSuchVersion
from workbench_controller.catalogue.search import prices_of, search

PARTS = read_parts(path_of(1))


class Rows(Catalogue):
    """Versions of a catalogue without a database."""

    def __init__(self, *versions: list[Part]) -> None:
        self.versions = versions

    async def parts(
        self, version: int | None = None, *, words: str = "", spec: str = ""
    ) -> tuple[int, list[Part]]:
        wanted = version or len(self.versions)
        if wanted > len(self.versions):
            raise NoSuchVersion(f"no version {wanted}")
        return wanted, self.versions[wanted - 1]


def ask(catalogue: Catalogue | None = None, **query: object) -> CatalogueAnswer:
    return asyncio.run(search(catalogue or Rows(PARTS), CatalogueQuery.model_validate(query)))


def part(part_id: str, cost: str, **specs: str | Decimal) -> Part:
    return Part(
        part_id=part_id,
        category="motor",
        manufacturer="Maker",
        name=f"Motor {part_id}",
        unit_cost_usd=Decimal(cost),
        tiers=((1, Decimal(cost)),),
        weight_g=Decimal("10.000"),
        source="a test",
        specs=specs,
    )


def test_the_file_holds_real_parts_enough():
    """At least 150, of every category; each has specifications, tiers and a source."""
    assert len(PARTS) >= 150
    assert {each.category for each in PARTS} == {
        "bearing", "insert", "motor", "nut", "screw", "servo", "washer",
    }  # fmt: skip
    for each in PARTS:
        assert each.specs and each.source and each.weight_g > 0, each
    moving = [each for each in PARTS if each.category in {"motor", "servo"}]
    assert all("torque_n_m" in each.specs for each in moving)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("A,servo,M,N,1.00,1:1.00,5,S,colour=red", "colour=red"),
        ("A,servo,M,N,1.00,2:1.00,5,S,torque_n_m=1", "Begin with 1"),
        ("A,servo,M,N,1.00,1:1.00;10:1.10,5,S,torque_n_m=1", "more of them cost more"),
        ("A,anvil,M,N,1.00,1:1.00,5,S,torque_n_m=1", "anvil"),
    ],
)
def test_a_line_that_is_no_part_is_refused(tmp_path, line, says):
    """The part and what is wrong with it are named."""
    names = "part_id,category,manufacturer,name,unit_cost_usd,quantity_tiers,weight_g,source,specs"
    path = tmp_path / "parts.csv"
    path.write_text(f"# a test\n{names}\n{line}\n")
    with pytest.raises(ValueError, match=says):
        read_parts(path)


def test_every_candidate_says_how_it_meets_every_constraint():
    """One fit for each constraint, in their order, with its margin."""
    answer = ask(q="m4 Socket", category="screw", max_unit_cost_usd="0.06", spec=["length_mm<=20"])

    assert answer.no_match is None and answer.total == len(answer.candidates) > 0
    for each in answer.candidates:
        names = [fit.constraint for fit in each.fit]
        assert names == ["q", "q", "category", "max_unit_cost_usd", "length_mm<=20"]
        assert each.fit[3].margin == float(Decimal("0.06") - each.unit_cost_usd)
        assert each.fit[4].margin == 20 - each.specs["length_mm"]


@pytest.mark.parametrize(("cap", "found"), [("10.00", ["A"]), ("9.99", []), ("10.01", ["A"])])
def test_a_cap_includes_itself(cap, found):
    """Exactly at it is inside, a cent over is not."""
    answer = ask(Rows([part("A", "10.00", torque_n_m=Decimal(1))]), max_unit_cost_usd=cap)

    assert [each.part_id for each in answer.candidates] == found
    assert (answer.no_match is None) is bool(found)


def test_the_nearest_part_misses_fewest_then_least():
    """And what to relax is what that part misses, with what it has instead."""
    parts = [
        part("A", "1.00", torque_n_m=Decimal(1), speed_rpm=Decimal(100)),
        part("B", "2.00", torque_n_m=Decimal(9), speed_rpm=Decimal(10)),
        part("C", "3.00", torque_n_m=Decimal(8), speed_rpm=Decimal(100)),
    ]
    answer = ask(Rows(parts), spec=["torque_n_m>=10", "speed_rpm>=50"])

    assert answer.no_match is not None and not answer.candidates
    assert answer.no_match.nearest.part_id == "C"
    [relax] = answer.no_match.relax
    assert (relax.constraint, relax.asked, relax.alone) == ("torque_n_m>=10", "10", True)
    assert "8" in relax.found


@pytest.mark.parametrize(
    "spec",
    ["colour=red", "thread>=M4", "torque_n_m=NaN", "torque_n_m>=1e3", "torque_n_m", "=", ">=5",
     "torque_n_m>=٣", "torque_n_m==1", "TORQUE_N_M>=1", "length_mm<20"],
)  # fmt: skip
def test_a_specification_that_there_is_not_is_refused(spec):
    """With what could be asked instead; never left out."""
    with pytest.raises(BadConstraint, match="cannot search by"):
        constraints_of(CatalogueQuery(spec=[spec]))


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(1, CANDIDATES), q=st.sampled_from(["", "m", "skf", "iso 8", "zzz"]))
def test_a_walk_has_every_part_once_in_order(limit, q):
    """Whatever the size of its pages."""
    walked, cursor = [], None
    while True:
        answer = ask(q=q, limit=limit, cursor=cursor) if cursor else ask(q=q, limit=limit)
        walked += [(each.unit_cost_usd, each.part_id) for each in answer.candidates]
        cursor = answer.next_cursor
        if cursor is None:
            break
    expected = sorted(each.order for each in PARTS if all(w in each.text() for w in q.split()))
    assert walked == expected


def test_a_walk_stays_in_the_version_that_it_began_with():
    """A version that is published meanwhile does not mix with it."""
    first = [part(name, "1.00") for name in "ABC"]
    begun = ask(Rows(first), limit=2)
    both = Rows(first, [part(name, "2.00") for name in "ABCDE"])
    rest = ask(both, limit=2, cursor=begun.next_cursor)

    assert [each.part_id for each in rest.candidates] == ["C"]
    assert rest.catalogue_version == rest.candidates[0].catalogue_version == 1
    assert ask(both).catalogue_version == 2


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200).map(
    lambda text: text.replace("\0", "")))  # fmt: skip
def test_words_are_data(text):
    """Whatever they are: what is found has each of them, and nothing breaks."""
    answer = ask(q=text[:200])
    for each in answer.candidates:
        whole = next(known for known in PARTS if known.part_id == each.part_id).text()
        assert all(word in whole for word in text.casefold().split())


@given(st.one_of(st.text(max_size=80), st.binary(max_size=60).map(lambda data: data.hex())))
def test_a_cursor_that_is_none_is_refused(text):
    """Whatever it is."""
    with pytest.raises(BadCursor, match="cannot go on"):
        read_cursor(text, CatalogueQuery())


def test_a_cursor_of_another_search_is_refused():
    """A walk has one set of constraints; the size of its pages may change."""
    cursor = ask(limit=2).next_cursor
    assert cursor is not None
    assert ask(limit=7, cursor=cursor).candidates
    capped = ask(limit=2, max_weight_g="5.0").next_cursor
    assert ask(max_weight_g="5.000", cursor=capped).candidates, "the same constraint, written longer"
    with pytest.raises(BadCursor, match="other constraints"):
        ask(q="m4", cursor=cursor)


@pytest.mark.parametrize(
    "query",
    [{"q": "a\0b"}, {"q": "\ud800"}, {"q": "x" * 201}, {"limit": 0}, {"limit": CANDIDATES + 1},
     {"max_unit_cost_usd": "NaN"}, {"max_unit_cost_usd": "0.001"}, {"max_unit_cost_usd": -1},
     {"max_weight_g": "Infinity"}, {"category": "Servo"}, {"colour": "red"}, {"spec": ["x"] * 9}],
)  # fmt: skip
def test_a_malformed_query_is_refused(query):
    """By its model, before anything is read."""
    with pytest.raises(ValidationError):
        CatalogueQuery.model_validate(query)


def test_prices_are_of_the_latest_version():
    """Each part once, in the order of the names; what is no part is named."""
    catalogue = Rows([part("A", "1.00"), part("B", "3.00")], [part("A", "2.00")])
    prices = asyncio.run(prices_of(catalogue, ["B", "A", "A"]))

    assert prices.catalogue_version == 2 and prices.unknown == ["B"]
    assert [(each.part_id, each.unit_cost_usd) for each in prices.prices] == [("A", Decimal("2.00"))]
