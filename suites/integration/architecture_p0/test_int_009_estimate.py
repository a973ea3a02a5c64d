"""INT-009: an estimate has the fields of each method, numbers as numbers, and nothing of its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from workbench_contract.findings import Stage

from suites.integration.bundles import ESTIMATE, PLAN, Bundle, changed, doubled
from suites.integration.cataloguing import Catalogue
from suites.integration.episodes import Episodes
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work
from suites.integration.sampling import for_all
from suites.integration.shares import shares

pytestmark = [pytest.mark.covers("INT-009"), pytest.mark.integration_p0]

_NAN, _INFINITE = float("nan"), float("inf")

#: Of each method, besides what all parts have; the parts of a sound bundle are in this order.
_METHODS: Final = {
    0: ("cnc", ("stock_mm",)),
    1: ("injection_moulding", ("wall_mm", "draft_deg")),
    2: ("print", ("layer_mm", "infill")),
}
_OF_ALL: Final = (
    *("id", "method", "material", "quantity", "volume_mm3", "unit_cost_usd", "unit_weight_g"),
)

#: What no number of an estimate is, by how it reads.
_NO_NUMBERS: Final = (
    "12",
    "1,5",
    "1.5e+3",
    "5 USD",
    "$5",
    "0x10",
    "",
    True,
    None,
    [1],
    {"a": 1},
    _NAN,
)
_NUMBERS: Final = (
    *(f"manufactured_parts.{place}.{key}" for place in _METHODS for key in _OF_ALL[3:]),
    *("manufactured_parts.1.wall_mm", "manufactured_parts.1.draft_deg"),
    *("manufactured_parts.2.layer_mm", "manufactured_parts.2.infill"),
    *("cots_parts.0.quantity", "cots_parts.0.unit_cost_usd", "cots_parts.0.catalogue_version"),
    *("assembly.units", "totals.assembly_cost_usd", "totals.unit_cost_usd", "totals.weight_g"),
    *(f"constraints.benchmark_{cap}" for cap in ("max_unit_cost_usd", "max_weight_g")),
    *(f"constraints.planner_target_{cap}" for cap in ("max_unit_cost_usd", "max_weight_g")),
)

#: Out of its range: what stands at a path.
_RANGES: Final = (
    *((f"manufactured_parts.{place}.quantity", value) for place in _METHODS for value in (0, -1, 1.5)),
    *((f"manufactured_parts.{place}.volume_mm3", value) for place in _METHODS for value in (0, -1, _INFINITE)),
    *((f"manufactured_parts.{place}.unit_cost_usd", value) for place in _METHODS for value in (-0.01, 1.005, 1e12)),
    *((f"manufactured_parts.{place}.unit_weight_g", value) for place in _METHODS for value in (-0.001, -_INFINITE)),
    *(("manufactured_parts.0.stock_mm", value) for value in ([60, 50], [60, 50, 0], [60, 50, "20"], [60, 50, _INFINITE], [_NAN, 50, 20], [60, 50, 20, 1], 60, [60, 50, -20])),
    ("manufactured_parts.0.stock_mm", [30, 30, 30]),
    *(("manufactured_parts.1.draft_deg", value) for value in (-0.1, 90)),
    ("manufactured_parts.1.wall_mm", 0),
    *(("manufactured_parts.2.infill", value) for value in (0, 1.01, 30)),
    ("manufactured_parts.2.layer_mm", 0),
    *(("cots_parts.0.quantity", value) for value in (0, -1, 2.5)),
    *(("cots_parts.0.catalogue_version", value) for value in (0, 1.5, 2**31)),
    *(("assembly.units", value) for value in (0, 1.5, -5)),
    *(("totals.weight_g", value) for value in (-1, _INFINITE)),
    *((f"constraints.planner_target_{cap}", 0) for cap in ("max_unit_cost_usd", "max_weight_g")),
    ("constraints.planner_target_max_unit_cost_usd", 12.345),
)  # fmt: skip

#: Of another form: what stands at a path, and what findings name.
_FORMS: Final = (
    ("manufactured_parts.0.method", "laser", ["method", "laser"]),
    ("manufactured_parts.0.method", "CNC", ["method"]),
    ("manufactured_parts.0.method", "print", ["stock_mm"]),
    ("manufactured_parts.2.method", "cnc", ["stock_mm", "layer_mm"]),
    ("manufactured_parts.0.colour", "red", ["colour"]),
    ("manufactured_parts.1.stock_mm", [1, 2, 3], ["stock_mm"]),
    ("manufactured_parts.0.id", "", ["id"]),
    ("manufactured_parts.0.id", " base", ["id"]),
    ("manufactured_parts.0.id", "x" * 101, ["id"]),
    ("manufactured_parts.0.id", 7, ["id"]),
    ("manufactured_parts.0.id", "two\nlines", ["id"]),
    ("manufactured_parts", {}, ["manufactured_parts"]),
    ("manufactured_parts", "none", ["manufactured_parts"]),
    ("manufactured_parts.1", "a cap", ["manufactured_parts[1]"]),
    ("cots_parts.0.source", "", ["source"]),
    ("cots_parts.0.price", 1, ["price"]),
    ("assembly.steps.0.joint", "glued", ["joint"]),
    ("assembly.steps.0.parts", ["base"], ["parts"]),
    ("assembly.steps.0.parts", ["nobody", "nothing"], ["nobody"]),
    ("assembly", [], ["assembly"]),
    ("totals", 5, ["totals"]),
    ("notes", "none", ["notes"]),
    ("totals.price_usd", 5, ["price_usd"]),
)

#: What stands for a value that nobody has written yet.
_PLACEHOLDERS: Final = ("TODO", "tbd", "...", "<id>", "{{id}}", "____", "???", "Fill in", "FIXME")

_TEXTS: Final = {
    "no mapping": "- manufactured_parts\n",
    "no YAML": "totals: {\n",
    "two documents": "totals: 1\n---\ntotals: 2\n",
    "one key twice": "totals: 1\ntotals: 2\n",
    "an old boolean": "assembly: yes\n",
    "an old octal": "assembly: {units: 010, steps: []}\n",
    "a thousand with a line": "assembly: {units: 1_000, steps: []}\n",
    "sixties": "assembly: {units: 1:30, steps: []}\n",
    "a tag": "totals: !!float '5'\n",
    "a merge": "base: &b {units: 1}\nassembly:\n  <<: *b\n",
}


def _paths(value: Any, before: str = "") -> list[str]:
    """Every key of an estimate, with its path; the optional ones left out."""
    found: list[str] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        path = f"{before}{key}"
        if isinstance(value, dict) and path != "assembly.units":
            found.append(path)
        if isinstance(inner, (dict, list)):
            found += _paths(inner, f"{path}.")
    return found


async def _bundle(episodes: Episodes, planner: Planner) -> Bundle:
    part = (await Catalogue(episodes.controller).search(category="screw", limit=1))["candidates"][0]
    return planner.sound(bought=[(part, 4)])


async def _refused(
    planner: Planner, bundle: Bundle, path: str, value: object, says: list[str]
) -> None:
    shown = "nothing" if value is ... else repr(value)
    bad = bundle.replaced(estimate=changed(bundle.estimate, path, value))
    answer = await planner.judged(bad)
    expect_found(
        answer, Stage.VALID, {ESTIMATE}, what=f"an estimate with {path} {shown}", says=says
    )


@pytest.mark.parametrize("share", shares(3))
async def test_int_009_every_field_is_required_and_typed(episodes: Episodes, share: slice) -> None:
    """Each key of each method is required; a number is a number of its range; unknown keys are named.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=141) as planner:
        bundle = await _bundle(episodes, planner)
        expect_accepted(await planner.judged(bundle), "an estimate with a part of each method")
        methods = [part["method"] for part in bundle.estimate["manufactured_parts"]]
        assert methods == [name for name, _ in _METHODS.values()], f"a bundle of {methods}"
        paths = _paths(bundle.estimate)
        assert len(paths) > 40, f"expected more than 40 keys of an estimate, found {paths}"
        for path in paths[share]:
            await _refused(planner, bundle, path, ..., [path.rpartition(".")[2]])
        for path, value in _RANGES[share]:
            await _refused(planner, bundle, path, value, [path.rpartition(".")[2]])
        for path, value, says in _FORMS[share]:
            await _refused(planner, bundle, path, value, says)
        again = bundle.estimate["manufactured_parts"][0]["id"]
        await _refused(planner, bundle, "manufactured_parts.1.id", again, [again])
        nothing = bundle.estimate | {"manufactured_parts": [], "cots_parts": []}
        answer = await planner.judged(bundle.replaced(estimate=nothing))
        expect_found(answer, Stage.VALID, {ESTIMATE}, what="an estimate of no part")


