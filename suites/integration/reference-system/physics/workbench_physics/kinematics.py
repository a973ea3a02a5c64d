"""Which parts of a design move as one, and which move in which: links, and the trees that they are.

A link is parts that are held together. The world is one as well: that of the parts which are held where they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workbench_contract.joints import DesignJoint, JointKind
from workbench_physics.errors import SceneError

#: The link of the world.
WORLD = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """How a link moves in the one that carries it.

    Attributes:
        carrier: number of that link; ``WORLD`` for parts that are held.
        joint: none of a link that is free.
        reversed: whether the part that has the joint is the one that is carried.
    """

    carrier: int
    joint: DesignJoint | None = None
    reversed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Links of a design.

    Attributes:
        links: parts of each, in the order of the design; each link after the one that carries it.
        moves: one for each link.
        held: parts of the world's link.
    """

    links: tuple[tuple[str, ...], ...]
    moves: tuple[Move, ...]
    held: tuple[str, ...]


def mechanism(
    parts: Sequence[str],
    joints: Sequence[DesignJoint],
    *,
    pairs: Iterable[tuple[str, str]] = (),
    grounded: Iterable[str] = (),
) -> Mechanism:
    """Links of parts, each carried by another, or free.

    The first part of the design that is in a chain carries it, unless the world does.

    Args:
        pairs: rigid ones, besides the joints that are.

    Raises:
        SceneError: a joint moves what is held together, or closes a chain, or a name is that of no part.
    """
    pairs, grounded = list(pairs), list(grounded)
    named = {name for pair in pairs for name in pair} | set(grounded)
    named |= {name for each in joints for name in (each.part, each.other)}
    unknown = sorted(named - set(parts))
    if unknown:
        raise SceneError(f"{unknown[0]!r} is no part of the design; there are: {', '.join(parts)}")
    held_by = {part: part for part in parts}

    def link_of(part: str) -> str:
        while held_by[part] != part:
            part = held_by[part]
        return part

    rigid = [(each.part, each.other) for each in joints if each.kind is JointKind.RIGID]
    for one, other in (*rigid, *pairs):
        # The earlier part stands for both.
        first, second = sorted((link_of(one), link_of(other)), key=parts.index)
        held_by[second] = first
    world = {link_of(part) for part in grounded}
    moving = [each for each in joints if each.kind is not JointKind.RIGID]
    for joint in moving:
        if joint.axis is None:
            raise SceneError(f"the joint {joint.name!r} has no axis. Give it one")
    order, moves = _carried(
        list(dict.fromkeys(link_of(part) for part in parts)), world, moving, link_of
    )
    members = {link: tuple(part for part in parts if link_of(part) == link) for link in order}
    return Mechanism(
        links=tuple(members[link] for link in order),
        moves=tuple(moves),
        held=tuple(part for part in parts if link_of(part) in world),
    )


def _carried(
    links: list[str],
    world: set[str],
    moving: Sequence[DesignJoint],
    link_of: Callable[[str], str],
) -> tuple[list[str], list[Move]]:
    """Links in the order in which each is carried, and how; those of the world are not among them."""
    meets: dict[str | None, list[tuple[DesignJoint, str | None]]] = {}

    def end(part: str) -> str | None:
        link = link_of(part)
        return None if link in world else link

    for joint in moving:
        one, other = end(joint.part), end(joint.other)
        if one == other:
            detail = f"the joint {joint.name!r} moves what is held together"
            raise SceneError(f"{detail}. Leave one of both out")
        meets.setdefault(one, []).append((joint, other))
        meets.setdefault(other, []).append((joint, one))
    order: list[str] = []
    moves: list[Move] = []
    seen: set[str | None] = set()
    used: set[str] = set()
    for root in (None, *links):
        if root in seen or root in world:
            continue
        seen.add(root)
        if root is not None:
            order.append(root)
            moves.append(Move(carrier=WORLD))
        waiting = deque([root])
        while waiting:
            at = waiting.popleft()
            for joint, to in meets.get(at, []):
                if joint.name in used:
                    continue
                used.add(joint.name)
                if to in seen or to is None:
                    detail = f"the joint {joint.name!r} closes a chain of joints that move"
                    raise SceneError(f"{detail}, which is not supported. Open the chain")
                seen.add(to)
                order.append(to)
                number = WORLD if at is None else order.index(at)
                moves.append(Move(carrier=number, joint=joint, reversed=end(joint.part) == to))
                waiting.append(to)
    return order, moves
