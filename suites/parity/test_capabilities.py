"""What `harness subject check` tries first: a bottle comes up, and what its manifest asks of the host."""

from __future__ import annotations

from typing import Any

import pytest

from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers
from suites.parity.world import World


@pytest.mark.covers("PARITY-BOTTLE")
def test_a_bottle_comes_up(sides: Sides, backend: Backend) -> None:
    """A bottle of the simplest manifest starts, and its guest answers."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            return {"answer": bottle.exec(script_that_answers("here", "", 0)).stdout}

    sides.check_side(backend, "capabilities/comes-up", body, expected={"answer": "here"})


@pytest.mark.covers("PARITY-SECRET-ENV")
def test_secrets_are_there(sides: Sides, backend: Backend) -> None:
    """The guest has what was typed for one entry, and what the host has for another."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ["HOST_TOKEN"] = "of-the-host"
        world.answers.append("typed")
        env = {"TYPED": "?say it", "GIVEN": "${HOST_TOKEN}"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {"env": {name: inside[name] for name in env if name in inside}}

    expected = {"env": {"TYPED": "typed", "GIVEN": "of-the-host"}}
    sides.check_side(backend, "capabilities/secrets", body, expected=expected)