async def test_int_009_numbers_are_numbers(episodes: Episodes) -> None:
    """What reads like a number and is none is refused wherever a number is due, and named.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=142) as planner:
        bundle = await _bundle(episodes, planner)

        async def check(drawn: tuple[str, object]) -> None:
            path, value = drawn
            await _refused(planner, bundle, path, value, [path.rpartition(".")[2]])

        pairs = st.tuples(st.sampled_from(_NUMBERS), st.sampled_from(_NO_NUMBERS))
        for path in _NUMBERS:
            await check((path, "12"))
        await for_all(pairs, check, most=60)
        expect_accepted(await planner.judged(bundle), "numbers, after all of these")


async def test_int_009_what_a_template_leaves_is_refused(episodes: Episodes) -> None:
    """The template as it was issued, a placeholder in any place, and broken YAML are refused and named.

    A word that only holds such a mark is a word. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=143) as planner:
        template = (await planner.session.read(ESTIMATE)).json()["content"]
        bundle = await _bundle(episodes, planner)
        answer = await planner.judged(bundle, preliminary_cost_estimation=template)
        places = [
            "manufactured_parts[0].id",
            "totals.weight_g",
            "cots_parts[0].part_id",
            "constraints",
        ]
        what = "the template of the estimate"
        expect_found(answer, Stage.VALID, {ESTIMATE}, what=what, says=places)
        for text in _PLACEHOLDERS:
            for path in ("manufactured_parts.0.material", "cots_parts.0.source"):
                await _refused(planner, bundle, path, text, [path.rpartition(".")[2]])
        for name, text in _TEXTS.items():
            answer = await planner.judged(bundle, preliminary_cost_estimation=text)
            expect_found(answer, Stage.VALID, {ESTIMATE}, what=f"an estimate: {name}")
        for key in ("totals", "weight_g", "benchmark_max_weight_g", "volume_mm3"):
            text = doubled(bundle.files()[ESTIMATE], key)
            answer = await planner.judged(bundle, preliminary_cost_estimation=text)
            what = f"a sound estimate with {key} twice"
            expect_found(answer, Stage.VALID, {ESTIMATE}, what=what, says=[key])
        said = changed(bundle.estimate, "manufactured_parts.0.description", "TODO is a word here")
        expect_accepted(
            await planner.judged(bundle.replaced(estimate=said)), "a word of a sentence"
        )


