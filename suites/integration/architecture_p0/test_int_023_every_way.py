"""INT-023: holes, bosses and faces are found from all sides, whichever way a design is turned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from workbench_contract.connections import Connections
from workbench_contract.design import CONNECTIONS, DesignJudged

from suites.integration.assemblies import frame, rotation
from suites.integration.bundles import Bundle, milled, sound
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work

pytestmark = [pytest.mark.covers("INT-023"), pytest.mark.integration_p0]

_NUMBER: Final = 234
_COVER, _BASE = f"cover-{_NUMBER}", f"base-{_NUMBER}"
_MIDDLE_MM: Final = (35.0, 0.0, 30.0)
_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

#: Which way the screws point: each of the six. Unturned they are in test_int_023_fasteners.py.
_TURNS: Final = {
    "down": (_X, 0.0),
    "up": (_X, 180.0),
    "along +y": (_X, 90.0),
    "along -y": (_X, -90.0),
    "along -x": (_Y, 90.0),
    "along +x": (_Y, -90.0),
}
#: Of them those that each run of P0 tries: of two axes, and of both directions.
_ALWAYS: Final = {"along -y", "along +x"}

Place = Sequence[float]
_Hole = dict[str, Any]


def _off(place: Place, axis: Place, by_mm: float) -> tuple[float, float, float]:
    x, y, z = (float(at + by_mm * way) for at, way in zip(place, axis, strict=True))
    return x, y, z


class _Turned:
    """A plate on a block with a boss below, turned about the middle of its build zone.

    Unturned the plate is 7.5 to 12.5 mm above the middle, the block's boss goes from 12.5 to 16.5 mm below
    it, and the block's holes are 8 mm deep.
    """

    def __init__(self, turn: tuple[Place, float]) -> None:
        self._turn = rotation(*turn)

    def script(self, *, cover_mm: float = 4, base_mm: float = 4) -> str:
        return f"""\
from build123d import Box, Cylinder, Plane, Pos

cover = Pos(0, 0, 10) * Box(30, 30, 5)
base = Pos(0, 0, -2.5) * Box(30, 30, 20) + Pos(0, 0, -14.5) * Cylinder(3, 4)
for x in (-9, 9):
    cover -= Pos(x, 0, 10) * Cylinder({cover_mm / 2}, 30)
    base -= Pos(x, 0, 3.5) * Cylinder({base_mm / 2}, 8)
