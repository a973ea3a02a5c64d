"""Pictures and videos, made in a process that has run none of a session's code.

Everything is imported before the fork: behind the walls there are the system's programs alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from workbench_worker import planted_pictures as planted
from workbench_worker.geometry import ModelError


def render(
    folder: str, names: list[str], target: str, shots: list[tuple[float, float]], size_px: int
) -> dict[str, Any]:
    """Pictures of solids, one for each yaw and pitch, as ``0.png``, ``1.png``, … of a new folder.

    Args:
        folder: with a B-rep file of each, ``part-0.brep``, …
        names: of the solids, in the order of their files.

    Raises:
        ModelError: there is nothing to be seen.
    """
    from workbench_rendering import solids, views
    from workbench_rendering.errors import RenderError
    from workbench_rendering.painting import BACKGROUND
    from workbench_rendering.pieces import hex_of

    paths = [os.path.join(folder, f"part-{number}.brep") for number in range(len(names))]
    try:
        pieces = planted.pieces(solids.read(paths, names))
        found = views.rendered(pieces, shots, size_px=size_px)
    except RenderError as error:
        raise ModelError(f"cannot show the design: {error}") from error
    os.mkdir(target)
    for number, view in enumerate(found):
        _write(os.path.join(target, f"{number}.png"), view.data)
    camera = found[0].camera
    return {
        "width_px": size_px,
        "height_px": size_px,
        "drawing": _drawing(camera, 1.0, hex_of(BACKGROUND)),
        "triangles": sum(len(piece.corners) for piece in pieces),
        "parts": [
            {"name": piece.name or "part", "colour": hex_of(piece.colour)} for piece in pieces
        ],
    }


def film(
    folder: str, run: int, target: str, yaw_deg: float, pitch_deg: float, size_px: int
) -> dict[str, Any]:
    """The video of a run, as ``0.mp4`` of a new folder.

    Args:
        folder: what was kept of the runs.

    Raises:
        ModelError: there is nothing to be seen, or no such run.
    """
    from workbench_rendering import films, video
    from workbench_rendering.errors import RenderError
    from workbench_rendering.painting import BACKGROUND
    from workbench_rendering.pieces import hex_of

    os.mkdir(target)
    try:
        model, take = films.read(folder, run)
        take = planted.take(take)
        made = video.filmed(
            model,
            take,
            os.path.join(target, "0.mp4"),
            yaw_deg=yaw_deg,
            pitch_deg=pitch_deg,
            size_px=size_px,
        )
    except RenderError as error:
        raise ModelError(f"cannot show the run: {error}") from error
    return {
        "seed": take.seed,
        "outcome": take.outcome,
        "reason": take.reason,
        "frames": made.frames,
        "length_s": round(made.length_s, 6),
        "width_px": size_px,
        "height_px": size_px,
        "yaw_deg": yaw_deg,
        "pitch_deg": pitch_deg,
        "drawing": _drawing(made.camera, 1000.0, hex_of(BACKGROUND)),
        "bodies": [{"name": name, "colour": hex_of(colour)} for name, colour in made.legend],
    }


def export(folder: str, names: list[str], target: str) -> dict[str, Any]:
    """The solids as ``model.step``, in a new folder.

    Args:
        folder, names: as of :func:`render`.

    Raises:
        ModelError: it cannot be written.
    """
    from build123d import Compound, export_step, import_brep

    os.mkdir(target)
    shapes = []
    for number, name in enumerate(names):
        shape = import_brep(os.path.join(folder, f"part-{number}.brep"))
        shape.label = name or "part"
        shapes.append(shape)
    whole = shapes[0] if len(shapes) == 1 else Compound(children=shapes)
    try:
        export_step(whole, os.path.join(target, "model.step"), timestamp=_BEGINNING)
    except RuntimeError as error:
        raise ModelError(f"cannot write the design as STEP: {error}") from error
    return {"files": sorted(os.listdir(target))}


#: Of the same design the same bytes, whenever it was exported.
_BEGINNING = "2000-01-01T00:00:00"


def _drawing(camera: Any, unit_mm: float, background: str) -> dict[str, Any]:
    centre: Sequence[float] = camera.centre
    return {
        "left_px": 0,
        "top_px": 0,
        "width_px": camera.width_px,
        "height_px": camera.height_px,
        "mm_per_px": camera.per_px * unit_mm,
        "centre_mm": [value * unit_mm for value in centre],
        "background": background,
    }


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
