"""INT-023: parts that do not move against each other are held by fasteners in holes that fit."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from workbench_contract.connections import Connections
from workbench_contract.design import CONNECTIONS, DesignJudged
from workbench_contract.findings import Stage

from suites.integration.bundles import Bundle, milled, printed, sound
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work, expect_found
from suites.integration.refusals import expect_refused
from suites.integration.shares import shares

pytestmark = [pytest.mark.covers("INT-023"), pytest.mark.integration_p0]

_NUMBER: Final = 231
_COVER, _BASE = f"cover-{_NUMBER}", f"base-{_NUMBER}"


def _script(
    *,
    cover_mm: float = 4,
    base_mm: float = 4,
    shift_mm: float = 0,
    tilt_deg: float = 0,
    deep_mm: float = 8,
    hollow_mm: float = 0,
) -> str:
    """A plate on a block, two holes of each over one another, 40 mm apart.

    Below each hole of the block there is a wider one, ``hollow_mm`` deep from the block's bottom.
    """
    hollow = (
        f"    base -= Pos(x, 0, {hollow_mm / 2}) * Cylinder(6, {hollow_mm})\n" if hollow_mm else ""
    )
    return f"""\
from build123d import Box, Cylinder, Pos, Rotation

cover = Pos(35, 0, 22.5) * Box(60, 38, 5)
base = Pos(35, 0, 10) * Box(60, 38, 20)
for x in (15, 55):
    cover -= Pos(x + {shift_mm}, 0, 22.5) * Rotation({tilt_deg}, 0, 0) * Cylinder({cover_mm / 2}, 30)
    base -= Pos(x, 0, {20 - deep_mm / 2}) * Cylinder({base_mm / 2}, {deep_mm})
{hollow}parts = {{"{_COVER}": cover, "{_BASE}": base}}
"""


def _fastener(number: int, part_id: str) -> dict[str, Any]:
    x = (15.0, 55.0)[number]

    def hole(part: str, z: float, *, holds: bool) -> dict[str, Any]:
        return {
            "part": part,
            "at_mm": (x, 0.0, z),
            "axis": (0.0, 0.0, 1.0),
            "diameter_mm": 4.0,
            "holds": holds,
        }

    return {
        "name": f"screw-{number}",
        "part_id": part_id,
        "diameter_mm": 4.0,
        "length_mm": 12.0,
        "holes": [hole(_COVER, 22.5, holds=False), hole(_BASE, 18.0, holds=True)],
    }


def _connected(part_id: str) -> dict[str, Any]:
    return {
        "pairs": [
            {"parts": [_COVER, _BASE], "fasteners": [_fastener(0, part_id), _fastener(1, part_id)]}
        ]
    }


def _other(connections: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """The same with something else at ``pairs.0…``; without it where ``value`` is ``...``."""
    made: dict[str, Any] = copy.deepcopy(dict(connections))
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    at: Any = made
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return made


def _joint(movement: str, at_mm: tuple[float, ...], axis: tuple[float, ...]) -> dict[str, Any]:
    return {"name": movement, "part": _BASE, "movement": movement, "at_mm": at_mm, "axis": axis}


#: What is wrong with the connections, and what findings name.
_WRONG: Final[dict[str, tuple[dict[str, object], list[str]]]] = {
    "one fastener": ({"pairs.0.fasteners.1": ...}, ["pairs[0].fasteners", "at least 2"]),
    "no fastener": ({"pairs.0.fasteners": []}, ["pairs[0].fasteners"]),
    "both sides hold": ({"pairs.0.fasteners.0.holes.0.holds": True}, ["pairs[0].fasteners[0]"]),
    "no side holds": ({"pairs.0.fasteners.1.holes.1.holds": False}, ["pairs[0].fasteners[1]"]),
    "a hole that is not there": ({"pairs.0.fasteners.0.holes.1.at_mm": (25.0, 0.0, 18.0)}, ["pairs[0].fasteners[0]"]),
    "a hole of the other part": ({"pairs.0.fasteners.0.holes.0.part": _BASE}, ["pairs[0].fasteners[0]"]),
    "an unknown part": ({"pairs.0.parts.0": "lid"}, ["lid"]),
    "a part on itself": ({"pairs.0.parts.0": _BASE}, ["pairs[0].parts"]),
    "another diameter": ({"pairs.0.fasteners.0.holes.0.diameter_mm": 5.0}, ["pairs[0].fasteners[0]"]),
    "a screw that is too thick": ({"pairs.0.fasteners.1.diameter_mm": 4.2}, ["pairs[0].fasteners[1]"]),
    "an axis across": ({"pairs.0.fasteners.0.holes.1.axis": (1.0, 0.0, 0.0)}, ["pairs[0].fasteners[0]"]),
    "an axis of no length": (
        {"pairs.0.fasteners.1.holes.1.axis": (0.0, 0.0, 0.0)},
        ["pairs[0].fasteners[1]"],
    ),
    "too long a screw": (
        {"pairs.0.fasteners.1.length_mm": 14.0},
        ["pairs[0].fasteners[1].length_mm"],
    ),
    "too short a screw": ({"pairs.0.fasteners.0.length_mm": 8.0}, ["pairs[0].fasteners[0]"]),
    "a joint from nothing": (
        {"joints": [_joint("revolute", (35.0, 0.0, 10.0), (0.0, 1.0, 0.0))]},
        ["joints[0]"],
    ),
    "a joint across its hole": (
        {"joints": [_joint("revolute", (15.0, 0.0, 16.0), (1.0, 0.0, 0.0))]},
        ["joints[0]"],
    ),
    "a screw that ends before one diameter": (
        {"pairs.0.fasteners.0.length_mm": 8.99},
        ["pairs[0].fasteners[0]"],
    ),
    "two screws in one hole": (
        {
            "pairs.0.fasteners.1.holes.0.at_mm": (15.0, 0.0, 22.5),
            "pairs.0.fasteners.1.holes.1.at_mm": (15.0, 0.0, 18.0),
        },
        ["pairs[0].fasteners[1]"],
    ),
}  # fmt: skip
#: What is wrong with the solids, the script of them, and what findings name.
_OTHER_SHAPES: Final = (
    ("holes of two widths", _script(cover_mm=4.02), ["pairs[0].fasteners[0]"]),
    ("a hole beside the other", _script(shift_mm=0.5), ["pairs[0].fasteners"]),
    ("holes that lean", _script(tilt_deg=0.6), ["pairs[0].fasteners"]),
    (
        "no holes there",
        _script().replace("base -= Pos(x,", "base -= Pos(x - 6,"),
        ["pairs[0].fasteners"],
    ),
    (
        "a screw that goes on beyond less than its diameter of what holds it",
        _script(deep_mm=3.5, hollow_mm=16.5),
        ["pairs[0].fasteners[0]", "pairs[0].fasteners[1]"],
    ),
)


async def _judged(coder: Coder, script: str, connections: Mapping[str, Any]) -> DesignJudged:
    await coder.session.write(CONNECTIONS, json.dumps(connections))
    return await coder.judged(script)


@pytest.mark.parametrize("share", shares(3))
async def test_int_023_what_holds_parts_together(episodes: Episodes, share: slice) -> None:
    """Two fasteners in holes of one width hold a plate on a block; each rule that is broken is named.

    What does not hold is neither simulated nor handed over; mended it is. The model provider is a stand-in:
    the gateway holds the models.
    """
    query = {"category": "screw", "spec": ["thread=M4", "length_mm=12"], "limit": 1}
    [screw] = (await Catalogue(episodes.controller).search(**query))["candidates"]

    def plan(planner: Planner) -> Bundle:
        made = [
            printed(_COVER, 11_274.3, units=100, infill="0.5"),
            milled(_BASE, 45_398.9, (60, 38, 20), units=100),
        ]
        return sound(planner.issued, number=_NUMBER, made=made, bought=[(screw, 2)], units=100)

    sound_pair = _connected(screw["part_id"])
    Connections.model_validate(sound_pair)
    async with coder_at_work(episodes, number=_NUMBER, plan=plan) as coder:
        judged = await _judged(coder, _script(), sound_pair)
        assert judged.passed, f"expected two screws to hold, found {judged.findings}"
        weight = coder.bundle.estimate["totals"]["weight_g"]
        assert judged.totals is not None, f"a design that passed weighs nothing: {judged}"
        near = pytest.approx(weight, rel=0.001) == judged.totals.weight_g
        assert near, f"expected {weight} g as it was planned, found {judged.totals}"
        for name, (changes, says) in [*_WRONG.items()][share]:
            connections = sound_pair
            for path, value in changes.items():
                connections = _other(connections, path, value)
            await _does_not_hold(coder, _script(), connections, name, says)
        for name, script, says in _OTHER_SHAPES[share]:
            await _does_not_hold(coder, script, sound_pair, name, says)
        await _just_holds(coder, sound_pair)
        through = _other(sound_pair, "pairs.0.fasteners.0.length_mm", 30.0)
        through["pairs"][0]["fasteners"][0]["holes"][1]["at_mm"] = (15.0, 0.0, 10.0)
        through["pairs"][0]["fasteners"][1]["holes"][1]["at_mm"] = (55.0, 0.0, 10.0)
        judged = await _judged(coder, _script(deep_mm=20), through)
        held = [each for each in judged.findings if each.where.startswith("pairs")]
        assert not held, f"a screw may come out of a hole that goes through, found {held}"
        more = _other(
            sound_pair,
            "pairs.0.fasteners",
            [*sound_pair["pairs"][0]["fasteners"], _fastener(0, screw["part_id"])],
        )
        more["pairs"][0]["fasteners"][2]["name"] = "screw-2"
        judged = await _judged(coder, _script(), more)
        assert not judged.passed, f"a third screw that was never bought is taken: {judged}"
        told = " ".join(f"{each.where} {each.found} {each.expected}" for each in judged.findings)
        assert screw["part_id"] in told, (
            f"three screws are used and two are paid for: expected a finding about {screw['part_id']}, "
            f"found {told}"
        )
        for text in ('{"pairs": [', '{"pairs": [{}]}', '{"pairs": [], "glue": true}', "[]"):
            await coder.session.write(CONNECTIONS, text)
            judged = await coder.judged(_script())
            files = {each.file for each in judged.findings}
            expect_same({CONNECTIONS}, files, what=f"files with findings for {text}")
        await _each_in_the_zone(coder, sound_pair)
        judged = await _judged(coder, _script(), sound_pair)
        assert judged.passed, f"expected the pair, mended, to hold, found {judged.findings}"
        simulated = await coder.simulate()
        assert 200 == simulated.status, f"expected what holds to be simulated, found {simulated}"
        submitted = await coder.submit()
        assert 200 == submitted.status, f"expected what holds to be handed over: {submitted}"
        one = _other(sound_pair, "pairs.0.fasteners.1", ...)
        await coder.session.write(CONNECTIONS, json.dumps(one))
        expect_refused(await coder.simulate(), 409, 422, says=r"connections\.json")


async def _just_holds(coder: Coder, pair: Mapping[str, Any]) -> None:
    """What is just within each bound holds."""
    edge = _other(pair, "pairs.0.fasteners.0.length_mm", 9.0)
    edge["joints"] = [
        _joint("revolute", (15.0, 0.0, 16.0), (0.0, 0.0, 1.0)),
        _joint("prismatic", (35.0, 19.0, 10.0), (1.0, 0.0, 0.0)),
    ]
    Connections.model_validate(edge)
    for script, connections in (
        (_script(cover_mm=4.008), edge),
        (_script(tilt_deg=0.4), pair),
        (_script(deep_mm=4.0, hollow_mm=16.0), pair),
    ):
        judged = await _judged(coder, script, connections)
        held = [each for each in judged.findings if each.where.startswith(("pairs", "joints"))]
        assert not held, f"expected what is just within each bound to hold, found {held}"
    await _whichever_is_named_first(coder, edge)


async def _whichever_is_named_first(coder: Coder, edge: Mapping[str, Any]) -> None:
    """What just holds, and just does not, with the hole that holds named before the one that is passed."""
    turned = copy.deepcopy(dict(edge))
    for fastener in turned["pairs"][0]["fasteners"]:
        fastener["holes"].reverse()
    judged = await _judged(coder, _script(), turned)
    held = [each for each in judged.findings if each.where.startswith(("pairs", "joints"))]
    assert not held, f"whichever hole is named first, the screws hold: found {held}"
    short = _other(turned, "pairs.0.fasteners.0.length_mm", 8.99)
    name = "a screw that ends before one diameter, the hole that holds named first"
    await _does_not_hold(coder, _script(), short, name, ["pairs[0].fasteners[0]"])


async def _each_in_the_zone(coder: Coder, connections: Mapping[str, Any]) -> None:
    """INT-019 of two parts that hold: the one that leaves the build zone is named, whichever it is."""
    for name, place in ((_COVER, "cover = Pos(35, {}, 22.5)"), (_BASE, "base = Pos(35, {}, 10)")):
        script = _script().replace(place.format(0), place.format(2))
        judged = await _judged(coder, script, connections)
        assert not judged.passed, (
            f"expected {name} outside of its zone by 1 mm not to pass: {judged}"
        )
        places = [each.where for each in judged.findings]
        named = {part for part in (_COVER, _BASE) if any(part in where for where in places)}
        expect_same({name}, named, what="parts that are said to be outside of the build zone")


async def _does_not_hold(
    coder: Coder, script: str, connections: Mapping[str, Any], name: str, says: list[str]
) -> None:
    judged = await _judged(coder, script, connections)
    told = "\n".join(f"{each.where}: {each.found}; {each.expected}" for each in judged.findings)
    assert not judged.passed, f"expected {name} not to hold, found {judged}"
    places = [each.where for each in judged.findings]
    lacking = [
        text
        for text in says
        if text not in told
        or (
            text.startswith(("pairs", "joints"))
            and not any(where.startswith(text) for where in places)
        )
    ]
    assert not lacking, f"expected findings about {lacking} for {name}, found {told}"
    strangers = [where for where in places if not where.startswith(("pairs[0].", "joints[0]"))]
    assert not strangers, (
        f"{name} is a matter of the connections: expected findings about pairs[0] or joints[0] alone, "
        f"found {told}"
    )
    mute = [each for each in judged.findings if not (each.found and each.expected and each.where)]
    assert not mute, f"findings for {name} that do not say what was found where: {mute}"
    expect_refused(await coder.simulate(), 409, 422)
    answer = await coder.submit()
    expect_found(answer, Stage.PRICE, {"model.py"}, what=name)


_TWICE: Final = 232
#: The second pair stands on the first.
_HIGHER_MM: Final = 25.0


def _stacked(*, second_mm: float = 4) -> str:
    """Two plates on two blocks, one above the other; the plate of the second has holes of its own width."""
    below, above = _script(), _script(cover_mm=second_mm)
    upper = above.replace("parts = ", "upper = ").replace(_COVER, "lid").replace(_BASE, "core")
    first, _, named = below.rpartition("parts = ")
    names = {f"cover-{_TWICE}": "cover", f"base-{_TWICE}": "base"}
    rows = "".join(f'    "{name}": {shape},\n' for name, shape in names.items())
    assert named, "the script of a pair names its parts"
    return (
        f"{first}lower = {{\n{rows}}}\n{upper}"
        f"parts = lower | {{f'{{name}}-{_TWICE}': Pos(0, 0, {_HIGHER_MM}) * shape"
        " for name, shape in upper.items()}\n"
    )


def _of_two(part_id: str) -> dict[str, Any]:
    """Both pairs, each with two fasteners."""
    pairs = []
    for names, higher_mm in ((("cover", "base"), 0.0), (("lid", "core"), _HIGHER_MM)):
        ids = dict(zip((_COVER, _BASE), (f"{each}-{_TWICE}" for each in names), strict=True))
        fasteners = [_fastener(0, part_id), _fastener(1, part_id)]
        for fastener in fasteners:
            fastener["name"] += f"-of-{names[0]}"
            for hole in fastener["holes"]:
                x, y, z = hole["at_mm"]
                hole |= {"part": ids[hole["part"]], "at_mm": (x, y, z + higher_mm)}
        pairs.append({"parts": list(ids.values()), "fasteners": fasteners})
    return {"pairs": pairs}


async def test_int_023_every_pair_is_judged(episodes: Episodes) -> None:
    """Of two pairs each has to hold: what is wrong with the second is found there, and nowhere else.

    Both wrong, both are told. The model provider is a stand-in: the gateway holds the models.
    """
    query = {"category": "screw", "spec": ["thread=M4", "length_mm=12"], "limit": 1}
    [screw] = (await Catalogue(episodes.controller).search(**query))["candidates"]

    def plan(planner: Planner) -> Bundle:
        made = [
            *(
                printed(f"{name}-{_TWICE}", 11_274.3, units=100, infill="0.5")
                for name in ("cover", "lid")
            ),
            *(
                milled(f"{name}-{_TWICE}", 45_398.9, (60, 38, 20), units=100)
                for name in ("base", "core")
            ),
        ]
        return sound(planner.issued, number=_TWICE, made=made, bought=[(screw, 4)], units=100)

    pairs = _of_two(screw["part_id"])
    Connections.model_validate(pairs)
    lonely = _other(pairs, "pairs.1.fasteners.1", ...)
    loose = _other(pairs, "pairs.1.fasteners.0.holes.1.holds", value=False)
    both = _other(lonely, "pairs.0.fasteners.0.holes.0.holds", value=True)
    async with coder_at_work(episodes, number=_TWICE, plan=plan) as coder:
        judged = await _judged(coder, _stacked(), pairs)
        assert judged.passed, f"expected four screws to hold two pairs, found {judged.findings}"
        for name, script, connections, wrong in (
            ("one fastener", _stacked(), lonely, {"pairs[1]"}),
            ("no side that holds", _stacked(), loose, {"pairs[1]"}),
            ("holes of two widths", _stacked(second_mm=4.02), pairs, {"pairs[1]"}),
            ("both pairs wrong", _stacked(), both, {"pairs[0]", "pairs[1]"}),
        ):
            judged = await _judged(coder, script, connections)
            assert not judged.passed, f"expected {name} not to hold: the second pair, {judged}"
            places = {each.where.partition(".")[0] for each in judged.findings}
            assert wrong == places, f"expected findings about {sorted(wrong)} for {name}: {judged}"
            expect_refused(await coder.simulate(), 409, 422, says="pairs")
        # Each of the two is held by a fastener, and not by one in the other.
        lower, upper = f"cover-{_TWICE}", f"core-{_TWICE}"
        joined = (
            f"{_stacked()}from build123d import RigidJoint\n"
            f'seam = Pos(35, 0, {_HIGHER_MM})\nlower, upper = parts["{lower}"], parts["{upper}"]\n'
            'RigidJoint("top", lower, seam).connect_to(RigidJoint("foot", upper, seam))\n'
        )
        judged = await _judged(coder, joined, pairs)
        assert not judged.passed, f"expected a rigid joint of two pairs to need its own: {judged}"
        told = " ".join(f"{each.found} {each.expected}" for each in judged.findings)
        lacking = [name for name in (lower, upper) if name not in told]
        assert not lacking, (
            f"expected both parts of the rigid joint named, {lacking} are not: {told}"
        )
        judged = await _judged(coder, _stacked(), pairs)
        assert judged.passed, f"expected both pairs, mended, to hold, found {judged.findings}"
