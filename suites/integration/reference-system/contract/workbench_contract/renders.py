"""Pictures of a design and videos of runs: what is asked for, and what is seen where.

A picture is looked at along parallel lines. Its camera stands in the direction (cos pitch cos yaw,
cos pitch sin yaw, sin pitch) of ``centre_mm``; to the right is (-sin yaw, cos yaw, 0). Whatever of the
drawing is not its background is the design; light makes the colour of a part darker, and never another.
"""

from __future__ import annotations

from pydantic import Field

from workbench_contract.artifact import Sha256
from workbench_contract.base import Model
from workbench_contract.benchmark import ModelRequest
from workbench_contract.simulation import JOB, Outcome

#: What a coder's design is handed over with, made by the worker; nothing that the agent leaves there stays.
FINAL = "final"
#: There, by the models ``Pictures`` and ``Video``; the latter of a design whose runs left trajectories.
FINAL_PICTURES = f"{FINAL}/renders.json"
FINAL_VIDEO = f"{FINAL}/run.json"
#: Where pictures that were asked for lie in a session.
RENDERS = "renders"

_YAW = Field(default=300.0, ge=-360, le=360, allow_inf_nan=False)
_PITCH = Field(default=25.0, ge=-90, le=90, allow_inf_nan=False)
_COLOUR = Field(pattern=r"^#[0-9a-f]{6}$")


class PreviewRequest(ModelRequest):
    """One picture of what a build123d script leaves, from anywhere."""

    yaw_deg: float = _YAW
    pitch_deg: float = _PITCH


class RenderRequest(ModelRequest):
    """The 24 views of what a build123d script leaves: 8 azimuths from 3 elevations."""


class VideoRequest(Model):
    """A video of a run that left its trajectory.

    Attributes:
        simulation: the job of the simulation.
        run: which of its runs, from 0.
    """

    simulation: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    run: int = Field(default=0, ge=0, lt=100)
    yaw_deg: float = _YAW
    pitch_deg: float = _PITCH
    job_id: str | None = JOB


class Drawing(Model):
    """Where in a picture the design is; what is beside it is scale and legend.

    Attributes:
        centre_mm: what the middle of the drawing shows.
        background: the colour of nothing.
    """

    left_px: int
    top_px: int
    width_px: int
    height_px: int
    mm_per_px: float
    centre_mm: list[float]
    background: str = _COLOUR


class Shown(Model):
    """A part, or a body of a run, and its colour: no two of a picture have the same."""

    name: str
    colour: str = _COLOUR


class View(Model):
    """A picture, a PNG in its session."""

    path: str
    sha256: Sha256
    size_bytes: int
    yaw_deg: float
    pitch_deg: float


class Pictures(Model):
    """Pictures of a design, all of one scale.

    Attributes:
        design_sha256: of the solids that they show, and of nothing else.
        parts: by their ids, as the script leaves them.
        triangles: that they are seen by.
    """

    design_sha256: Sha256
    triangles: int
    width_px: int
    height_px: int
    drawing: Drawing
    parts: list[Shown]
    views: list[View]


class Rendered(Pictures):
    """Pictures that were asked for.

    Attributes:
        from_store: they were made for an earlier request of the same design.
    """

    job_id: str
    model: str
    from_store: bool


class Video(Model):
    """A video of a run, an MP4 in its session.

    Attributes:
        length_s: what it takes to be played, which is what the run took.
        bodies: those that move, as far as they have a shape.
    """

    path: str
    sha256: Sha256
    size_bytes: int
    simulation: str
    run: int
    seed: int
    outcome: Outcome
    reason: str
    frames: int
    length_s: float
    width_px: int
    height_px: int
    yaw_deg: float
    pitch_deg: float
    drawing: Drawing
    bodies: list[Shown]


class Filmed(Video):
    """A video that was asked for; ``from_store`` as of pictures."""

    job_id: str
    from_store: bool
