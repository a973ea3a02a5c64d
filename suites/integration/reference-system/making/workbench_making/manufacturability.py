"""Can it be made so? One question for all methods, about a shape that its author calls ``file``."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from workbench_contract.findings import Finding
from workbench_making import milling, moulding, overlap, printing, solid
from workbench_making.amounts import volume_mm3
from workbench_making.configuration import Configuration, Method, choose
from workbench_making.samples import sample
from workbench_making.solid import Box

if TYPE_CHECKING:
    from build123d import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a part is to be made.

    Attributes:
        stock_mm: sides of the box that a milled part is cut from.
        draw: along which the halves of a mould part: x, y or z.
    """

    method: str
    material: str
    stock_mm: tuple[float, float, float] | None = None
    draw: str = "z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What pricing needs to know of a part that can be made.

    Attributes:
        wall_mm: the thickest wall of a moulded part, else None.
    """

    volume_mm3: Decimal
    box: Box
    wall_mm: Decimal | None = None


def check(
    shape: Shape[Any], asked: Asked, configuration: Configuration, *, file: str
) -> tuple[Measured | None, list[Finding]]:
    """What a part measures, or all that keeps it from being made.

    A shape that is no closed valid solid is refused whatever the method, and looked at no further.
    """
    _, findings = choose(
        configuration, method=asked.method, material=asked.material, file=file, where="the part"
    )
    part, wrong = solid.check(shape, file=file)
    findings += wrong
    if findings or part is None:
        return None, findings
    points = sample(part)
    findings = list(overlap.check(points, file=file))
    if findings:
        return None, findings
    methods, wall = configuration.methods, None
    match Method(asked.method):
        case Method.CNC:
            assert methods.cnc is not None
            assert methods.cnc.limits is not None
            findings = milling.check(
                part, points, methods.cnc.limits, file=file, stock_mm=asked.stock_mm
            )
        case Method.INJECTION_MOULDING:
            assert methods.injection_moulding is not None
            assert methods.injection_moulding.limits is not None
            limits = methods.injection_moulding.limits
            findings = moulding.check(part, points, limits, file=file, draw=asked.draw)
            wall = Decimal(repr(moulding.wall_mm(points))) if not findings else None
        case Method.PRINT:
            assert methods.print is not None
            assert methods.print.limits is not None
            findings = printing.check(part, points, methods.print.limits, file=file)
    if findings:
        return None, findings
    measured = Measured(volume_mm3=volume_mm3(part.volume), box=solid.box_of(part), wall_mm=wall)
    return measured, []
