"""The agent, for which a bottle is there: it has the variables of the manifest, and its end is its own."""

from __future__ import annotations

from typing import Any, Final

import pytest

from suites.parity.bottles import OF_THE_HOST, WELL_KNOWN, Rich, look, of_the_manifest
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-BOTTLE"),
    pytest.mark.simulated(
        "it is what reaches the guest that is looked at, and a terminal is made up"
    ),
]


def had_by(world: World, bottle: Bottle, rich: Rich) -> dict[str, Any]:
    """What everybody who runs something in a guest has of the variables of its manifest."""
    had = {f"a script of {user}": look(bottle, rich, user=user) for user in ("node", "root")}
    for tty in (False, True):
        bottle.exec_agent(["true"], tty=tty)
        inside = world.ran()[-1].env
        had["the agent on a terminal" if tty else "the agent"] = {
            **of_the_manifest(inside, rich),
            "came along from the host": sorted(
                name for name, value in inside.items() if value == OF_THE_HOST
            ),
        }
    return had


#: What was done with a bottle before its agent runs.
BEFORE: Final = ("a-start", "an-approval", "a-resume")


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-SECRET-ENV", "PARITY-FORWARDED-ENV")
@pytest.mark.parametrize("before", BEFORE)
def test_the_agent_has_the_variables(sides: Sides, backend: Backend, before: str) -> None:
    """All of the manifest and none of the host, with a terminal and without, and so has a script of root."""
    rich = Rich.marked("dev", "agent")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ |= dict.fromkeys(WELL_KNOWN, OF_THE_HOST)
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            if before == "a-start":
                return had_by(world, bottle, rich)
            if before == "an-approval":
                proposal = launcher.propose(
                    bottle.identity, image=OTHER_IMAGE, justification="more"
                )
                # A backend that cannot apply it refuses, and the bottle lives.
                with world.may_refuse(launcher.errors):
                    launcher.approve(proposal)
                return had_by(world, bottle, rich)
            launcher.preserve(bottle.identity)
        rich.type_in(world)
        with launcher.resume(bottle.identity) as bottle:
            return had_by(world, bottle, rich)

    script = {"env": rich.env, "elsewhere": []}
    agent = {**script, "came along from the host": []}
    expected = {
        "a script of node": script,
        "a script of root": script,
        "the agent": agent,
        "the agent on a terminal": agent,
    }
    sides.check_side(backend, f"agent/variables-after-{before}", body, expected=expected)
