"""Whether a design lies within its build zone."""

from __future__ import annotations

from collections.abc import Iterable

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding
from workbench_making.solid import Box

#: Noise of the geometry, and no tolerance: a hundredth of a micrometre is nobody's design.
_EXACT_MM = 1e-5


def around(boxes: Iterable[Box]) -> Box | None:
    """The smallest box around all boxes; None around none."""
    given = tuple(boxes)
    if not given:
        return None
    lows = tuple(zip(*(box.min_mm for box in given), strict=True))
    highs = tuple(zip(*(box.max_mm for box in given), strict=True))
    return Box(
        min_mm=(min(lows[0]), min(lows[1]), min(lows[2])),
        max_mm=(max(highs[0]), max(highs[1]), max(highs[2])),
    )


def outside(
    name: str, box: Box, zone: Box, *, file: str, what: str = "the build zone"
) -> list[Finding]:
    """Each side on which a part leaves the zone; a part that touches its border is inside.

    Args:
        name: of the part.
        box: the part's, in the frame of the zone.
        what: the zone is.
    """
    found = []
    for axis, low, high, least, most in zip(
        "xyz", box.min_mm, box.max_mm, zone.min_mm, zone.max_mm, strict=True
    ):
        if low < least - _EXACT_MM:
            found.append(_beyond(name, f"min_mm.{axis}", low, f"at least {least:g} mm, {what}'s border", file))
        if high > most + _EXACT_MM:
            found.append(_beyond(name, f"max_mm.{axis}", high, f"at most {most:g} mm, {what}'s border", file))
    return found


def _beyond(name: str, where: str, value: float, limit: str, file: str) -> Finding:
    return finding(
        Stage.PRICE,
        file=file,
        where=f"{name}.{where}",
        found=f"{value:.6g} mm",
        expected=limit,
    )
