"""A record without a backend is from before there were several: it is docker's, whatever is done with it."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich, images, look
from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.world import IMAGE, OTHER_IMAGE, World

pytestmark = pytest.mark.simulated("docker need not be there")

#: How a record names no backend.
_FORMS: Final = ("empty", "left-out")

RICH = Rich.marked("dev", "old")


def make_old(world: World, identity: str, form: str) -> None:
    """Let the record of a bottle be one of before there were several backends."""
    record = world.metadata(identity)
    record["backend"] = ""
    if form == "left-out":
        del record["backend"]
    (world.state / identity / "metadata.json").write_text(json.dumps(record))


def left_by_a_crash(world: World, launcher: Launcher, form: str, *, preserved: bool) -> str:
    """A bottle of docker with an old record, whose launcher died and left its guest; its identity."""
    RICH.write(world)
    RICH.type_in(world)
    with (
        world.may_refuse(launcher.errors),
        launcher.start("dev", backend="docker") as bottle,
    ):
        identity = bottle.identity
        if preserved:
            launcher.preserve(identity)
        make_old(world, identity, form)
        world.stub.crash_at(1)
    world.stub.revive()
    return identity


@pytest.mark.covers("PARITY-REMEDIATION")
@pytest.mark.parametrize("form", _FORMS)
def test_an_old_bottle_is_remediated(sides: Sides, backend: Backend, form: str) -> None:
    """While it runs, docker's handler has its proposal, and says what it says of any bottle of docker."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        RICH.write(world)
        RICH.type_in(world)
        seen: dict[str, Any] = {}
        with launcher.start("dev", backend="docker") as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
            make_old(world, identity, form)
            launcher = sides.open(world)
            proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            seen["outcome"] = outcome.happened
            seen["names docker"] = outcome.happened == "done" or "docker" in outcome.text
            seen["image"] = images(world, [identity])
            seen["env"] = look(bottle, RICH)["env"]
            seen["waits"] = launcher.pending() == [proposal]
        RICH.type_in(world)
        with launcher.resume(identity) as bottle:
            seen["image, resumed"] = images(world, [identity])
            seen["env, resumed"] = look(bottle, RICH)["env"]
        return {**seen, "tools": world.tools_used()}

    applies = any(side.applies_proposals for side in sides.backends if side.name == "docker")
    image = [OTHER_IMAGE if applies else IMAGE]
    expected = {
        "outcome": "done" if applies else "refused",
        "names docker": True,
        "image": image,
        "env": RICH.env,
        "waits": not applies,
        "image, resumed": image,
        "env, resumed": RICH.env,
        "tools": ["docker"],
    }
    sides.check_side(backend, f"old/remediated-{form}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.parametrize("preserved", [True, False], ids=["preserved", "not-preserved"])
@pytest.mark.parametrize("form", _FORMS)
def test_an_old_bottle_is_cleaned_up(
    sides: Sides, backend: Backend, form: str, *, preserved: bool
) -> None:
    """Its launcher died: the container goes, and the record unless it is preserved."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = left_by_a_crash(world, launcher, form, preserved=preserved)
        launcher = sides.open(world)
        with world.may_refuse(launcher.errors) as cleaning:
            launcher.cleanup()
        seen = {
            "cleanup": f"{cleaning.happened} {cleaning.text}".strip(),
            "guests": sorted(world.guests()),
            "is recorded": world.recorded() == [identity],
        }
        env = None
        if preserved:
            RICH.type_in(world)
            with world.may_refuse(launcher.errors), launcher.resume(identity) as bottle:
                env = look(bottle, RICH)["env"]
        return {**seen, "env, resumed": env}

    expected = {
        "cleanup": "done",
        "guests": [],
        "is recorded": preserved,
        "env, resumed": RICH.env if preserved else None,
    }
    how = "preserved" if preserved else "not"
    sides.check_side(backend, f"old/cleaned-up-{form}-{how}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.parametrize("form", _FORMS)
def test_an_old_bottle_stays_as_long_as_docker_is_away(
    sides: Sides, backend: Backend, form: str
) -> None:
    """Without docker a cleanup is refused by its name, and takes no record whose container it cannot see."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = left_by_a_crash(world, launcher, form, preserved=False)
        world.stub.missing = {"docker"}
        launcher = sides.open(world)
        with world.may_refuse(launcher.errors) as without:
            launcher.cleanup()
        kept = world.recorded() == [identity]
        world.stub.missing = set()
        with world.may_refuse(launcher.errors) as later:
            sides.open(world).cleanup()
        return {
            "cleanup without docker": without.happened,
            "names docker": "docker" in without.text,
            "is recorded": kept,
            "cleanup later": later.happened,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": world.recorded(),
        }

    expected = {
        "cleanup without docker": "refused",
        "names docker": True,
        "is recorded": True,
        "cleanup later": "done",
        "guests at the end": [],
        "recorded at the end": [],
    }
    sides.check_side(backend, f"old/docker-away-{form}", body, expected=expected)
