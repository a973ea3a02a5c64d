"""A run as MP4: as long as the run was, from its first state to its last."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench_rendering.camera import Camera, looking
from workbench_rendering.errors import RenderError
from workbench_rendering.films import RATE_HZ, Take
from workbench_rendering.painting import Painter
from workbench_rendering.pieces import Colour, Floats, Piece, Surroundings, around
from workbench_rendering.scenes import Actors
from workbench_rendering.sheet import STRIP_PX, framed

_MM_PER_M = 1000.0
_COLOURS: dict[str, Colour] = {"goal_hit": (0, 150, 60), "timeout": (120, 120, 120)}
_FAILED: Colour = (210, 0, 0)
_TIMESCALE = 90_000
_SAID_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """What a video shows.

    Attributes:
        camera: of every picture; lengths in metres.
        legend: the bodies, each with its colour.
        length_s: of what is played.
    """

    camera: Camera
    legend: list[tuple[str, Colour]]
    frames: int
    length_s: float


def filmed(
    model: Any, take: Take, target: str, *, yaw_deg: float, pitch_deg: float, size_px: int
) -> Video:
    """Write the video of a run.

    Args:
        target: path of the file.
        size_px: width and height, even.

    Raises:
        RenderError: nothing of it can be seen, or it cannot be written.
    """
    actors = Actors(model)
    surroundings = _around(actors, take.states)
    camera = looking(
        surroundings,
        yaw_deg=yaw_deg,
        pitch_deg=pitch_deg,
        width_px=size_px,
        height_px=size_px - STRIP_PX,
    )
    frames = len(take.states)
    length = Fraction(take.simulated_s).limit_denominator(_TIMESCALE) if take.simulated_s > 0 else 0
    rate = Fraction(frames) / length if length else Fraction(RATE_HZ)
    _encoded(_pictures(actors, take, camera, surroundings), target, rate=rate, size_px=size_px)
    return Video(
        camera=camera, legend=actors.legend, frames=frames, length_s=float(frames / rate)
    )


def _around(actors: Actors, states: Floats) -> Surroundings:
    """All places that anything is at, and the zones."""
    corners = []
    for state in states:
        points = [piece.corners.reshape(-1, 3) for piece in actors.at(state)]
        if points:
            joined = np.concatenate(points)
            corners += [joined.min(axis=0), joined.max(axis=0)]
    corners += [point for line, _ in actors.zones() for point in line]
    if not corners:
        return around([])
    # Each point for a triangle of its own.
    points = np.repeat(np.array(corners)[:, None, :], 3, axis=1)
    return around([Piece(name="", corners=points, colour=(0, 0, 0))])


def _pictures(
    actors: Actors, take: Take, camera: Camera, surroundings: Surroundings
) -> Iterator[bytes]:
    last = len(take.states) - 1
    for number, state in enumerate(take.states):
        pieces = actors.at(state)
        seen = Painter([*pieces, *actors.ground(surroundings)]).seen(camera)
        at_s = take.simulated_s * number / last if last else take.simulated_s
        ended = number == last
        said = f"{at_s:.3f} s  seed {take.seed}"
        if ended:
            said = f"{at_s:.3f} s  {take.outcome}: {take.reason}"
        image = framed(
            seen,
            camera,
            legend=actors.legend,
            unit_mm=_MM_PER_M,
            said=said[:_SAID_CHARS],
            banner=_COLOURS.get(take.outcome, _FAILED) if ended else None,
            edges=actors.zones(),
        )
        yield image.tobytes()


def _encoded(pictures: Iterator[bytes], target: str, *, rate: Fraction, size_px: int) -> None:
    import imageio_ffmpeg

    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        *("-v", "error", "-nostdin", "-y"),
        *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size_px}x{size_px}"),
        *("-framerate", f"{rate.numerator}/{rate.denominator}", "-i", "pipe:0"),
        # One thread and nothing about the program: of the same run the same bytes.
        *("-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p"),
        *("-threads", "1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1"),
        *("-video_track_timescale", str(_TIMESCALE), "-movflags", "+faststart", target),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for picture in pictures:
                process.stdin.write(picture)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it says why below
        said = process.stderr.read().decode("utf-8", "replace").strip()
    if process.returncode or not Path(target).exists():
        raise RenderError(f"the video cannot be written: {said[:_SAID_CHARS] or process.returncode}")
