"""The end of a bottle, with another process between any two of its steps, or in the middle of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from suites.parity.acts import (
    RICH,
    STEPS,
    approve,
    clean_up,
    ends,
    fresh,
    kept,
    problems,
    resume,
    start,
)
from suites.parity.bottles import look
from suites.parity.launcher import Backend, Launcher
from suites.parity.processes import Act, Process, in_a_process, settle
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-RESUME"),
    pytest.mark.simulated("the tools stay with the test"),
]


def preserve(identity: str) -> Act:
    """Preserve a bottle."""

    def act(_: World, launcher: Launcher, __: Callable[[str], None]) -> Any:
        launcher.preserve(identity)
        return "preserved"

    return act


def resume_and_look_again(identity: str) -> Act:
    """Resume a bottle, and look at it once the test lets it go on."""

    def act(_: World, launcher: Launcher, stop: Callable[[str], None]) -> Any:
        with launcher.resume(identity) as bottle:
            stop("runs")
            return look(bottle, RICH)["env"]

    return act


def start_and_die(sides: Sides, world: World) -> None:
    """A bottle whose launcher was killed while it ran."""
    with in_a_process(sides, world, start) as process:
        process.advance(point="runs")


def at_each_step_of(
    sides: Sides, make: Callable[[], tuple[World, Act]], *, point: str = "runs"
) -> Iterator[tuple[str, World, Process]]:
    """Stop a process before each of its steps behind a point, and at its end: where, its world, and it.

    Args:
        sides: how a launcher is opened.
        make: a world and what is done there, anew for each step.
        point: one of its own; its beginning when that is empty.
    """
    for steps in range(STEPS):
        world, act = make()
        with in_a_process(sides, world, act) as process:
            if point:
                process.advance(point=point)
            at = process.advance(steps=steps)
            yield "through" if at.kind == "done" else f"before {at}", world, process
            if at.kind == "done":
                return


def comes_back(sides: Sides, world: World, identity: str) -> dict[str, tuple[Any, Any]]:
    """Resume a bottle: what is expected of that, and what was found."""
    world.answers.clear()
    RICH.type_in(world)
    launcher = sides.open(world)
    env: dict[str, str] = {}
    with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity) as bottle:
        env = look(bottle, RICH)["env"]
    return {
        "a later resume": ("done", outcome.happened),
        "its environment then": (RICH.env, env),
    }


@pytest.mark.parametrize("what", ["end", "cleanup"])
def test_what_is_preserved_meanwhile_is_kept(there: Sides, backend: Backend, what: str) -> None:
    """Whatever an end has done, or the cleanup of a bottle whose launcher died: a promise is kept.

    Either it was preserved and comes back, or that was refused and it is gone.
    """

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        # A launcher that preserves nothing is not asked to in a process of its own.
        kept(there, fresh(there, world))

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            if what == "end":
                return made, start
            start_and_die(there, made)
            return made, clean_up

        point = "runs" if what == "end" else ""
        for where, left, one in at_each_step_of(there, make, point=point):
            # Once the end is through nothing is recorded of it.
            identity = next(iter(left.recorded()), "dev-0123456789")
            with in_a_process(there, left, preserve(identity)) as two:
                two.advance()
                came_to, preserved = ends(one, two)
            is_kept = preserved == "preserved"
            checks = {
                "preserved, or refused": (
                    True,
                    is_kept or str(preserved).startswith("refused") or preserved,
                ),
                f"that {what}": (
                    True,
                    isinstance(came_to, list) or came_to == "cleaned up" or came_to,
                ),
                "kept, if it was": (is_kept, left.recorded() == [identity]),
                "guests at the end": ([], sorted(left.guests())),
            }
            if is_kept:
                checks |= comes_back(there, left, identity)
            found += problems(f"preserved when the {what} is {where}", checks)
        return {"problems": found}

    name = f"ends/preserved-beside-{what}"
    there.check_side(backend, name, body, expected={"problems": []})


@pytest.mark.covers("PARITY-RESUME", "PARITY-BOTTLE")
def test_who_resumes_while_it_ends_keeps_the_guest(there: Sides, backend: Backend) -> None:
    """Whatever the end has done, the next resume is refused, or its guest is not removed by that end."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            return made, resume(kept(there, made))

        for where, left, one in at_each_step_of(there, make):
            (identity,) = left.recorded()
            with in_a_process(there, left, resume_and_look_again(identity)) as two:
                two.advance(point="runs")
                settle(one)
                settle(two, point="runs")
                runs = two.at.kind == "point"
                listed = there.open(left).active(left.backend)
                came_to, seen = ends(one, two)
            checks = {
                "runs, or is refused": (True, runs or str(seen).startswith("refused") or seen),
                "listed once the end is through": ([identity] if runs else [], listed),
                "its environment meanwhile": (RICH.env if runs else None, seen if runs else None),
                "that end": (True, isinstance(came_to, list) or came_to),
                "guests at the end": ([], sorted(left.guests())),
                **comes_back(there, left, identity),
            }
            found += problems(f"resumed when the end is {where}", checks)
        return {"problems": found}

    there.check_side(backend, "ends/resumed-beside", body, expected={"problems": []})


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.parametrize("launch", ["start", "resume"])
def test_a_cleanup_beside_an_end_takes_nothing(there: Sides, backend: Backend, launch: str) -> None:
    """Whatever the end has done when a cleanup comes: both go through, and what is preserved stays."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            return made, resume(kept(there, made)) if launch == "resume" else start

        for where, left, one in at_each_step_of(there, make):
            before = left.recorded()
            with in_a_process(there, left, clean_up) as two:
                two.advance()
                came_to, cleaned = ends(one, two)
            checks = {
                "that end": (True, isinstance(came_to, list) or came_to),
                "cleanup": ("cleaned up", cleaned),
                "guests at the end": ([], sorted(left.guests())),
                "recorded at the end": (before if launch == "resume" else [], left.recorded()),
            }
            if launch == "resume":
                checks |= comes_back(there, left, before[0])
            found += problems(f"a cleanup when the end is {where}", checks)
        return {"problems": found}

    name = f"ends/cleanup-beside-{launch}"
    there.check_side(backend, name, body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION", "PARITY-CLEANUP")
def test_an_approval_does_not_bring_back_what_ended(there: Sides, backend: Backend) -> None:
    """Its bottle ends while it is under way: a guest that is left is on record, and a cleanup ends it."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for steps in range(STEPS):
            left = fresh(there, world)
            launcher = there.open(left)
            with in_a_process(there, left, start) as ending:
                ending.advance(point="runs")
                (identity,) = left.recorded()
                proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
                with in_a_process(there, left, approve(proposal)) as one:
                    at = one.advance(steps=steps)
                    ending.advance()
                    came_to, approved = ends(ending, one)
            known = left.recorded()
            strays = [name for name in left.guests() if not any(each in name for each in known)]
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            found += problems(
                f"approval before {at}",
                {
                    "that end": (True, isinstance(came_to, list) or came_to),
                    "approval": (
                        True,
                        str(approved).startswith(("applied", "refused")) or approved,
                    ),
                    "guests of no record": ([], strays),
                    "cleanup": ("done", cleaning.happened),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                    "values outside the guest": ({}, RICH.exposed(left)),
                },
            )
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "ends/approved-beside", body, expected={"problems": []})
