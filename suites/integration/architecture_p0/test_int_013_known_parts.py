"""INT-013: parts of well-known standards and makes are what those say of them."""

from __future__ import annotations

import math
import re
from typing import Final

import pytest

from harness_core.doubles.http import HttpClient
from suites.integration.cataloguing import Catalogue

pytestmark = [pytest.mark.covers("INT-013"), pytest.mark.integration_p0]

#: The most candidates of a page.
_LIMIT: Final = 25

#: What standards say of parts, mm: in a part's name or id, and in its category.
_STANDARD: Final = {
    ("screw", "4762", "M3"): {"head_diameter_mm": 5.5, "socket_mm": 2.5},
    ("screw", "4762", "M4"): {"head_diameter_mm": 7, "socket_mm": 3},
    ("screw", "4762", "M5"): {"head_diameter_mm": 8.5, "socket_mm": 4},
    ("screw", "4762", "M6"): {"head_diameter_mm": 10, "socket_mm": 5},
    ("screw", "4762", "M8"): {"head_diameter_mm": 13, "socket_mm": 6},
    ("nut", "4032", "M3"): {"across_flats_mm": 5.5},
    ("nut", "4032", "M4"): {"across_flats_mm": 7},
    ("nut", "4032", "M5"): {"across_flats_mm": 8},
    ("nut", "4032", "M6"): {"across_flats_mm": 10},
    ("nut", "4032", "M8"): {"across_flats_mm": 13},
    ("washer", "7089", "M3"): {"bore_mm": 3.2, "outer_diameter_mm": 7},
    ("washer", "7089", "M4"): {"bore_mm": 4.3, "outer_diameter_mm": 9},
    ("washer", "7089", "M5"): {"bore_mm": 5.3, "outer_diameter_mm": 10},
    ("washer", "7089", "M6"): {"bore_mm": 6.4, "outer_diameter_mm": 12},
    ("washer", "7089", "M8"): {"bore_mm": 8.4, "outer_diameter_mm": 16},
    ("bearing", "608", ""): {"bore_mm": 8, "outer_diameter_mm": 22, "width_mm": 7},
    ("bearing", "625", ""): {"bore_mm": 5, "outer_diameter_mm": 16, "width_mm": 5},
    ("bearing", "6000", ""): {"bore_mm": 10, "outer_diameter_mm": 26, "width_mm": 8},
    ("bearing", "6200", ""): {"bore_mm": 10, "outer_diameter_mm": 30, "width_mm": 9},
}
#: What else they and makers say, where it is said: least and most of it; mm, and N of loads.
_IF_SAID: Final = {
    **{("screw", "4762", f"M{mm}"): {"head_height_mm": (0.95 * mm, 1.05 * mm)} for mm in (3, 4, 5, 6, 8)},
    ("bearing", "608", ""): {"dynamic_load_n": (3_000, 3_700), "static_load_n": (1_250, 1_500)},
    ("bearing", "6000", ""): {"dynamic_load_n": (4_300, 5_200), "static_load_n": (1_800, 2_100)},
    ("bearing", "6200", ""): {"dynamic_load_n": (4_900, 5_700), "static_load_n": (2_200, 2_700)},
}  # fmt: skip
#: Of steel, g in a mm3, and of what is much heavier than any part's material.
_STEEL, _HEAVY = 0.00785, 0.0095


async def test_int_013_parts_are_what_they_are_called(controller: HttpClient) -> None:
    """Parts of a standard have its dimensions within 5 %; a washer and a screw weigh what steel of their size weighs.

    Which parts there are is the catalogue's choice, but some are.
    """
    catalogue = Catalogue(controller)
    parts = await catalogue.walk(limit=_LIMIT)
    met = set()
    for part in parts:
        words = {*part["name"].replace("x", " ").split(), *part["part_id"].split("-")}
        called = part["name"] + part["part_id"] + str(part["specs"].get("standard", ""))
        thread = str(part["specs"].get("thread", ""))
        for (category, standard, size), dimensions in _STANDARD.items():
            named = standard in words if category == "bearing" else standard in called
            if category == part["category"] and named and thread == size:
                met.add(category)
                # A knurled head is a little wider than a plain one.
                wide = {key: pytest.approx(mm, rel=0.05) for key, mm in dimensions.items()}
                found = {key: part["specs"].get(key) for key in dimensions}
                assert wide == found, f"expected mm of {part['part_id']} by its standard: {found}"
                for key, (least, most) in _IF_SAID.get((category, standard, size), {}).items():
                    value = part["specs"].get(key, least)
                    assert least <= value <= most, (
                        f"expected {key} of {least} to {most} of {part['part_id']}, found {value}"
                    )
    lacking = {"screw", "nut", "washer", "bearing"} - met
    assert not lacking, f"expected parts of well-known standards of the categories {lacking}"
    for part in parts:
        specs, weight = part["specs"], part["weight_g"]
        if part["category"] == "washer" and {*_WASHER} <= {*specs}:
            bore, outer, thick = (specs[key] for key in _WASHER)
            steel = math.pi / 4 * (outer**2 - bore**2) * thick * _STEEL
            near = weight == pytest.approx(steel, rel=0.2)
            assert near, f"expected {steel:.3f} g of steel for {part}"
        if part["category"] == "screw" and "length_mm" in specs:
            thread = float(str(specs["thread"]).removeprefix("M").partition("x")[0])
            most = math.pi / 4 * thread**2 * specs["length_mm"] + _HEAD * thread**3
            heavy = most * _HEAVY
            assert weight < heavy, f"expected a screw of less than {heavy:.2f} g, found {part}"


