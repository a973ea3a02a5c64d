"""Pictures and videos as somebody who looks at them sees them, against what projection says.

The contract's camera looks along parallel lines; where a point is in a picture is computed here, and nothing
of it is the product's code.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import subprocess  # lint: allow driver: a player of videos, and nothing of the system
from collections.abc import Mapping, Sequence
from typing import Final

import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from workbench_contract.renders import Drawing, Pictures, Shown, View

from harness_core.base.evidence import Evidence

__all__ = [
    "Solid",
    "box",
    "drawn",
    "expect_pictures",
    "expect_turned_as",
    "expect_view",
    "frames_of",
    "keep_sheet",
    "keep_strip",
    "middle_of",
    "place_of",
]

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Points = NDArray[np.float64]

#: Corners of a convex solid, (n, 3), in mm.
Solid = Points

#: A pixel is in or out by its middle: along an outline one row of them may be either.
_OUTLINE_PX: Final = 1.5
#: Along a plane that is looked at from its edge nothing is before anything.
_ASLANT: Final = 0.01
#: Of a colour's share of red, green and blue.
_TINT: Final = 0.02
#: Of a video, whose colours are coarser than its brightness.
_VIDEO_TINT: Final = 0.07
_DARK: Final = 60


def box(low: Sequence[float], high: Sequence[float]) -> Solid:
    """A box by two of its corners."""
    return np.array(list(itertools.product(*zip(low, high, strict=True))), dtype=np.float64)


def drawn(data: bytes, pictures: Pictures) -> Pixels:
    """What of a picture shows the design.

    Raises:
        AssertionError: it is no PNG of the size that it should have.
    """
    assert data.startswith(b"\x89PNG\r\n\x1a\n"), f"expected a PNG, found {data[:16]!r}"
    image = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    found = (image.shape[1], image.shape[0])
    expected = (pictures.width_px, pictures.height_px)
    assert expected == found, f"expected a picture of {expected} pixels, found {found}"
    return _cut(image, pictures.drawing)


def _cut(image: Pixels, drawing: Drawing) -> Pixels:
    top, left = drawing.top_px, drawing.left_px
    return image[top : top + drawing.height_px, left : left + drawing.width_px]


def place_of(points: Points, drawing: Drawing, *, yaw_deg: float, pitch_deg: float) -> Points:
    """Where points (n, 3), in mm, are in the drawing: (n, 2), columns and rows."""
    yaw, pitch = math.radians(yaw_deg), math.radians(pitch_deg)
    right = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    up = np.array(
        [-math.sin(pitch) * math.cos(yaw), -math.sin(pitch) * math.sin(yaw), math.cos(pitch)]
    )
    away = points - np.array(drawing.centre_mm)
    columns = drawing.width_px / 2 + away @ right / drawing.mm_per_px
    rows = drawing.height_px / 2 - away @ up / drawing.mm_per_px
    return np.column_stack([columns, rows])


def _hull(points: Points) -> Points:
    """The convex hull of points in a plane, anticlockwise."""

    def half(rows: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        for x, y in rows:
            while len(found) > 1:
                (a, b), (c, d) = found[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                    break
                found.pop()
            found.append((x, y))
        return found[:-1]

    rows = sorted(map(tuple, points.tolist()))
    return np.array(half(rows) + half(rows[::-1]))


def _shadow(
    solid: Solid, drawing: Drawing, *, yaw_deg: float, pitch_deg: float
) -> tuple[Mask, float]:
    """The pixels whose middle is within a convex solid, and how long its outline is in pixels."""
    ring = _hull(place_of(solid, drawing, yaw_deg=yaw_deg, pitch_deg=pitch_deg))
    rows, columns = np.mgrid[0 : drawing.height_px, 0 : drawing.width_px] + 0.5
    inside = np.ones(rows.shape, dtype=bool)
    for (a, b), (c, d) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        inside &= (c - a) * (rows - b) - (d - b) * (columns - a) >= 0
    sides = np.linalg.norm(ring - np.roll(ring, -1, axis=0), axis=1)
    return inside, float(sides.sum())


def _seen(picture: Pixels, background: str) -> Mask:
    seen: Mask = (picture != np.array(_colour(background))).any(axis=2)
    return seen


def _colour(text: str) -> tuple[int, int, int]:
    red, green, blue = (int(text[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def expect_view(
    data: bytes, view: View, pictures: Pictures, solids: Mapping[str, Solid], *, what: str
) -> Pixels:
    """Assert that a picture shows these solids: the outline of all, and of each its colour where it is alone.

    Args:
        data: of the PNG.
        view: from where it is looked.
        pictures: of which it is one.
        solids: the parts, by their ids.
        what: it is a picture of.

    Returns:
        What is drawn.
    """
    drawing = pictures.drawing
    picture = drawn(data, pictures)
    seen = _seen(picture, drawing.background)
    where = f"{what} from yaw {view.yaw_deg:g}, pitch {view.pitch_deg:g}"
    place = {"yaw_deg": view.yaw_deg, "pitch_deg": view.pitch_deg}
    shadows = {name: _shadow(solid, drawing, **place) for name, solid in solids.items()}
    expected = np.any([mask for mask, _ in shadows.values()], axis=0)
    outline = sum(length for _, length in shadows.values())
    area = (int(expected.sum()), int(seen.sum()))
    assert abs(area[0] - area[1]) <= _OUTLINE_PX * outline, (
        f"the silhouette of {where}: expected {area[0]} pixels, found {area[1]}"
    )
    differing = int((expected != seen).sum())
    assert differing <= _OUTLINE_PX * outline, (
        f"the silhouette of {where}: expected it where the solid is, found {differing} pixels otherwise"
    )
    expected_middle, middle = middle_of(expected), middle_of(seen)
    assert np.abs(np.subtract(expected_middle, middle)).max() <= _OUTLINE_PX, (
        f"the middle of {where}: expected {expected_middle}, found {middle}"
    )
    _expect_colours(picture, pictures.parts, shadows, where)
    _expect_nearest(picture, pictures.parts, solids, shadows, view, where)
    return picture


def _expect_colours(
    picture: Pixels,
    parts: Sequence[Shown],
    shadows: Mapping[str, tuple[Mask, float]],
    where: str,
) -> None:
    colours = {each.name: _colour(each.colour) for each in parts}
    assert set(shadows) == set(colours), (
        f"the parts of {where}: expected {sorted(shadows)}, found {sorted(colours)}"
    )
    assert len(set(colours.values())) == len(colours), f"two parts of one colour: {colours}"
    for name, (mask, outline) in shadows.items():
        others = [other for key, (other, _) in shadows.items() if key != name]
        alone = mask & ~np.any(others, axis=0) if others else mask
        count = int(alone.sum())
        tinted = int((_of_colour(picture, colours[name], _TINT) & alone).sum())
        assert count - tinted <= _OUTLINE_PX * outline, (
            f"the colour of {name} in {where}: expected {colours[name]} in {count} pixels, "
            f"found it in {tinted}"
        )


def _expect_nearest(
    picture: Pixels,
    parts: Sequence[Shown],
    solids: Mapping[str, Solid],
    shadows: Mapping[str, tuple[Mask, float]],
    view: View,
    where: str,
) -> None:
    """Where two parts are in one place of the picture, the one that is nearer is seen."""
    colours = {each.name: _colour(each.colour) for each in parts}
    yaw, pitch = math.radians(view.yaw_deg), math.radians(view.pitch_deg)
    towards = (math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch))
    for near, far in itertools.permutations(solids, 2):
        if not _is_before(solids[near], solids[far], towards):
            continue
        (mask, outline), (other, _) = shadows[near], shadows[far]
        shared = mask & other
        for name, (third, _) in shadows.items():
            if name not in {near, far}:
                shared &= ~third
        count = int(shared.sum())
        tinted = int((_of_colour(picture, colours[near], _TINT) & shared).sum())
        assert count - tinted <= _OUTLINE_PX * outline, (
            f"{near} is before {far} in {where}: expected its colour in {count} pixels that both are "
            f"in, found it in {tinted}"
        )


def _is_before(near: Solid, far: Solid, towards: Sequence[float]) -> bool:
    """Whether a plane along two axes lies between two solids, and the camera on the first one's side."""
    return any(
        (side > _ASLANT and near[:, axis].min() >= far[:, axis].max())
        or (side < -_ASLANT and near[:, axis].max() <= far[:, axis].min())
        for axis, side in enumerate(towards)
    )


