"""Bottles end: they are closed, vanish, or are cleaned up after a crash, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import (
    ENVIRONMENT,
    Guest,
    read_environment,
    script_that_answers,
)
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-BOTTLE")

#: More commands than a launch takes.
_STEPS: Final = 6


def add_foreign_guests(world: World) -> dict[str, Guest]:
    """Guests that the launcher did not start, some with names much like ours."""
    for number, name in enumerate(("my-database", "not-bot-bottle-dev", "bottle", "bot-bottl")):
        world.docker.adopt(name, Guest(image="postgres", labels={"owner": str(number)}))
        world.smolvm.guests[name] = Guest(image="postgres")
    return dict(world.guests())


@pytest.mark.simulated("guests of others are made up")
def test_closing_is_idempotent_and_touches_nothing_else(sides: Sides, backend: Backend) -> None:
    """The guest is gone after the first time, and the second and third time nothing happens."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        foreign = add_foreign_guests(world)
        outcomes = []
        left: list[str] = []
        active: list[str] = []
        with (
            world.may_refuse(launcher.errors) as leaving,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            for _ in range(3):
                with world.may_refuse(launcher.errors) as outcome:
                    bottle.close()
                outcomes.append(outcome.happened)
            left = sorted(world.guests().keys() - foreign.keys())
            active = launcher.active(world.backend)
        return {
            # Leaving the block closes it once more.
            "outcomes": [*outcomes, leaving.happened],
            "left": left,
            "active": active,
            "foreign guests": sorted(world.guests().keys() & foreign.keys()) == sorted(foreign),
        }

    expected = {"outcomes": ["done"] * 4, "left": [], "active": [], "foreign guests": True}
    sides.check_side(backend, "lifecycle/close", body, expected=expected)


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-RESUME")
@pytest.mark.library("a program ends a bottle by its identity, whoever launched it")
def test_closing_again_spares_the_bottle_that_was_resumed(sides: Sides, backend: Backend) -> None:
    """What was closed is over: closed again, it has no say over the guest that is there since."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})
        with launcher.start("dev", backend=world.backend) as old:
            launcher.preserve(old.identity)
        inside: dict[str, str] = {}
        with launcher.resume(old.identity) as bottle:
            with world.may_refuse(launcher.errors) as closing:
                old.close()
            listed = launcher.active(world.backend) == [old.identity]
            with world.may_refuse(launcher.errors):
                inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {
            "GREETING in the bottle that was resumed": inside.get("GREETING"),
            "listed": listed,
            "closing": closing.happened,
        }

    expected = {
        "GREETING in the bottle that was resumed": "hello",
        "listed": True,
        "closing": "done",
    }
    sides.check_side(backend, "lifecycle/closed-again", body, expected=expected)


@pytest.mark.simulated("guests of others are made up")
def test_closing_after_the_guest_vanished(sides: Sides, backend: Backend) -> None:
    """A guest that is gone already is no error at the end, also when a value is what a tool says of that."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {"ONE": "No such container", "TWO": "not found", "THREE": "No", "FOUR": "not"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            world.docker.guests.clear()
            world.smolvm.guests.clear()
        return {"outcome": outcome.happened, "active": launcher.active(world.backend)}

    expected = {"outcome": "done", "active": []}
    sides.check_side(backend, "lifecycle/vanished", body, expected=expected)


def test_nothing_succeeds_in_a_guest_that_is_gone(sides: Sides, backend: Backend) -> None:
    """Whatever is asked of a bottle that was closed is refused or fails, and makes no guest anew."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        source = world.home / "late.txt"
        source.write_text("late", encoding="utf-8")
        answers = script_that_answers("", "", 0)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.close()
            deeds: dict[str, Callable[[], object]] = {
                "exec": lambda: bottle.exec(answers).returncode,
                "exec_agent": lambda: bottle.exec_agent(["sh", "-c", answers], tty=False),
                "cp_in": lambda: bottle.cp_in(source, "/tmp/late.txt"),
            }
            succeeded = []
            for name, deed in deeds.items():
                status: object = None
                with world.may_refuse(launcher.errors) as outcome:
                    status = deed()
                if outcome.happened == "done" and status in (0, None):
                    succeeded.append(name)
                elif outcome.happened not in ("done", "refused"):
                    succeeded.append(f"{name}: {outcome.happened}")
            guests = sorted(world.guests())
        return {"succeeded": succeeded, "guests": guests, "active": launcher.active(world.backend)}

    expected: dict[str, Any] = {"succeeded": [], "guests": [], "active": []}
    sides.check_side(backend, "lifecycle/after-its-end", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("the launcher dies on request")
@pytest.mark.parametrize("step", range(1, _STEPS + 1))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_is_cleaned_up(sides: Sides, backend: Backend, step: int, *, after: bool) -> None:
    """Wherever a launch dies, cleanup removes what it left, secrets included, and only that."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {"TYPED": "?", "PLAIN": "canary-in-the-clear"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        world.answers.append("canary-4711")
        foreign = add_foreign_guests(world)
        world.stub.crash_at(step, after=after)
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            for _ in range(_STEPS):
                bottle.exec(ENVIRONMENT)
        world.stub.revive()
        with world.may_refuse(launcher.errors) as cleaning:
            launcher.cleanup()
        return {
            "launch": outcome.happened,
            "cleanup": cleaning.happened,
            "left": sorted(world.guests().keys() - foreign.keys()),
            "foreign guests": sorted(world.guests().keys() & foreign.keys()) == sorted(foreign),
            "active": launcher.active(world.backend),
            "secrets left in files": [
                text for text in world.readable()["state"] if "canary" in text
            ],
        }

    expected = {
        "launch": "launcher died",
        "cleanup": "done",
        "left": [],
        "foreign guests": True,
        "active": [],
        "secrets left in files": [],
    }
    where = "after" if after else "before"
    sides.check_side(backend, f"lifecycle/crash-{where}-{step}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
def test_cleanup_spares_bottles_that_run(sides: Sides, backend: Backend) -> None:
    """What is not left over is not cleaned up."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})
        with launcher.start("dev", backend=world.backend) as bottle:
            launcher.cleanup()
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {"GREETING": inside.get("GREETING")}

    expected = {"GREETING": "hello"}
    sides.check_side(backend, "lifecycle/cleanup-spares", body, expected=expected)