turned = {frame(self._turn, _MIDDLE_MM)}
parts = {{"{_COVER}": turned * cover, "{_BASE}": turned * base}}
"""

    def at(self, place: Place) -> list[float]:
        found: list[float] = (self._turn @ np.array(place) + np.array(_MIDDLE_MM)).tolist()
        return found

    def way(self, axis: Place) -> list[float]:
        found: list[float] = (self._turn @ np.array(axis)).tolist()
        return found

    def hole(self, part: str, place: Place, axis: Place = _Z, diameter_mm: float = 4) -> _Hole:
        return {
            "part": part,
            "at_mm": self.at(place),
            "axis": self.way(axis),
            "diameter_mm": float(diameter_mm),
            "holds": part == _BASE,
        }

    def joint(self, movement: str, place: Place, axis: Place) -> dict[str, Any]:
        return {
            "name": movement,
            "part": _BASE,
            "movement": movement,
            "at_mm": self.at(place),
            "axis": self.way(axis),
        }


def _screw(part_id: str, *holes: _Hole, length_mm: float = 12) -> dict[str, Any]:
    x = holes[0]["at_mm"]
    named = {"name": f"screw at {x}", "part_id": part_id}
    return {**named, "diameter_mm": 4.0, "length_mm": float(length_mm), "holes": list(holes)}


def _starts() -> tuple[list[tuple[str, Place, Place]], list[tuple[str, Place, Place]]]:
    """Where joints may start on the block, and where they may not: movement, place, axis."""
    right: list[tuple[str, Place, Place]] = [
        ("revolute", (9, 0, 7.5), _Z),
        ("revolute", (9, 0, -0.5), (0, 0, -1)),
        ("revolute", (-9, 0, 3), (0, 0, 7)),
        ("prismatic", (-9, 0, 3), _Z),
        *(("revolute", (0, 0, z), _Z) for z in (-12.5, -14.5, -16.5)),
    ]
    wrong: list[tuple[str, Place, Place]] = [
        *(("revolute", (9, 0, z), _Z) for z in (8.5, -1.5, 40)),
        *(("revolute", (0, 0, z), _Z) for z in (-17.5, -11.5, 7.5)),
        ("revolute", (9, 0, 3), (0, 0.05, 1)),
        ("revolute", (9, 0, 3), _Y),
        ("prismatic", (9, 0, 9), _Z),
        ("revolute", (15, 0, -2.5), _Y),
    ]
    for x in (9, 0):
        place = (x, 0, 3) if x else (0, 0, -14.5)
        wrong += [
            ("revolute", _off(place, axis, by), _Z) for axis in (_X, _Y) for by in (-0.5, 0.5)
        ]
    faces = [
        *(((side * 15.0, 4.0, -5.0), _X, _Y) for side in (-1, 1)),
        *(((4.0, side * 15.0, -5.0), _Y, _Z) for side in (-1, 1)),
        *(((3.0, 9.0, z), _Z, _X) for z in (-12.5, 7.5)),
    ]
    for place, normal, along in faces:
        right.append(("prismatic", place, along))
        wrong += [("prismatic", _off(place, normal, by), along) for by in (-1, 1)]
        wrong.append(("prismatic", place, normal))
        wrong.append(("prismatic", _off(place, along, 30), along))
    return right, wrong


def _mislaid(turned: _Turned) -> dict[str, tuple[_Hole, _Hole]]:
    """Both holes of a screw of which one is told where it is not, or otherwise than it is."""
    cover, base = (9.0, 0.0, 10.0), (9.0, 0.0, 3.0)
    sound_ = turned.hole(_COVER, cover), turned.hole(_BASE, base)
    found: dict[str, tuple[_Hole, _Hole]] = {}
    for part, place, ends in ((_COVER, cover, (13.5, 6.5)), (_BASE, base, (8.5, -1.5))):
        others = {f"{part} at z {z}": turned.hole(part, (9, 0, z)) for z in ends}
        for axis in (_X, _Y):
            for by in (-0.5, 0.5):
                moved = _off(place, axis, by)
                others[f"{part} beside its hole, at {moved}"] = turned.hole(part, moved)
            lean = _off(_Z, axis, 0.02)
            others[f"{part} along {lean}"] = turned.hole(part, place, lean)
        for wide_mm in (3.98, 4.02):
            others[f"{part}, {wide_mm} mm wide"] = turned.hole(part, place, diameter_mm=wide_mm)
        for name, hole in others.items():
            found[name] = (hole, sound_[1]) if part == _COVER else (sound_[0], hole)
    return found


async def _judged(coder: Coder, script: str, connections: dict[str, Any]) -> DesignJudged:
    Connections.model_validate_json(json.dumps(connections))
    await coder.session.write(CONNECTIONS, json.dumps(connections))
    return await coder.judged(script)


def _told(judged: DesignJudged, key: str, count: int, *, what: str) -> list[int]:
    """Which of the rows of a list have findings."""
    assert not judged.passed, f"expected {what} not to pass, found {judged}"
    wheres = [each.where for each in judged.findings]
    return [
        number
        for number in range(count)
        if any(where.startswith(f"{key}[{number}]") for where in wheres)
    ]


async def _screw_of(episodes: Episodes) -> dict[str, Any]:
    query = {"category": "screw", "spec": ["thread=M4", "length_mm=12"], "limit": 1}
    [screw] = (await Catalogue(episodes.controller).search(**query))["candidates"]
    found: dict[str, Any] = screw
    return found


def _plan(planner: Planner, screw: dict[str, Any]) -> Bundle:
    made = [
        milled(_COVER, 4_374.336, (30, 30, 30), units=100),
        milled(_BASE, 17_912.035, (30, 30, 30), units=100),
    ]
    return sound(planner.issued, number=_NUMBER, made=made, bought=[(screw, 2)], units=100)


def _pair(*fasteners: dict[str, Any]) -> dict[str, Any]:
    return {"parts": [_COVER, _BASE], "fasteners": list(fasteners)}


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[] if way in _ALWAYS else [pytest.mark.corpus]) for way in _TURNS],
)
async def test_int_023_features_are_where_they_are(episodes: Episodes, way: str) -> None:
    """A hole, a boss or a face is one from its first to its last point, and nowhere beyond, to no side.

    So it is of screws that point any way. The model provider is a stand-in: the gateway holds the models.
    """
    screw = await _screw_of(episodes)
    turned = _Turned(_TURNS[way])

    def at(x: float, cover_z: float = 10, base_z: float = 3, **options: Any) -> dict[str, Any]:
        holes = (
            turned.hole(_COVER, (x, 0, cover_z)),
            turned.hole(_BASE, (x, 0, base_z), (0.0, 0.0, x)),
        )
        return _screw(screw["part_id"], *holes, **options)

    right, wrong = _starts()
    mislaid = _mislaid(turned)
    async with coder_at_work(
        episodes, number=_NUMBER, plan=lambda planner: _plan(planner, screw)
    ) as coder:
        ends = _pair(at(-9, 12.5, -0.5), at(9, 7.5, 7.5))
        joints = [turned.joint(*each) for each in right]
        judged = await _judged(coder, turned.script(), {"pairs": [ends], "joints": joints})
        named = {f"joints[{number}]": each for number, each in enumerate(right)}
        assert judged.passed, (
            f"screws {way}, told at the ends of their holes, and joints {named}: expected them to hold, "
            f"found {judged.findings}"
        )
        uneven = _pair(at(-9, length_mm=8), at(9, length_mm=14))
        judged = await _judged(coder, turned.script(), {"pairs": [uneven]})
        what = f"a screw {way} that is too short, and one that is too long"
        found = _told(judged, "pairs[0].fasteners", 2, what=what)
        expect_same([0, 1], found, what=f"fasteners with findings: {what}")
        pairs = [_pair(_screw(screw["part_id"], *each), at(-9)) for each in mislaid.values()]
        joints = [turned.joint(*each) for each in wrong]
        judged = await _judged(coder, turned.script(), {"pairs": pairs, "joints": joints})
        what = f"holes that are not there, screws {way}"
        found = _told(judged, "pairs", len(pairs), what=what)
        taken = [name for number, name in enumerate(mislaid) if number not in found]
        assert not taken, f"{what}: expected a finding for each, found none for {taken}"
        what = f"joints that start from nothing of the block, screws {way}"
        found = _told(judged, "joints", len(joints), what=what)
        begun = [each for number, each in enumerate(wrong) if number not in found]
        assert not begun, f"{what}: expected a finding for each, found none for {begun}"


async def test_int_023_widths_are_those_of_the_solids(episodes: Episodes) -> None:
    """Holes of two widths do not fit each other, whichever is the wider, told as they are; a joint has a part.

    The model provider is a stand-in: the gateway holds the models.
    """
    screw = await _screw_of(episodes)
    turned = _Turned(_TURNS["down"])

    def screws(cover_mm: float, base_mm: float) -> dict[str, Any]:
        holes = [
            (
                turned.hole(_COVER, (x, 0, 10), diameter_mm=cover_mm),
                turned.hole(_BASE, (x, 0, 3), diameter_mm=base_mm),
            )
            for x in (-9.0, 9.0)
        ]
        return _pair(*(_screw(screw["part_id"], *each) for each in holes))

    async with coder_at_work(
        episodes, number=_NUMBER, plan=lambda planner: _plan(planner, screw)
    ) as coder:
        for cover_mm, base_mm in ((4.02, 4.0), (4.0, 4.02)):
            script = turned.script(cover_mm=cover_mm, base_mm=base_mm)
            judged = await _judged(coder, script, {"pairs": [screws(cover_mm, base_mm)]})
            what = f"holes of {cover_mm} and {base_mm} mm, told as they are"
            found = _told(judged, "pairs[0].fasteners", 2, what=what)
            expect_same([0, 1], found, what=f"fasteners with findings: {what}")
        lost = turned.joint("revolute", (9, 0, 3), _Z) | {"part": "lid"}
        connections = {"pairs": [screws(4, 4)], "joints": [lost]}
        judged = await _judged(coder, turned.script(), connections)
        what = "a joint of a part that is none of the design"
        expect_same([0], _told(judged, "joints", 1, what=what), what=f"findings about {what}")
