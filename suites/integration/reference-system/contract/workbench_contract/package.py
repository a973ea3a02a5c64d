"""What engineers are given of a benchmark besides its objectives and the sources of its environment.

Made by the worker when the environment is handed over, below ``environment/``: engineers leave it as it is.
"""

from __future__ import annotations

from workbench_contract.base import Model
from workbench_contract.handover import ENVIRONMENT, EnvironmentSolid, HandedFile
from workbench_contract.objectives import (
    Dof,
    PartType,
    Randomization,
    RuntimeJitter,
    StaticRandomization,
)
from workbench_contract.renders import Pictures

PACKAGE = f"{ENVIRONMENT}/package"
#: By the models ``Package``, ``Geometry``, ``MovingParts`` and ``Jitter``, in this order.
INDEX = f"{PACKAGE}/package.json"
GEOMETRY_METADATA = f"{PACKAGE}/geometry.json"
MOVING_PARTS = f"{PACKAGE}/moving_parts.json"
JITTER = f"{PACKAGE}/jitter.json"
VIEWS = f"{PACKAGE}/views"
#: 8 azimuths from 3 elevations.
VIEWS_N = 24


class Geometry(Model):
    """The solids of the environment, as they were measured."""

    solids: list[EnvironmentSolid]


class PartThatMoves(Model):
    """A part that moves, and the one way in which it does."""

    name: str
    type: PartType
    dof: Dof


class MovingParts(Model):
    """The degrees of freedom that the objectives name, in their order."""

    moving_parts: list[PartThatMoves]


class Jitter(Model):
    """How variants and runs differ in where the moved object begins, and how large it is."""

    moved_object: str
    start_mm: list[float]
    static_randomization: StaticRandomization
    runtime_jitter: RuntimeJitter
    randomization: Randomization


class Package(Model):
    """All of it, each file with its digest.

    Attributes:
        pictures: the 24 views of the environment.
    """

    objectives: HandedFile
    geometry: HandedFile
    moving_parts: HandedFile
    jitter: HandedFile
    pictures: Pictures

