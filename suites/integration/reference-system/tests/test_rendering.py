"""Pictures against what projection says, and videos against the runs that they show."""

from __future__ import annotations

import io
import itertools
import math
from pathlib import Path

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from workbench_rendering import films, video
from workbench_rendering.camera import looking, views
from workbench_rendering.errors import RenderError
from workbench_rendering.pieces import Floats, Piece, around, colour_of
from workbench_rendering.sheet import STRIP_PX, bar_mm
from workbench_rendering.views import rendered

_SIZE_PX = 256
_DRAWN_PX = _SIZE_PX - STRIP_PX
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def _corners(low: tuple[float, ...], high: tuple[float, ...]) -> Floats:
    return np.array(list(itertools.product(*zip(low, high, strict=True))), dtype=np.float64)


def _box(name: str, low: tuple[float, ...], high: tuple[float, ...], place: int) -> Piece:
    points = _corners(low, high)
    triangles = [points[[a, b, c]] for p, q, r, s in _FACES for a, b, c in ((p, q, r), (p, r, s))]
    return Piece(name=name, corners=np.array(triangles), colour=colour_of(place))


def _drawn(data: bytes) -> np.ndarray:
    """What is seen in a picture, without what stands below it."""
    return np.array(Image.open(io.BytesIO(data)).convert("RGB"))[:_DRAWN_PX]


