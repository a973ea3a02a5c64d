"""Models that sessions simulate: MJCF scenes, light and heavy, and one that is broken."""

from __future__ import annotations

from typing import Final

__all__ = ["BROKEN_SCENE", "EXPLODING_SCENE", "FLYING_SCENE", "PART_SCRIPT", "scene"]

BROKEN_SCENE: Final = "<mujoco><worldbody><body><geom type='sphere'/></body></worldbody>"

#: A body that leaves the scene sideways: gravity is turned, and nothing holds it.
FLYING_SCENE: Final = (
    '<mujoco><option gravity="400 0 0"/><worldbody><body name="rocket" pos="0 0 1"><freejoint/>'
    '<geom type="sphere" size=".1"/></body></worldbody></mujoco>'
)

#: Physics that becomes unstable: a spring far too stiff for the step.
EXPLODING_SCENE: Final = (
    '<mujoco><option timestep="0.01" integrator="Euler"/><worldbody>'
    '<body name="one" pos="0 0 1"><joint type="slide" axis="0 0 1" stiffness="1e9" springref="1"/>'
    '<geom type="sphere" size=".01" density="1"/></body>'
    '<body name="two" pos="0 1 1"><joint type="slide" axis="0 0 1" stiffness="1e9" springref="1"/>'
    '<geom type="sphere" size=".01" density="1"/></body>'
    "</worldbody></mujoco>"
)

#: A small plate with a hole, by build123d.
PART_SCRIPT: Final = """\
from build123d import BuildPart, Box, Hole

with BuildPart() as plate:
    Box(30, 20, 4)
    Hole(radius=3)
part = plate.part
"""


def scene(
    *, boxes: int = 1, name: str = "box", timestep_s: float = 0.002, gap_m: float = 0.02
) -> str:
    """Boxes that fall onto a floor, in a stack; more of them take longer.

    Args:
        boxes: how many.
        name: of each, before its number.
        timestep_s: of the physics.
        gap_m: between two of them, at the beginning.
    """
    bodies = "".join(
        f'<body name="{name}{n}" pos="0 0 {0.1 + (0.1 + gap_m) * n:.2f}"><freejoint/>'
        '<geom type="box" size=".05 .05 .05" density="500"/></body>'
        for n in range(boxes)
    )
    return (
        f'<mujoco><option timestep="{timestep_s}"/><worldbody>'
        f'<geom type="plane" size="5 5 .1"/>{bodies}</worldbody></mujoco>'
    )