async def test_int_009_each_round_and_all_mistakes_at_once(episodes: Episodes) -> None:
    """Several mistakes are told at once; mended one by one the rest is told, to the last.

    An estimate that was accepted is read again in the next round. The model provider is a stand-in: the
    gateway holds the planner's model.
    """
    mistakes: Mapping[str, object] = {
        "manufactured_parts.1.unit_weight_g": _NAN,
        "manufactured_parts.0.volume_mm3": "many",
        "cots_parts.0.quantity": 0,
        "totals.unit_cost_usd": ...,
        "assembly.steps.0.joint": "glue",
    }
    async with planner_at_work(episodes, number=144) as planner:
        bundle = await _bundle(episodes, planner)
        expect_accepted(await planner.judged(bundle), "a sound estimate, in the first round")
        left = dict(mistakes)
        while left:
            estimate = bundle.estimate
            for path, value in left.items():
                estimate = changed(estimate, path, value)
            answer = await planner.judged(bundle.replaced(estimate=estimate))
            says = [path.rpartition(".")[2] for path in left]
            found = expect_found(answer, Stage.VALID, {ESTIMATE}, what=f"with {left}", says=says)
            assert len(left) == len(found), f"expected {len(left)} findings, found {found}"
            left.popitem()
        expect_accepted(await planner.judged(bundle), "the estimate, mended")
        renamed = "Grundplatte-日本"
        other = changed(bundle.estimate, "manufactured_parts.0.id", renamed)
        before = bundle.estimate["manufactured_parts"][0]["id"]
        other["assembly"]["steps"][0]["parts"][0] = renamed
        answer = await planner.judged(bundle.replaced(estimate=other))
        what = "an estimate whose part the plan does not have"
        expect_found(answer, Stage.AGREE, {PLAN}, what=what, says=[before, renamed])
        both = bundle.planned(f"`{before}`", f"`{renamed}`").replaced(estimate=other)
        expect_accepted(await planner.judged(both), "a part renamed in both files")