def _hull(points: Floats) -> tuple[float, float, Floats]:
    """Area, outline and centroid of the convex hull of points in a plane."""
    rows = sorted(map(tuple, points))

    def half(rows: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        for x, y in rows:
            while len(found) > 1:
                (a, b), (c, d) = found[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                    break
                found.pop()
            found.append((x, y))
        return found[:-1]

    ring = np.array(half(rows) + half(rows[::-1]))
    x, y = ring.T
    u, v = np.roll(x, -1), np.roll(y, -1)
    cross = x * v - u * y
    area = cross.sum() / 2
    middle = np.array([((x + u) * cross).sum(), ((y + v) * cross).sum()]) / (6 * area)
    return float(area), float(np.hypot(u - x, v - y).sum()), middle


@given(
    low=st.tuples(*[st.floats(-50, 50)] * 3),
    sides=st.tuples(*[st.floats(8, 60)] * 3),
    yaw=st.floats(-360, 360),
    pitch=st.floats(-90, 90),
)
def test_a_silhouette_is_the_projected_solid(
    low: tuple[float, ...], sides: tuple[float, ...], yaw: float, pitch: float
) -> None:
    """Area and middle of what is seen are those of the convex hull of the projected corners."""
    high = tuple(a + b for a, b in zip(low, sides, strict=True))
    [view] = rendered([_box("a", low, high, 0)], [(yaw, pitch)], size_px=_SIZE_PX)
    seen = (_drawn(view.data) != 255).any(axis=2)
    points = _corners(low, high) - (np.array(low) + np.array(high)) / 2
    y, p = math.radians(yaw), math.radians(pitch)
    right = np.array([-math.sin(y), math.cos(y), 0])
    up = np.array([-math.sin(p) * math.cos(y), -math.sin(p) * math.sin(y), math.cos(p)])
    area, outline, middle = _hull(np.column_stack([points @ right, points @ up]) / view.camera.per_px)
    rows, columns = np.nonzero(seen)

    assert abs(seen.sum() - area) <= outline * 0.5 + 4, f"{area} px expected, {seen.sum()} found"
    found = np.array([columns.mean() + 0.5, rows.mean() + 0.5])
    expected = np.array([_SIZE_PX / 2 + middle[0], _DRAWN_PX / 2 - middle[1]])
    assert np.abs(found - expected).max() <= 1.0, f"{expected} expected, {found} found"


def _two() -> list[Piece]:
    return [_box("low", (0, 0, 0), (60, 30, 10), 0), _box("tall", (40, 5, 10), (55, 20, 50), 1)]


def test_24_views_differ_and_are_the_same_each_time() -> None:
    """No two of the 24 are the same picture, and a second time each has the same bytes."""
    one = rendered(_two(), views(), size_px=_SIZE_PX)
    two = rendered(_two(), views(), size_px=_SIZE_PX)

    assert 24 == len({_drawn(view.data).tobytes() for view in one})
    assert [view.data for view in one] == [view.data for view in two]
    assert 8 == len({yaw for yaw, _ in views()})
    assert 3 == len({pitch for _, pitch in views()})


def test_each_part_has_its_colour_and_no_other() -> None:
    """Light makes a colour darker: its channels stay in proportion."""
    for view in rendered(_two(), views(), size_px=_SIZE_PX):
        pixels = np.unique(_drawn(view.data).reshape(-1, 3), axis=0).astype(float)
        coloured = pixels[(pixels != 255).any(axis=1)]
        wanted = np.array([colour_of(0), colour_of(1)], dtype=float)
        shares = coloured / coloured.sum(axis=1, keepdims=True)
        expected = wanted / wanted.sum(axis=1, keepdims=True)
        apart = np.abs(shares[:, None] - expected[None]).max(axis=2).min(axis=1)

        assert apart.max() < 0.01, f"a colour of no part: {coloured[apart.argmax()]}"


def test_a_mirrored_design_has_the_mirrored_picture() -> None:
    """Mirrored at y = 0 it is seen from the other side as in a mirror."""
    mirrored = [
        Piece(name=each.name, corners=each.corners * [1, -1, 1], colour=each.colour)
        for each in _two()
    ]
    for yaw, pitch in views():
        [one] = rendered(_two(), [(yaw, pitch)], size_px=_SIZE_PX)
        [other] = rendered(mirrored, [(-yaw, pitch)], size_px=_SIZE_PX)
        differing = (_drawn(one.data) != _drawn(other.data)[:, ::-1]).any(axis=2).mean()

        assert differing < 0.005, f"{differing:.2%} of the pixels differ at {yaw}, {pitch}"


def test_all_is_seen_however_it_lies() -> None:
    """Nothing reaches the edge of a picture."""
    flat = [_box("plate", (-100, -1, -1), (300, 1, 1), 0)]
    for view in rendered(flat, [*views(), (13, 89), (90, -90)], size_px=_SIZE_PX):
        seen = (_drawn(view.data) != 255).any(axis=2)

        assert not (seen[0].any() or seen[-1].any() or seen[:, 0].any() or seen[:, -1].any())


def test_colours_are_many() -> None:
    """Of as many parts as a design may have no two look the same."""
    assert 200 == len({colour_of(number) for number in range(200)})


@given(st.floats(1e-6, 1e6), st.integers(40, 400))
def test_the_bar_is_a_round_length_that_fits(mm_per_px: float, most_px: int) -> None:
    """1, 2 or 5 times a power of ten, and more than a third of the room that it has."""
    length = bar_mm(mm_per_px, most_px)
    leading = round(length / 10 ** math.floor(math.log10(length * 1.0000001)), 6)

    assert leading in (1, 2, 5)
    assert most_px * 0.39 <= length / mm_per_px <= most_px * 1.000001


@pytest.mark.parametrize(
    "corners",
    [np.zeros((0, 3, 3)), np.zeros((1, 3, 3)), np.full((1, 3, 3), np.nan)],
    ids=["nothing", "a point", "nowhere"],
)
def test_what_cannot_be_seen_is_said(corners: Floats) -> None:
    """There is no empty picture."""
    with pytest.raises(RenderError):
        rendered([Piece(name="a", corners=corners, colour=colour_of(0))], views(), size_px=64)


_SCENE = """
<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 .1"/>
<geom name="workbench/goal" type="box" size=".05 .05 .05" pos=".3 0 .05" group="4"
 contype="0" conaffinity="0"/>
<body name="ball" pos="0 0 .03"><freejoint/><geom type="sphere" size=".03" condim="6"/></body>
<body name="rod" pos="0 .2 .2"><freejoint/><geom type="capsule" size=".01 .05"/></body>
<body name="can" pos="0 -.2 .2"><freejoint/><geom type="cylinder" size=".02 .05"/></body>
<body name="egg" pos="-.2 0 .2"><freejoint/><geom type="ellipsoid" size=".02 .03 .05"/></body>
</worldbody></mujoco>
"""


def _take(folder: Path, steps: int) -> tuple[films.Take, object]:
    model = mujoco.MjModel.from_xml_string(_SCENE)
    data = mujoco.MjData(model)
    data.qvel[0] = 1.0
    states = [data.qpos.copy()]
    for _ in range(steps):
        mujoco.mj_step(model, data)
        states.append(data.qpos.copy())
    rows = films.rows_of(data.time, len(states))
    take = films.Take(
        seed=5,
        outcome="goal_hit",
        reason="it did",
        simulated_s=round(data.time, 6),
        states=np.array([states[row] for row in rows]),
    )
    film = films.Film(str(folder))
    film.scene(model, _SCENE)
    film.add(take)
    film.close()
    return take, states[-1]


def _frames(path: Path) -> tuple[float, list[np.ndarray]]:
    reading = imageio_ffmpeg.read_frames(str(path))
    about = next(reading)
    width, height = about["size"]
    pictures = [np.frombuffer(each, np.uint8).reshape(height, width, 3) for each in reading]
    return float(about["duration"]), pictures


@pytest.mark.parametrize("steps", [1, 7, 333])
def test_a_video_is_as_long_as_its_run(tmp_path: Path, steps: int) -> None:
    """From the first state to the last, however long that takes."""
    take, last = _take(tmp_path, steps)
    model, kept = films.read(str(tmp_path), 0)
    target = tmp_path / "run.mp4"
    made = video.filmed(model, kept, str(target), yaw_deg=-90, pitch_deg=20, size_px=_SIZE_PX)
    length, pictures = _frames(target)

    assert take.simulated_s == pytest.approx(made.length_s, abs=1e-6)
    assert take.simulated_s == pytest.approx(length, abs=0.011)
    assert made.frames == len(pictures)
    assert np.array_equal(last, kept.states[-1])
    colour = np.array(dict(made.legend)["ball"], dtype=float)
    for picture, state in ((pictures[0], kept.states[0]), (pictures[-1], last)):
        drawn = picture[:_DRAWN_PX].astype(float)
        share = drawn / np.maximum(drawn.sum(axis=2, keepdims=True), 1)
        near = np.abs(share - colour / colour.sum()).max(axis=2) < 0.06
        rows, columns = np.nonzero(near & (drawn.sum(axis=2) > 60))
        [(column, row)] = made.camera.placed(np.array([state[:3]]))

        assert len(rows), "the ball is not in the picture"
        assert abs(columns.mean() + 0.5 - column) < 3
        assert abs(rows.mean() + 0.5 - row) < 3


def test_a_video_is_the_same_each_time(tmp_path: Path) -> None:
    """Of the same run the same bytes."""
    take, _ = _take(tmp_path, 60)
    model, _ = films.read(str(tmp_path), 0)
    files = [tmp_path / name for name in ("one.mp4", "two.mp4")]
    for file in files:
        video.filmed(model, take, str(file), yaw_deg=30, pitch_deg=20, size_px=_SIZE_PX)

    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(RenderError, match="run 1"):
        films.read(str(tmp_path), 1)


@given(st.floats(0.001, 600), st.integers(2, 5_000))
def test_frames_are_spread_over_a_run(simulated_s: float, count: int) -> None:
    """The first state, the last, in order, and no more than a video may have."""
    rows = films.rows_of(simulated_s, count)

    assert (0, count - 1) == (rows[0], rows[-1])
    assert rows == sorted(rows)
    assert len(rows) <= 1500


def test_a_camera_shows_lengths_as_they_are() -> None:
    """A length across the view is as many pixels as the scale says, and the middle is in the middle."""
    camera = looking(around(_two()), yaw_deg=0, pitch_deg=0, width_px=200, height_px=100)
    places = camera.placed(np.array([camera.centre, np.array(camera.centre) + [0, 7, 0]]))

    assert [100, 50] == pytest.approx(places[0].tolist())
    assert [100 + 7 / camera.per_px, 50] == pytest.approx(places[1].tolist())
