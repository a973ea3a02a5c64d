"""Writes the parts file of the catalogue: ``python make_parts.py parts-1.csv``.

Run by hand when a new version of the catalogue is made; the stack reads the file alone. It needs
``bd_warehouse`` installed (for its tables, not its code) and writes the same bytes each time.

- Fasteners and inserts: dimensions by bd_warehouse's tables of the standards. Masses are computed from
  them: shank at pitch diameter, head without its socket; steel 7.85 g/cm³, brass 8.5 g/cm³.
- Bearings: dimensions, loads, speeds and masses by bd_warehouse's tables, which name them by SKF's
  designations (and the maker SKT).
- Servos and motors: `bought.csv` beside this file, nominal values; it says which were compared with a data sheet.
- Unit costs are this catalogue's own, for planning: made from mass and kind by the rules below, and
  no quotation of anybody.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

STEEL_G_MM3 = 7.85e-3
BRASS_G_MM3 = 8.5e-3

#: Threads and lengths (mm) that are kept in stock, of each kind of screw.
SCREWS = {
    "iso4762": ("socket_head_cap", "Socket head cap screw", "hex socket", "8.8"),
    "iso7380_1": ("button_head", "Button head screw", "hex socket", "10.9"),
    "iso10642": ("countersunk_head", "Countersunk head screw", "hex socket", "8.8"),
    "iso4017": ("hex_head", "Hexagon head screw", "hexagon", "8.8"),
}
THREADS = {"M2-0.4": (6, 10), "M2.5-0.45": (6, 12), "M3-0.5": (8, 12, 16, 20), "M4-0.7": (8, 12, 20)}
THREADS |= {"M5-0.8": (10, 16, 25), "M6-1": (12, 20, 30), "M8-1.25": (16, 30, 40)}
THREADS |= {"M10-1.5": (20, 40)}
NUTS = {
    "iso4032": ("hex_nut", "Hexagon nut"),
    "din1587": ("domed_cap_nut", "Domed cap nut"),
}
WASHERS = {"iso7089": ("plain_washer", "Plain washer"), "iso7093": ("plain_washer", "Large washer")}

#: Tiers: from quantity, part of the unit cost.
BY_THE_HUNDRED = ((1, "1"), (100, "0.85"), (1000, "0.70"))
BY_THE_TEN = ((1, "1"), (10, "0.90"), (100, "0.78"))
BY_THE_PIECE = ((1, "1"), (10, "0.95"), (50, "0.88"))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One part, as a line of the file."""

    part_id: str
    category: str
    manufacturer: str
    name: str
    weight_g: float
    cost_usd: float
    tiers: tuple[tuple[int, str], ...]
    source: str
    specs: dict[str, str | float]

    def cells(self) -> list[str]:
        """As text; money to the cent, mass to the milligram."""
        one = cents(Decimal(str(self.cost_usd)))
        costs = ";".join(f"{n}:{cents(one * Decimal(share))}" for n, share in self.tiers)
        specs = ";".join(f"{key}={shown(value)}" for key, value in sorted(self.specs.items()))
        weight = Decimal(str(self.weight_g)).quantize(Decimal("0.001"), ROUND_HALF_UP)
        return [
            *(self.part_id, self.category, self.manufacturer, self.name),
            *(str(one), costs, str(weight), self.source, specs),
        ]


def cents(amount: Decimal) -> Decimal:
    """To the cent, half up, and never nothing."""
    return max(amount.quantize(Decimal("0.01"), ROUND_HALF_UP), Decimal("0.01"))


def shown(value: str | float) -> str:
    """A number without an end of zeros."""
    return value if isinstance(value, str) else f"{value:.6f}".rstrip("0").rstrip(".")


