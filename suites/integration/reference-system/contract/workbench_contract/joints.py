"""Joints of a design, as its script connects its parts by build123d, and the model that is made of them.

Of two joints that a script connects (``connect_to``) one says how the parts move: a ``RigidJoint`` with another one
holds them together, a ``RevoluteJoint`` or ``LinearJoint`` with a ``RigidJoint`` lets the rigid one's part move in
the other's. All else is refused with the joint's label: other kinds, connected or not; a joint that is connected
to what is no part of the design; a revolute or linear one that is connected to nothing; one whose parts are no
longer where it has put them; two joints that move and have one label; a chain of moving joints that is closed.
A ``RigidJoint`` that is connected to nothing holds nothing.

Two parts are one link as well when they are a rigid pair of ``connections.json``.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from workbench_contract.artifact import Sha256
from workbench_contract.base import Model
from workbench_contract.benchmark import ModelRequest
from workbench_contract.connections import Place
from workbench_contract.files import PATH_CHARS


class JointKind(StrEnum):
    """How one part is held by another."""

    RIGID = "rigid"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"


class DesignJoint(Model):
    """A joint between two parts, in the frame of the assembly, as it is put together.

    Attributes:
        name: label of the joint that moves; of two rigid ones that of the joint which was connected.
        part: that has this joint.
        other: that moves in it.
        anchor_mm: a point on the axis; of a rigid joint where both meet.
        axis: of length 1; none of a rigid joint.
        value: where the joint is as it is put together, by its own scale: degrees or mm.
        least, most: of that scale; none where nothing limits it. A revolute joint that goes all round (360°
            or more) is not limited.
    """

    name: str
    kind: JointKind
    part: str
    other: str
    anchor_mm: Place
    axis: Place | None = None
    value: float = Field(default=0.0, allow_inf_nan=False)
    least: float | None = Field(default=None, allow_inf_nan=False)
    most: float | None = Field(default=None, allow_inf_nan=False)


class ExportRequest(ModelRequest):
    """Write the MJCF model that a design is simulated as.

    Attributes:
        model: a build123d script.
        objectives: as of a simulation: with them the design stands in the benchmark's environment, without
            them above a floor.
    """

    objectives: str | None = Field(default=None, min_length=1, max_length=PATH_CHARS)


class ExportedPart(Model):
    """A body of the model, of the name of its part; its origin is its centre of mass.

    Attributes:
        mass_kg: exactly what the part weighs by material and method.
        pieces: convex ones that it is made of, for contacts.
    """

    name: str
    mass_kg: float
    pieces: int


class ExportedMotor(Model):
    """An actuator of the model, of the name of its joint.

    Attributes:
        torque_n_m: as the catalogue has it for the part.
        most: the limit of the actuator either way, in N·m, or N where the joint slides.
    """

    joint: str
    part_id: str
    catalogue_version: int
    torque_n_m: float
    most: float


class Exported(Model):
    """A file of the session; the same design gives the same bytes.

    Attributes:
        path: ``exports/`` and the script's name, with ``.xml``.
    """

    path: str
    sha256: Sha256
    size_bytes: int
    parts: list[ExportedPart]
    joints: list[DesignJoint]
    motors: list[ExportedMotor]
