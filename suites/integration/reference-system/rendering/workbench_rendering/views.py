"""Views of pieces, as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench_rendering.camera import Camera, looking
from workbench_rendering.painting import Painter
from workbench_rendering.pieces import Piece, around
from workbench_rendering.sheet import STRIP_PX, framed, png


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A picture.

    Attributes:
        camera: of what is seen in it, at its top left.
        data: of the PNG.
    """

    camera: Camera
    data: bytes


def rendered(
    pieces: Sequence[Piece], shots: Sequence[tuple[float, float]], *, size_px: int
) -> list[View]:
    """Pictures of pieces in millimetres, one for each yaw and pitch.

    Args:
        size_px: width and height of each, with what stands below it.

    Raises:
        RenderError: there is nothing to be seen.
    """
    surroundings = around(pieces)
    painter = Painter([piece for piece in pieces if len(piece.corners)])
    legend = [(piece.name or "part", piece.colour) for piece in pieces]
    found = []
    for yaw, pitch in shots:
        camera = looking(
            surroundings,
            yaw_deg=yaw,
            pitch_deg=pitch,
            width_px=size_px,
            height_px=size_px - STRIP_PX,
        )
        image = framed(painter.seen(camera), camera, legend=legend, unit_mm=1.0)
        found.append(View(camera=camera, data=png(image)))
    return found
