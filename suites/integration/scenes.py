"""Models that sessions simulate: MJCF scenes, light and heavy, and one that is broken."""

from __future__ import annotations

from typing import Final

__all__ = ["BROKEN_SCENE", "PART_SCRIPT", "scene"]

BROKEN_SCENE: Final = "<mujoco><worldbody><body><geom type='sphere'/></body></worldbody>"

#: A small plate with a hole, by build123d.
PART_SCRIPT: Final = """\
from build123d import BuildPart, Box, Hole

with BuildPart() as plate:
    Box(30, 20, 4)
    Hole(radius=3)
part = plate.part
"""


def scene(*, boxes: int = 1) -> str:
    """Boxes that fall onto a floor, in a stack; more of them take longer."""
    bodies = "".join(
        f'<body name="box{n}" pos="0 0 {0.1 + 0.12 * n:.2f}"><freejoint/>'
        '<geom type="box" size=".05 .05 .05" density="500"/></body>'
        for n in range(boxes)
    )
    return (
        '<mujoco><option timestep="0.002"/><worldbody>'
        f'<geom type="plane" size="5 5 .1"/>{bodies}</worldbody></mujoco>'
    )
