"""Whether what is motorised has a motor: each takes a part of the catalogue, that is bought, for its torque.

Names of joints are labels of the script's; imports no geometry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from workbench_contract.connections import Connections, Drive
from workbench_contract.findings import Finding, Stage
from workbench_contract.joints import DesignJoint, JointKind
from workbench_contract.objectives import MovingPart, PartType
from workbench_making.findings import finding, one_of


def check(
    connections: Connections,
    joints: Sequence[DesignJoint],
    moving_parts: Sequence[MovingPart],
    torque_n_m: Callable[[str], float | None],
    *,
    bought: Mapping[str, int] | None,
    file: str,
) -> list[Finding]:
    """All that is wrong with the drives of a design.

    Args:
        moving_parts: of the objectives; empty where there are none.
        torque_n_m: of a part of the catalogue; none of one that moves nothing, or that there is not.
        bought: how many of which part the plan has; none where there is no plan.
        file: that describes the connections.
    """
    moved = {each.name: each for each in joints if each.kind is not JointKind.RIGID}
    types = {each.name: each.type for each in moving_parts}
    found: list[tuple[str, str, str]] = []
    for number, drive in enumerate(connections.drives):
        where = f"drives[{number}]"
        wrong = _wrong(drive, moved, types, torque_n_m(drive.part_id))
        found += [(f"{where}.{key}", told, expected) for key, told, expected in wrong]
    for joint, count in Counter(each.joint for each in connections.drives).items():
        if count > 1:
            found.append(("drives", f"{count} drives of {joint}", "one for each joint"))
    if bought is not None:
        for part_id, count in Counter(each.part_id for each in connections.drives).items():
            planned = bought.get(part_id, 0)
            if planned < count:
                told = f"{count} × {part_id}, of which the plan buys {planned}"
                found.append(("drives", told, "parts of the estimate, a piece for each joint"))
    driven = {each.joint for each in connections.drives}
    found += [
        ("drives", f"nothing that drives {name}", "a part of the catalogue for each motor")
        for name in moved
        if types.get(name) is PartType.MOTOR and name not in driven
    ]
    return [
        finding(Stage.VALID, file=file, where=where, found=told, expected=expected)
        for where, told, expected in found
    ]


def unfastened(
    connections: Connections, joints: Sequence[DesignJoint], *, file: str
) -> list[Finding]:
    """Parts that the script holds together, and nothing does."""
    held = {frozenset(pair.parts) for pair in connections.pairs}
    return [
        finding(
            Stage.VALID,
            file=file,
            where="pairs",
            found=f"no pair of {each.part} and {each.other}, which {each.name} holds together",
            expected="their fasteners, two at least",
        )
        for each in joints
        if each.kind is JointKind.RIGID and frozenset((each.part, each.other)) not in held
    ]


def most(drive: Drive, torque_n_m: float) -> float:
    """What a drive exerts at most: N·m, or N where it moves a rack by its pinion."""
    return torque_n_m if drive.radius_mm is None else torque_n_m / (drive.radius_mm / 1000)


def _wrong(
    drive: Drive,
    moved: Mapping[str, DesignJoint],
    types: Mapping[str, PartType],
    torque_n_m: float | None,
) -> Iterator[tuple[str, str, str]]:
    joint = moved.get(drive.joint)
    if joint is None:
        yield "joint", f"{drive.joint}, no joint of the design that moves", one_of(moved)
    elif (joint.kind is JointKind.PRISMATIC) != (drive.radius_mm is not None):
        slides = joint.kind is JointKind.PRISMATIC
        expected = "the radius of a pinion: it slides" if slides else "none: it turns"
        yield "radius_mm", f"{drive.radius_mm or 'nothing'} for {drive.joint}", expected
    if types.get(drive.joint) is PartType.PASSIVE:
        yield "joint", f"{drive.joint}, which is passive by the objectives", "no drive of it"
    if torque_n_m is None or torque_n_m <= 0:
        found = f"{drive.part_id}, of which the catalogue has no torque"
        yield "part_id", found, "a servo or motor of the catalogue"