def _of_colour(picture: Pixels, colour: tuple[int, int, int], tint: float) -> Mask:
    """Where a colour is, as bright as may be."""
    values = picture.astype(np.float64)
    total = values.sum(axis=2)
    shares = values / np.maximum(total, 1.0)[..., None]
    wanted = np.array(colour, dtype=np.float64) / max(sum(colour), 1)
    near: Mask = (np.abs(shares - wanted).max(axis=2) <= tint) & (total > _DARK)
    return near


def middle_of(mask: Mask) -> tuple[float, float]:
    """Column and row of the middle of what is seen."""
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return math.nan, math.nan
    return round(float(columns.mean()) + 0.5, 2), round(float(rows.mean()) + 0.5, 2)


def expect_pictures(
    files: Mapping[str, bytes],
    pictures: Pictures,
    solids: Mapping[str, Solid],
    *,
    what: str,
    symmetric: bool = False,
) -> dict[tuple[float, float], Pixels]:
    """Assert that the 24 views are of these solids, and that no two are the same picture.

    Args:
        files: path to bytes.
        pictures: what is said of them.
        solids: the parts, by their ids.
        what: they are pictures of.
        symmetric: it looks the same from several sides.

    Returns:
        What is drawn, by yaw and pitch.
    """
    found = {}
    for view in pictures.views:
        picture = expect_view(files[view.path], view, pictures, solids, what=what)
        found[view.yaw_deg % 360, view.pitch_deg] = picture
    yaws, pitches = ({each[axis] for each in found} for axis in (0, 1))
    shape = (24, 8, 3)
    assert shape == (len(found), len(yaws), len(pitches)), (
        f"views of {what}: expected 24, of 8 azimuths and 3 elevations, found {sorted(found)}"
    )
    different = {picture.tobytes() for picture in found.values()}
    assert symmetric or len(different) == len(found), (
        f"views of {what}: expected {len(found)} different pictures, found {len(different)}"
    )
    return found