def table(name: str) -> list[dict[str, str]]:
    """A table of bd_warehouse, its names without spaces."""
    spec = importlib.util.find_spec("bd_warehouse")
    assert spec is not None and spec.submodule_search_locations, "install bd_warehouse"
    path = Path(spec.submodule_search_locations[0], "data", f"{name}_parameters.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {(key or "").strip(): (value or "").strip() for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def tables_of(standard: str) -> str:
    release = importlib.metadata.version("bd_warehouse")
    return f"bd_warehouse {release}, table {standard}; mass computed"


def called(standard: str) -> str:
    """`iso7380_1` → `ISO 7380-1`."""
    return f"{standard[:3].upper()} {standard[3:].replace('_', '-')}"


def short(standard: str) -> str:
    return called(standard).replace(" ", "")


def screws() -> Iterator[Row]:
    for standard, (name, title, drive, strength) in SCREWS.items():
        by_size = {row.get("Size") or row[""]: row for row in table(name)}
        for size, lengths in THREADS.items():
            row = by_size.get(size, {})
            if not row.get(f"{standard}:k"):
                continue
            head = {key: float(row[f"{standard}:{key}"] or 0) for key in ("k", "s")}
            for length in lengths:
                if float(row[f"{standard}:short"]) <= length <= float(row[f"{standard}:long"]):
                    yield screw(standard, title, drive, strength, size, length, row, head)


def screw(
    standard: str, title: str, drive: str, strength: str, size: str, length: int,
    row: dict[str, str], head: dict[str, float],
) -> Row:  # fmt: skip
    thread, pitch = size.split("-")
    diameter = float(thread[1:])
    shank_mm2 = math.pi / 4 * (diameter - 0.6495 * float(pitch)) ** 2
    specs: dict[str, str | float] = {
        "thread": thread, "length_mm": length, "drive": drive, "strength_class": strength,
        "material": "zinc-plated steel", "standard": called(standard), "head_height_mm": head["k"],
    }  # fmt: skip
    specs["across_flats_mm" if standard == "iso4017" else "socket_mm"] = head["s"]
    hexagon_mm2 = math.sqrt(3) / 2 * head["s"] ** 2
    threaded = length
    if standard == "iso4017":
        head_mm3 = hexagon_mm2 * head["k"]
    else:
        wide = specs["head_diameter_mm"] = float(row[f"{standard}:dk"])
        socket_mm3 = hexagon_mm2 * float(row[f"{standard}:t"])
        area = math.pi / 4 * wide**2
        if standard == "iso10642":  # a cone, and its head counts as length
            head_mm3 = math.pi / 12 * head["k"] * (wide**2 + wide * diameter + diameter**2)
            threaded = length - head["k"]
        else:
            head_mm3 = area * head["k"] * (0.72 if standard == "iso7380_1" else 1.0)
        head_mm3 -= socket_mm3
    weight_g = STEEL_G_MM3 * (shank_mm2 * threaded + head_mm3)
    return Row(
        part_id=f"{short(standard)}-{thread}X{length}-{strength}",
        category="screw",
        manufacturer=f"any maker to {called(standard)}",
        name=f"{title} {thread} x {length}",
        weight_g=weight_g,
        cost_usd=0.04 + 0.011 * weight_g,
        tiers=BY_THE_HUNDRED,
        source=tables_of(called(standard)),
        specs=specs,
    )


def nuts() -> Iterator[Row]:
    for standard, (name, title) in NUTS.items():
        for row in table(name):
            if row["Size"] not in THREADS or not row.get(f"{standard}:m"):
                continue
            thread, pitch = row["Size"].split("-")
            flats, height = (float(row[f"{standard}:{key}"]) for key in ("s", "m"))
            hole = float(thread[1:]) - 0.6495 * float(pitch)
            volume = (math.sqrt(3) / 2 * flats**2 - math.pi / 4 * hole**2) * height
            specs: dict[str, str | float] = {
                "thread": thread, "across_flats_mm": flats, "height_mm": height,
                "material": "zinc-plated steel", "standard": called(standard),
                "strength_class": "8" if standard == "iso4032" else "6",
            }  # fmt: skip
            if standard == "din1587":  # half a ball on top
                volume += math.pi / 12 * float(row[f"{standard}:dk"]) ** 3 * 0.35
            weight_g = STEEL_G_MM3 * volume
            yield Row(
                part_id=f"{short(standard)}-{thread}",
                category="nut",
                manufacturer=f"any maker to {called(standard)}",
                name=f"{title} {thread}",
                weight_g=weight_g,
                cost_usd=0.03 + 0.012 * weight_g,
                tiers=BY_THE_HUNDRED,
                source=tables_of(called(standard)),
                specs=specs,
            )


def washers() -> Iterator[Row]:
    wanted = {size.split("-")[0] for size in THREADS}
    for standard, (name, title) in WASHERS.items():
        for row in table(name):
            if row["Size"] not in wanted or not row.get(f"{standard}:d1"):
                continue
            inner, outer, thick = (float(row[f"{standard}:{key}"]) for key in ("d1", "d2", "h"))
            weight_g = STEEL_G_MM3 * math.pi / 4 * (outer**2 - inner**2) * thick
            yield Row(
                part_id=f"{short(standard)}-{row['Size']}",
                category="washer",
                manufacturer=f"any maker to {called(standard)}",
                name=f"{title} {row['Size']}",
                weight_g=weight_g,
                cost_usd=0.02 + 0.010 * weight_g,
                tiers=BY_THE_HUNDRED,
                source=tables_of(called(standard)),
                specs={
                    "thread": row["Size"], "bore_mm": inner, "outer_diameter_mm": outer,
                    "thickness_mm": thick, "material": "zinc-plated steel",
                    "standard": called(standard),
                },
            )  # fmt: skip


def inserts() -> Iterator[Row]:
    for row in table("heatset_nut"):
        number = row["McMaster-Carr:part"]
        if not number:
            continue
        thread, pitch, _ = row["Size"].split("-")
        outer, long = (float(row[f"McMaster-Carr:{key}"]) for key in ("s", "m"))
        hole = float(thread[1:]) - 0.6495 * float(pitch)
        weight_g = BRASS_G_MM3 * math.pi / 4 * (outer**2 - hole**2) * long
        yield Row(
            part_id=f"MCMASTER-{number}",
            category="insert",
            manufacturer="McMaster-Carr",
            name=f"Heat-set insert {thread} x {shown(long)}",
            weight_g=weight_g,
            cost_usd=0.18 + 0.02 * weight_g,
            tiers=BY_THE_HUNDRED,
            source=tables_of(f"heat-set nuts, {number}"),
            specs={
                "thread": thread, "length_mm": long, "outer_diameter_mm": outer, "material": "brass",
            },
        )  # fmt: skip


def bearings() -> Iterator[Row]:
    release = importlib.metadata.version("bd_warehouse")
    for kind in ("single_row_deep_groove_ball_bearing", "single_row_capped_deep_groove_ball_bearing"):
        capped = "capped" in kind
        for row in table(kind):
            # An asterisk marks SKF Explorer in the maker's tables; E2 a low-friction design.
            name = row["SKT:Designation"].replace("*", "").strip()
            if not name:
                continue
            bore, outer, width = (float(row[f"SKT:{key}"]) for key in ("d", "D", "B"))
            weight_g = 1000 * float(row["SKT:mass"])
            yield Row(
                part_id=f"SKF-{name}".replace("/", "_"),
                category="bearing",
                manufacturer="SKF",
                name=f"Deep groove ball bearing {name}" + (", capped" if capped else ""),
                weight_g=weight_g,
                cost_usd=2.40 + 0.05 * weight_g + (0.90 if capped else 0) + (1.5 if bore < 5 else 0),
                tiers=BY_THE_TEN,
                source=f"bd_warehouse {release}, {kind.replace('_', ' ')}s",
                specs={
                    "bore_mm": bore, "outer_diameter_mm": outer, "width_mm": width,
                    "dynamic_load_n": 1000 * float(row["SKT:C"]),
                    "static_load_n": 1000 * float(row["SKT:C0"]),
                    "speed_rpm": float(row["SKT:Speed-limit"]),
                },
            )  # fmt: skip


def bought() -> Iterator[Row]:
    with Path(__file__).with_name("bought.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            specs: dict[str, str | float] = {
                key: float(row[key])
                for key in ("torque_n_m", "speed_rpm", "voltage_v", "current_a")
                if row[key]
            }
            yield Row(
                part_id=row["part_id"],
                category=row["category"],
                manufacturer=row["manufacturer"],
                name=row["name"],
                weight_g=float(row["weight_g"]),
                cost_usd=float(row["cost_usd"]),
                tiers=BY_THE_PIECE,
                source=f"nominal values of {row['manufacturer']} {row['model']}",
                specs=specs,
            )


HEADER = """\
# Parts of the catalogue, version 1. Made by catalogue/make_parts.py from bd_warehouse {release} (Apache-2.0;
# tables of fasteners, heat-set nuts and bearings) and from catalogue/bought.csv (nominal values of servos and
# motors). Masses of fasteners are computed from their dimensions. Unit costs are the catalogue's own, for
# planning: they are no quotations. A published version is never edited: a change is a new file.
"""


def main() -> None:
    rows = [*screws(), *nuts(), *washers(), *inserts(), *bearings(), *bought()]
    ids = [row.part_id for row in rows]
    assert len(ids) == len(set(ids)), "two parts with one id"
    with Path(sys.argv[1]).open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER.format(release=importlib.metadata.version("bd_warehouse")))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["part_id", "category", "manufacturer", "name", "unit_cost_usd", "quantity_tiers",
             "weight_g", "source", "specs"]
        )  # fmt: skip
        writer.writerows(row.cells() for row in sorted(rows, key=lambda row: row.part_id))


if __name__ == "__main__":
    main()