#: Word of a servo's or motor's name → least and most of its torque in N·m, its speed without load in rpm, and
#: its mass in g, by the data sheets of its makers: at any voltage that they name.
_DATA_SHEETS: Final[dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]]] = {
    "SG90": ((0.11, 0.25), (80, 130), (8, 15)),
    "MG90S": ((0.16, 0.28), (80, 130), (12, 15)),
    "MG995": ((0.8, 1.2), (45, 70), (50, 65)),
    "MG996R": ((0.9, 1.3), (55, 75), (50, 65)),
    "DS3218": ((1.7, 2.3), (55, 75), (55, 68)),
    "S3003": ((0.3, 0.42), (40, 56), (35, 46)),
    "HS-55": ((0.1, 0.14), (55, 75), (7, 9)),
    "HS-311": ((0.28, 0.38), (48, 70), (40, 46)),
    "HS-422": ((0.31, 0.42), (45, 65), (43, 48)),
    "HS-645MG": ((0.73, 0.97), (40, 52), (53, 58)),
    "HS-805BB": ((1.9, 2.5), (50, 73), (145, 160)),
    "LX-16A": ((1.3, 1.8), (50, 70), (48, 56)),
    "XL-320": ((0.35, 0.42), (105, 120), (16, 18)),
    "AX-12A": ((1.4, 1.6), (55, 63), (52, 56)),
    "MX-28": ((2.2, 3.2), (50, 70), (70, 80)),
    "XL430-W250": ((0.9, 1.6), (45, 65), (56, 59)),
    "XM430-W210": ((2.6, 3.8), (65, 97), (80, 84)),
    "XM430-W350": ((3.7, 5.0), (40, 58), (80, 84)),
    "XM540-W270": ((9.9, 13.0), (27, 38), (160, 168)),
    "28BYJ-48": ((0.02, 0.06), (10, 30), (28, 42)),
    "17HS4401": ((0.38, 0.46), (0, math.inf), (270, 290)),
    "17HS19-2004S1": ((0.55, 0.62), (0, math.inf), (370, 400)),
    "23HS22-2804S": ((1.2, 1.3), (0, math.inf), (650, 750)),
    "23HS30-2804S": ((1.8, 2.0), (0, math.inf), (1000, 1200)),
    # Pololu 37D 50:1, 12 V.
    "4753": ((1.95, 2.15), (190, 210), (185, 215)),
    "37D 50:1": ((1.95, 2.15), (190, 210), (185, 215)),
}  # fmt: skip
#: The fewest of them that a catalogue has.
_WELL_KNOWN: Final = 3


async def test_int_013_servos_and_motors_have_the_values_of_their_data_sheets(
    controller: HttpClient,
) -> None:
    """Well-known ones have the torque, speed and mass that their makers give; none gives more than it takes.

    Each servo has a speed. Which parts there are is the catalogue's choice, but some are well known.
    """
    catalogue = Catalogue(controller)
    known = set()
    moving = [
        part
        for part in await catalogue.walk(limit=_LIMIT)
        if part["category"] in {"servo", "motor"}
    ]
    for part in moving:
        specs, part_id = part["specs"], part["part_id"]
        torque = specs["torque_n_m"]
        speeds = [value for key, value in specs.items() if key.startswith("speed")]
        assert speeds or part["category"] == "motor", f"expected the speed of a servo, found {part}"
        for model, (torques, rpms, grams) in _DATA_SHEETS.items():
            if not re.search(rf"(?<!\w){re.escape(model)}(?!\w)", f"{part['name']} {part_id}"):
                continue
            known.add(model)
            rows = [("N·m", torque, torques), ("g", part["weight_g"], grams)]
            rows += [("rpm", specs["speed_rpm"], rpms)] if "speed_rpm" in specs else []
            for unit, found, (least, most) in rows:
                assert least <= found <= most, (
                    f"expected {least} to {most} {unit} of a {model} by its data sheet, found {part}"
                )
        if {"speed_rpm", "voltage_v", "current_a"} <= {*specs}:
            given = torque / 2 * specs["speed_rpm"] / 2 * math.tau / 60
            taken = specs["voltage_v"] * specs["current_a"]
            assert given <= taken, f"expected at most the {taken:.1f} W that it takes, found {part}"
    assert len(known) >= _WELL_KNOWN, (
        f"expected {_WELL_KNOWN} well-known servos or motors, found {sorted(known)} among "
        f"{[part['name'] for part in moving]}"
    )


_WASHER: Final = ("bore_mm", "outer_diameter_mm", "thickness_mm")
#: The largest head of a screw, in cubes of its thread.
_HEAD: Final = 4.0