def frames_of(
    data: bytes, evidence: Evidence, name: str, *, size_px: tuple[int, int]
) -> tuple[float, list[Pixels]]:
    """How long a video is, in seconds, and its pictures.

    Args:
        data: of the MP4.
        evidence: where it is kept.
        name: it is kept as.
        size_px: width and height that it should have.
    """
    path = evidence.keep(name, data)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-i", str(path)]
    command += ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1"]
    done = subprocess.run(command, capture_output=True, check=False)  # lint: allow driver: a player
    said = done.stderr.decode("utf-8", "replace")
    length = re.search(r"Duration: (\d+):(\d+):(\d+\.\d+)", said)
    sizes = re.search(r"Video: .*?, (\d+)x(\d+)", said)
    assert length, f"expected a video that says how long it is, found {said}"
    assert sizes, f"expected a video that says how large it is, found {said}"
    assert 0 == done.returncode, f"expected a video that can be played, found {said}"
    found = (int(sizes[1]), int(sizes[2]))
    assert size_px == found, f"expected a video of {size_px} pixels, found {found}"
    shape = (-1, size_px[1], size_px[0], 3)
    pictures = list(np.frombuffer(done.stdout, np.uint8).reshape(shape))
    return int(length[1]) * 3600 + int(length[2]) * 60 + float(length[3]), pictures


def expect_at(
    picture: Pixels,
    shown: Shown,
    point_mm: Sequence[float],
    drawing: Drawing,
    *,
    yaw_deg: float,
    pitch_deg: float,
    within_px: float,
    what: str,
) -> None:
    """Assert that a body of a video is where it should be, by the middle of what has its colour."""
    part = _cut(picture, drawing)
    mask = _of_colour(part, _colour(shown.colour), _VIDEO_TINT)
    point = np.array([point_mm], dtype=np.float64)
    [expected] = place_of(point, drawing, yaw_deg=yaw_deg, pitch_deg=pitch_deg).round(1).tolist()
    found = middle_of(mask)
    apart = max(abs(expected[0] - found[0]), abs(expected[1] - found[1]))
    assert apart <= within_px, (
        f"{shown.name} in {what}: expected it at {expected}, found {found} of {int(mask.sum())} pixels"
    )


def expect_turned_as(
    picture: Pixels,
    shown: Shown,
    solid: Solid,
    drawing: Drawing,
    *,
    yaw_deg: float,
    pitch_deg: float,
    what: str,
) -> None:
    """Assert that a body of a video has the outline of a convex solid, as it stands then."""
    mask = _of_colour(_cut(picture, drawing), _colour(shown.colour), _VIDEO_TINT)
    expected, outline = _shadow(solid, drawing, yaw_deg=yaw_deg, pitch_deg=pitch_deg)
    differing = int((mask != expected).sum())
    # A video's colours are as coarse as two pixels, to either side of an outline.
    assert differing <= 2 * _OUTLINE_PX * outline, (
        f"{shown.name} in {what}: expected it in {int(expected.sum())} pixels, found it in "
        f"{int(mask.sum())}, {differing} of both otherwise"
    )


def keep_sheet(evidence: Evidence, name: str, pictures: Sequence[bytes]) -> None:
    """Keep a contact sheet: all pictures side by side, 8 in a row, a quarter of their size."""
    images = [Image.open(io.BytesIO(each)).convert("RGB") for each in pictures]
    _kept(evidence, name, images, columns=8, scale=2)


def keep_strip(
    evidence: Evidence, name: str, pictures: Sequence[Pixels], *, count: int = 6
) -> None:
    """Keep a strip: some pictures of a video, the first and the last among them."""
    rows = [round(step * (len(pictures) - 1) / (count - 1)) for step in range(count)]
    _kept(evidence, name, [Image.fromarray(pictures[row]) for row in rows], columns=count, scale=1)


def _kept(
    evidence: Evidence, name: str, images: Sequence[Image.Image], *, columns: int, scale: int
) -> None:
    width, height = (side // scale for side in images[0].size)
    rows = math.ceil(len(images) / columns)
    sheet = Image.new("RGB", (columns * width, rows * height), (255, 255, 255))
    for number, image in enumerate(images):
        place = (number % columns * width, number // columns * height)
        sheet.paste(image.resize((width, height)), place)
    data = io.BytesIO()
    sheet.save(data, format="PNG")
    evidence.keep(name, data.getvalue())
