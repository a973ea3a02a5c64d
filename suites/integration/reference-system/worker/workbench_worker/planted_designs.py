"""Designs mapped wrong on purpose (``workbench_foundation/faults.py``); without a fault nothing here does anything."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from workbench_contract.connections import Drive
from workbench_contract.joints import DesignJoint, JointKind
from workbench_foundation import faults
from workbench_making import drives
from workbench_physics.assembly import Solid
from workbench_worker.pieces import Pieces
from workbench_worker.prices import Looked

_first: dict[str, float] = {}


def mapped(joints: Sequence[DesignJoint], parts: Sequence[Solid]) -> list[DesignJoint]:
    """The joints of a design as they are exported."""
    found = list(joints)
    if faults.on("rigid-joints-dropped"):
        found = [each for each in found if each.kind is not JointKind.RIGID]
    if faults.on("joint-ranges-dropped"):
        found = [each.model_copy(update={"least": None, "most": None}) for each in found]
    if faults.on("joint-axes-turned"):
        found = [
            each.model_copy(update={"axis": tuple(abs(value) for value in each.axis)})
            if each.axis
            else each
            for each in found
        ]
    if faults.on("anchors-of-their-parts"):
        centres = {each.name: each.centre_mm for each in parts}
        found = [
            each.model_copy(
                update={
                    "anchor_mm": tuple(
                        a - b for a, b in zip(each.anchor_mm, centres[each.part], strict=True)
                    )
                }
            )
            for each in found
        ]
    return found


def weighed(parts: Sequence[Solid]) -> list[Solid]:
    """The parts of a design with their densities."""
    if not faults.on("masses-shared"):
        return list(parts)
    mean = sum(each.mass_kg for each in parts) / sum(each.volume_mm3 for each in parts) * 1e9
    return [replace(each, density_kg_m3=mean) for each in parts]


def key_of(key: str, name: str) -> str:
    """By what pieces are kept."""
    return hashlib.sha256(name.encode()).hexdigest() if faults.on("pieces-by-name") else key


def cut(pieces: Pieces) -> Pieces:
    """The pieces of a solid."""
    if faults.on("holes-filled"):
        return [[corner for piece in pieces for corner in piece]]
    return pieces


def most(drive: Drive, torque_n_m: float) -> float:
    """What a drive exerts at most."""
    return torque_n_m if faults.on("pinion-ignored") else drives.most(drive, torque_n_m)


def torque(looked: Looked, part_id: str) -> float:
    """The torque of a part that has one."""
    found = looked.torque_n_m(part_id) or 0.0
    if faults.on("motor-torque-fixed"):
        return 1.0
    if faults.on("motor-torque-of-first-look"):
        return _first.setdefault(part_id, found)
    return found
