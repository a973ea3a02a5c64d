"""A file of the launcher cannot be written, at any step: a full disk costs one launch and no more."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from suites.parity.acts import (
    RICH,
    STEPS,
    approve,
    clean_up,
    fresh,
    kept,
    of_bottles,
    problems,
    readable_by_others,
    resume,
    start,
)
from suites.parity.bottles import look
from suites.parity.launcher import Backend, Launcher
from suites.parity.processes import Act, in_a_process
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-CLEANUP", "PARITY-RESUME"),
    pytest.mark.library("what it does to files is made to fail"),
    pytest.mark.simulated("the tools stay with the test"),
]


def failing_at_each_file(
    sides: Sides, make: Callable[[], tuple[World, Act]]
) -> Iterator[tuple[str, World, str]]:
    """Every thing done to a file, each failing once: where, the world it leaves, how that ended."""
    for steps in range(1, STEPS):
        world, act = make()
        with in_a_process(sides, world, act) as process:
            at = process.advance(steps=steps - 1) if steps > 1 else process.at
            if at.kind == "done":
                return
            if at.kind != "file":
                continue
            process.fail(errno.ENOSPC)
            end = process.advance()
        yield f"no space for {at}", world, str(end.what)


#: What a step may come to that fails.
_WELL: Final = "done or refused"


def ended(end: str) -> str:
    """How a step ended: well, or as a traceback, with all of its text."""
    return end if end.partition(":")[0].endswith("Error") else _WELL


@pytest.mark.covers("PARITY-CLEANUP", "PARITY-SECRET-ENV")
def test_a_start_without_space_leaves_nothing(there: Sides, backend: Backend) -> None:
    """It is refused, or goes on; no traceback, no guest, no value; the next start is as ever."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for where, left, end in failing_at_each_file(there, lambda: (fresh(there, world), start)):
            others, known = readable_by_others(left), left.recorded()
            guests = [name for name in left.guests() if not any(each in name for each in known)]
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            left.answers.clear()
            RICH.type_in(left)
            remains = of_bottles(left, known)
            with (
                left.may_refuse(launcher.errors) as again,
                launcher.start("dev", backend=left.backend) as bottle,
            ):
                env = look(bottle, RICH)["env"]
            found += problems(
                where,
                {
                    "how it ends": (_WELL, ended(end)),
                    "values in files that others may read": ({}, others),
                    "guests without a record": ([], guests),
                    "cleanup": ("done", cleaning.happened),
                    "files of the bottle after the cleanup": ([], remains),
                    "values outside the guest": ({}, RICH.exposed(left)),
                    "the next start": ("done", again.happened),
                    "its environment": (RICH.env, env),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                },
            )
        return {"problems": found}

    there.check_side(backend, "failing-files/start", body, expected={"problems": []})


def test_a_resume_without_space_loses_nothing(there: Sides, backend: Backend) -> None:
    """It is refused, or goes on; record and transcript are there, and the bottle comes back later."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            return made, resume(kept(there, made))

        for where, left, end in failing_at_each_file(there, make):
            (identity,) = left.recorded()
            others = readable_by_others(left)
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            guests = sorted(left.guests())
            left.answers.clear()
            RICH.type_in(left)
            with (
                left.may_refuse(launcher.errors) as again,
                launcher.resume(identity) as bottle,
            ):
                env = look(bottle, RICH)["env"]
            transcript = left.state / identity / "transcript" / "turns"
            found += problems(
                where,
                {
                    "how it ends": (_WELL, ended(end)),
                    "values in files that others may read": ({}, others),
                    "cleanup": ("done", cleaning.happened),
                    "guests after the cleanup": ([], guests),
                    "values outside the guest": ({}, RICH.exposed(left)),
                    "the next resume": ("done", again.happened),
                    "its environment": (RICH.env, env),
                    "its transcript": ("1\n", transcript.read_text()),
                    "guests at the end": ([], sorted(left.guests())),
                },
            )
        return {"problems": found}

    there.check_side(backend, "failing-files/resume", body, expected={"problems": []})


def test_a_cleanup_without_space_is_made_up_for(there: Sides, backend: Backend) -> None:
    """It is refused, or goes on; what is preserved stays, and the next one removes the rest."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        preserved: list[str] = []
        dying: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            preserved.append(kept(there, made))
            with in_a_process(there, made, start) as process:
                process.advance(point="runs")
            dying.extend(each for each in made.recorded() if each not in preserved)
            return made, clean_up

        for where, left, end in failing_at_each_file(there, make):
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            found += problems(
                where,
                {
                    "how it ends": (_WELL, ended(end)),
                    "the next cleanup": ("done", cleaning.happened),
                    "guests at the end": ([], sorted(left.guests())),
                    "files of the bottle whose launcher died": ([], of_bottles(left, dying)),
                    "bottles that are kept": (preserved[-1:], left.recorded()),
                },
            )
        return {"problems": found}

    there.check_side(backend, "failing-files/cleanup", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_an_approval_without_space_costs_no_bottle(there: Sides, backend: Backend) -> None:
    """It is refused and waits, or is applied; the bottle lives, and a later approval goes through."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        for steps in range(1, STEPS):
            left = fresh(there, world)
            launcher = there.open(left)
            with launcher.start("dev", backend=left.backend) as bottle:
                proposal = launcher.propose(bottle.identity, image=OTHER_IMAGE, justification="gcc")
                with in_a_process(there, left, approve(proposal)) as process:
                    at = process.advance(steps=steps - 1) if steps > 1 else process.at
                    if at.kind == "file":
                        process.fail(errno.ENOSPC)
                    end = str(process.advance().what)
                waiting = launcher.pending()
                env = look(bottle, RICH)["env"]
                with left.may_refuse(launcher.errors) as again:
                    launcher.approve(proposal)
                after = look(bottle, RICH)["env"]
            launcher.cleanup()
            wanted = "done" if own.applies_proposals and waiting else "refused"
            found += problems(
                f"no space for {at}",
                {
                    "how it ends": (_WELL, ended(end)),
                    "what waits": ([] if end == "applied" else [proposal], waiting),
                    "its environment": (RICH.env, env),
                    "a later approval": (wanted, again.happened),
                    "its environment after that": (RICH.env, after),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                    "values outside the guest": ({}, RICH.exposed(left)),
                },
            )
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "failing-files/approval", body, expected={"problems": []})
