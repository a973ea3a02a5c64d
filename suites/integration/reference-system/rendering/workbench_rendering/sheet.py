"""A picture as a file: what is seen, and below it the scale, from where it is looked, what each colour is."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench_rendering.camera import Camera
from workbench_rendering.painting import BACKGROUND
from workbench_rendering.pieces import Bytes, Colour, Floats

#: Below what is seen.
STRIP_PX = 64
_INK = (20, 20, 20)
_MARGIN_PX = 10
_TEXT_PX = 13
_SWATCH_PX = 10
_SHORTEST_BAR_PX = 40
_NAME_CHARS = 24
_AXES: tuple[tuple[str, Colour], ...] = (
    ("x", (200, 0, 0)),
    ("y", (0, 140, 0)),
    ("z", (0, 0, 200)),
)


def framed(
    seen: Bytes,
    camera: Camera,
    *,
    legend: Sequence[tuple[str, Colour]],
    unit_mm: float,
    said: str = "",
    banner: Colour | None = None,
    edges: Sequence[tuple[Floats, Colour]] = (),
) -> Any:
    """A picture with its strip, as an image of Pillow.

    Args:
        seen: what a camera sees.
        legend: names and their colours; as many as fit are shown.
        unit_mm: what 1 of the pieces' unit is.
        said: one line more.
        banner: colour of the strip's upper edge.
        edges: lines, each two points (2, 3), and their colour.
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width, _ = seen.shape
    image = Image.new("RGB", (width, height + STRIP_PX), BACKGROUND)
    image.paste(Image.fromarray(np.ascontiguousarray(seen)), (0, 0))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(_TEXT_PX)
    for points, colour in edges:
        (x, y), (u, v) = camera.placed(points)
        draw.line([(float(x), float(y)), (float(u), float(v))], fill=colour, width=1)
    draw.rectangle(
        [0, height, width - 1, height + 2], fill=banner if banner is not None else (225, 225, 225)
    )
    row = height + 8
    _scale(draw, font, camera.per_px * unit_mm, (_MARGIN_PX, row), width)
    where = f"yaw {camera.yaw_deg:g}°  pitch {camera.pitch_deg:g}°"
    draw.text((width // 2 - 60, row), where, fill=_INK, font=font)
    _axes(draw, font, camera, (width - 34, height + STRIP_PX // 2))
    _legend(draw, font, legend, (_MARGIN_PX, row + 20), width - 70)
    if said:
        draw.text((_MARGIN_PX, row + 38), said[: width // 7], fill=_INK, font=font)
    return image


def png(image: Any) -> bytes:
    """The file; of the same picture the same bytes."""
    data = io.BytesIO()
    image.save(data, format="PNG", compress_level=6)
    return data.getvalue()


def bar_mm(mm_per_px: float, most_px: int) -> float:
    """How long the scale's bar is: 1, 2 or 5 times a power of ten, and as long as fits."""
    most = mm_per_px * most_px
    power = 10.0 ** math.floor(math.log10(most))
    return max(step * power for step in (1, 2, 5) if step * power <= most)


def _scale(
    draw: Any, font: Any, mm_per_px: float, at: tuple[int, int], width: int
) -> None:
    x, y = at
    length = bar_mm(mm_per_px, max(_SHORTEST_BAR_PX, width // 4))
    end = x + length / mm_per_px
    draw.line([(x, y + 8), (end, y + 8)], fill=_INK, width=2)
    for tick in (x, end):
        draw.line([(tick, y + 4), (tick, y + 12)], fill=_INK, width=1)
    shown = f"{length / 1000:g} m" if length >= 1000 else f"{length:g} mm"
    draw.text((end + 6, y), shown, fill=_INK, font=font)


def _axes(draw: Any, font: Any, camera: Camera, at: tuple[int, int]) -> None:
    """Where x, y and z point; the farthest first, so that the nearest lies above."""
    right, up, towards = camera.axes()
    for axis in np.argsort(towards, kind="stable"):
        name, colour = _AXES[int(axis)]
        end = (at[0] + 20 * float(right[axis]), at[1] - 20 * float(up[axis]))
        draw.line([at, end], fill=colour, width=2)
        draw.text((end[0] - 3, end[1] - 8), name, fill=colour, font=font)


def _legend(
    draw: Any, font: Any, legend: Sequence[tuple[str, Colour]], at: tuple[int, int], width: int
) -> None:
    x, y = at
    for number, (name, colour) in enumerate(legend):
        shown = name if len(name) <= _NAME_CHARS else f"{name[:_NAME_CHARS]}…"
        needed = _SWATCH_PX + 16 + int(draw.textlength(shown, font=font))
        if x + needed > width:
            draw.text((x, y), f"+{len(legend) - number}", fill=_INK, font=font)
            return
        draw.rectangle([x, y + 3, x + _SWATCH_PX, y + 3 + _SWATCH_PX], fill=colour)
        draw.text((x + _SWATCH_PX + 5, y), shown, fill=_INK, font=font)
        x += needed
