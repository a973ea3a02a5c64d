"""What a gate found, as the person or model reads it that must correct the file."""

from __future__ import annotations

from enum import StrEnum

from workbench_contract.base import Model


class Stage(StrEnum):
    """The stages of a gate, in their order; the first that finds something is the last to run.

    ``present``: the files are there. ``valid``: each by itself. ``agree``: with each other.
    ``price``: price, weight and zone. ``simulate``: it does what it is for.
    """

    PRESENT = "present"
    VALID = "valid"
    AGREE = "agree"
    PRICE = "price"
    SIMULATE = "simulate"


class Finding(Model):
    """One thing that keeps a file, or a design, from being handed over.

    Attributes:
        file: its name, relative to the session's root.
        where: place in the file, as its reader looks for it: ``line 12``, a heading,
            ``goal_zone.min_mm.x``; empty for the file as a whole.
        found: what stands there, shortened if it is long; one short sentence.
        expected: what has to stand there instead; one short sentence.
    """

    stage: Stage
    file: str
    where: str
    found: str
    expected: str
