"""Launchers in processes of their own: killed at any step, or one between two steps of another."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from suites.parity.acts import (
    RICH,
    STEPS,
    approval,
    approve,
    beside,
    clean_up,
    ends,
    fresh,
    kept,
    of_bottles,
    problems,
    readable_by_others,
    resume,
    start,
)
from suites.parity.bottles import images, look
from suites.parity.launcher import Backend, Launcher
from suites.parity.processes import Act, in_a_process
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-CLEANUP", "PARITY-RESUME"),
    pytest.mark.simulated("the tools stay with the test"),
]


def use_again(world: World, number: int) -> None:
    """Let the number of a process that ended be that of one that lives, wherever it was written."""
    word = re.compile(rf"(?<![\w.:+-]){number}(?![\w.:+-])")
    for path in (world.home / ".bot-bottle").rglob("*"):
        text = path.read_text(errors="surrogateescape") if path.is_file() else ""
        if word.search(text):
            path.write_text(word.sub(str(os.getppid() or 1), text), errors="surrogateescape")


def killed_at_each_step(
    sides: Sides, make: Callable[[], tuple[World, Act]], *, number_used_again: bool = False
) -> Iterator[tuple[str, World]]:
    """Every step at which a process can be killed, and the world it leaves."""
    for steps in range(STEPS):
        world, act = make()
        with in_a_process(sides, world, act) as process:
            at = process.advance(steps=steps)
            if at.kind == "done":
                return
            where = f"killed before {at}"
        if number_used_again:
            use_again(world, process.pid)
        yield where, world


@pytest.mark.covers("PARITY-CLEANUP", "PARITY-SECRET-ENV")
def test_a_start_that_is_killed_leaves_nothing(there: Sides, backend: Backend) -> None:
    """Wherever it is killed: no value is left for others to read, and cleanup removes all of it."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for where, left in killed_at_each_step(there, lambda: (fresh(there, world), start)):
            others, known = readable_by_others(left), left.recorded()
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            after, remains = RICH.exposed(left), of_bottles(left, known)
            RICH.type_in(left)
            with (
                left.may_refuse(launcher.errors) as again,
                launcher.start("dev", backend=left.backend) as bottle,
            ):
                env = look(bottle, RICH)["env"]
            found += problems(
                where,
                {
                    "values in files that others may read": ({}, others),
                    "cleanup": ("done", cleaning.happened),
                    "values outside the guest after the cleanup": ({}, after),
                    "files of the bottle after the cleanup": ([], remains),
                    "the next start": ("done", again.happened),
                    "its environment": (RICH.env, env),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                    "bottles that are listed": ([], launcher.active(left.backend)),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/start-killed", body, expected={"problems": []})


def running(world: World) -> list[str]:
    """What guests of a world are called that run."""
    return [name for name, guest in world.guests().items() if guest.is_running]


@pytest.mark.covers("PARITY-BOTTLE")
def test_a_bottle_is_listed_once_its_guest_runs(there: Sides, backend: Backend) -> None:
    """Not before, as long as its start is under way, nor where that was killed."""

    def list_active(world: World, launcher: Launcher, _: Callable[[str], None]) -> Any:
        return launcher.active(world.backend)

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for steps in range(STEPS):
            left = fresh(there, world)
            with in_a_process(there, left, start) as one:
                at = one.advance(steps=steps, point="runs")
                with in_a_process(there, left, list_active) as two:
                    (beside,) = ends(two)
                guests = running(left)
            after = there.open(left).active(left.backend)
            # Of a tool without guests nobody else can tell.
            listings = {"is under way": beside, "was killed": after} if left.guests() else {}
            found += problems(
                f"start before {at}",
                {
                    f"listed though no guest of it runs, when it {when}": (
                        [],
                        [each for each in listed if not any(each in name for name in guests)],
                    )
                    for when, listed in listings.items()
                    # One that waits until the start is through tells later.
                    if listed != "waits"
                },
            )
            if at.kind in ("point", "done"):
                break
        return {"problems": found, "listed at last": len(beside)}

    expected = {"problems": [], "listed at last": 1}
    there.check_side(backend, "processes/listed", body, expected=expected)


def test_a_resume_that_is_killed_loses_nothing(there: Sides, backend: Backend) -> None:
    """Wherever it is killed: record and transcript are there, and the bottle comes back.

    Also when another process has got its number.
    """

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            return made, resume(kept(there, made))

        for where, left in killed_at_each_step(there, make, number_used_again=True):
            others = readable_by_others(left)
            (identity,) = left.recorded()
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            guests, after = sorted(left.guests()), RICH.exposed(left)
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
                    "values in files that others may read": ({}, others),
                    "cleanup": ("done", cleaning.happened),
                    "guests after the cleanup": ([], guests),
                    "values outside the guest after the cleanup": ({}, after),
                    "the next resume": ("done", again.happened),
                    "its environment": (RICH.env, env),
                    "its transcript": ("1\n", transcript.read_text()),
                    "its backend": (left.backend, left.metadata(identity)["backend"]),
                    "guests at the end": ([], sorted(left.guests())),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/resume-killed", body, expected={"problems": []})


def test_a_cleanup_that_is_killed_is_made_up_for(there: Sides, backend: Backend) -> None:
    """Wherever it is killed, the next one removes what was left, and what is preserved stays."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act]:
            made = fresh(there, world)
            preserved.append(kept(there, made))
            with in_a_process(there, made, start) as process:
                process.advance(point="runs")
            dying.extend(each for each in made.recorded() if each not in preserved)
            return made, clean_up

        preserved: list[str] = []
        dying: list[str] = []
        for where, left in killed_at_each_step(there, make):
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            found += problems(
                where,
                {
                    "the next cleanup": ("done", cleaning.happened),
                    "guests at the end": ([], sorted(left.guests())),
                    "files of the bottle that was killed": ([], of_bottles(left, dying)),
                    "bottles that are kept": (preserved[-1:], left.recorded()),
                    "bottles that are listed": ([], launcher.active(left.backend)),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/cleanup-killed", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_an_approval_that_is_killed_leaves_nothing(there: Sides, backend: Backend) -> None:
    """Wherever it is killed, the end of the bottle and a cleanup leave no guest and no value."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for steps in range(STEPS):
            left = fresh(there, world)
            launcher = there.open(left)
            with (
                left.may_refuse(launcher.errors) as ending,
                launcher.start("dev", backend=left.backend) as bottle,
            ):
                identity = bottle.identity
                proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
                with in_a_process(there, left, approve(proposal)) as process:
                    at = process.advance(steps=steps)
                others = readable_by_others(left)
                with left.may_refuse(launcher.errors) as cleaning:
                    launcher.cleanup()
                still = identity in left.recorded()
            with left.may_refuse(launcher.errors) as last:
                launcher.cleanup()
            found += problems(
                f"killed before {at}",
                {
                    "values in files that others may read": ({}, others),
                    "cleanup while it runs": ("done", cleaning.happened),
                    "its record while it runs": (True, still),
                    "its end": (True, ending.happened in ("done", "refused")),
                    "cleanup": ("done", last.happened),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                    "values outside the guest": ({}, RICH.exposed(left)),
                },
            )
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "processes/approval-killed", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_an_approval_that_is_killed_is_applied_or_waits(there: Sides, backend: Backend) -> None:
    """Wherever it is killed: a bottle that comes back has the image, or the proposal can be approved."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        wanted = "done" if own.applies_proposals else "refused"
        for steps in range(STEPS):
            with approval(there, world, steps=steps) as (left, launcher, bottle, proposal, process):
                at = process.at
                process.kill()
                identity = bottle.identity
                launcher.preserve(identity)
                if at.kind == "done":
                    break
            waits = launcher.pending() == [proposal]
            RICH.type_in(left)
            with launcher.resume(identity):
                before = images(left, [identity])
                with left.may_refuse(launcher.errors) as again:
                    launcher.approve(proposal)
                after = images(left, [identity])
            changed = [OTHER_IMAGE] if own.applies_proposals else before
            found += problems(
                f"killed before {at}",
                {
                    "its image": (before if waits else [OTHER_IMAGE], before),
                    "approving it again": (wanted if waits else "refused", again.happened),
                    "image afterwards": (changed, after),
                    "what waits at last": (
                        [] if own.applies_proposals else [proposal],
                        launcher.pending(),
                    ),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/approval-again", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_an_approval_on_a_full_disk_costs_no_record(there: Sides, backend: Backend) -> None:
    """No file can grow any more: record and proposal are as they were, and later all of it works."""

    def approve_there(proposal: str) -> Act:
        def act(_: World, launcher: Launcher, __: Callable[[str], None]) -> Any:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            launcher.approve(proposal)
            return "applied"

        return act

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        # Without variables nothing needs to be written for a guest.
        world.write_bottle("bare", {"image": world.image})
        own = next(side for side in there.backends if side.name == world.backend)
        with launcher.start("bare", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
            proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
            with in_a_process(there, world, approve_there(proposal)) as process:
                process.advance()
            world.errors.clear()
            with world.may_refuse(launcher.errors) as reading:
                record = world.metadata(identity)
            waiting = launcher.pending()
            with world.may_refuse(launcher.errors) as again:
                launcher.approve(proposal)
        with world.may_refuse(launcher.errors) as resuming, launcher.resume(identity):
            pass
        wanted = "done" if own.applies_proposals else "refused"
        return {
            "reading the record": f"{reading.happened} {reading.text}".strip(),
            "recorded backend": reading.happened == "done" and record["backend"] == world.backend,
            "what waits": waiting in ([proposal], []),
            "approving again": again.happened == (wanted if waiting else "refused"),
            "resume": f"{resuming.happened} {resuming.text}".strip(),
        }

    expected = {
        "reading the record": "done",
        "recorded backend": True,
        "what waits": True,
        "approving again": True,
        "resume": "done",
    }
    there.check_side(backend, "processes/full-disk", body, expected=expected)


def test_two_resumes_in_the_same_instant_are_one(there: Sides, backend: Backend) -> None:
    """Whatever one has done when the other comes: one of them runs the bottle, and one is refused."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act, Act]:
            made = fresh(there, world)
            identity = kept(there, made)
            return made, resume(identity), resume(identity)

        for where, left, one, two in beside(there, make):
            running = [each for each in (one, two) if each.at.kind == "point"]
            others = [each.at.what for each in (one, two) if each.at.kind == "done"]
            guests = len(left.guests()) <= 1
            seen = ends(*running)
            found += problems(
                where,
                {
                    "how many run it": (1, len(running)),
                    "how many are refused": (
                        1,
                        sum(str(end).startswith("refused") for end in others),
                    ),
                    "one guest at most": (True, guests),
                    "its environment": ([RICH.env], [each[1]["env"] for each in seen]),
                    "guests at the end": ([], sorted(left.guests())),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/two-resumes", body, expected={"problems": []})


@pytest.mark.parametrize("launch", ["start", "resume"])
def test_a_cleanup_beside_a_launch_takes_nothing(
    there: Sides, backend: Backend, launch: str
) -> None:
    """Whatever a launch has done when a cleanup comes: the bottle runs, and is on record."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act, Act]:
            made = fresh(there, world)
            return made, resume(kept(there, made)) if launch == "resume" else start, clean_up

        for where, left, one, two in beside(there, make):
            listed = there.open(left).active(left.backend)
            records = left.recorded()
            launched, cleaned = ends(one, two)
            is_well = isinstance(launched, list)
            found += problems(
                where,
                {
                    "cleanup": ("cleaned up", cleaned),
                    launch: ("runs", "runs" if is_well else launched),
                    "its environment": (RICH.env, launched[1]["env"] if is_well else None),
                    "listed while it runs": ([launched[0]] if is_well else [], listed),
                    "recorded while it runs": ([launched[0]] if is_well else [], records),
                    "guests at the end": ([], sorted(left.guests())),
                    "bottles that are kept": (launch == "resume", bool(left.recorded())),
                },
            )
        return {"problems": found}

    name = f"processes/{launch}-and-cleanup"
    there.check_side(backend, name, body, expected={"problems": []})


@pytest.mark.parametrize("begun", ["before", "meanwhile"])
def test_a_launcher_that_dies_beside_a_cleanup_is_made_up_for(
    there: Sides, backend: Backend, begun: str
) -> None:
    """Whatever a cleanup has seen when it is killed, no guest is forgotten: the next one finds it."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for steps in range(STEPS):
            left = fresh(there, world)
            with in_a_process(there, left, start) as dying:
                if begun == "before":
                    dying.advance(point="runs")
                with in_a_process(there, left, clean_up) as cleaning:
                    at = cleaning.advance(steps=steps)
                    if begun == "meanwhile":
                        # One that waits for the cleanup is killed while it waits.
                        dying.advance(point="runs")
                    dying.kill()
                    (cleaned,) = ends(cleaning)
            launcher = there.open(left)
            with left.may_refuse(launcher.errors) as again:
                launcher.cleanup()
            found += problems(
                f"killed when a cleanup is before {at}",
                {
                    "that cleanup": ("cleaned up", cleaned),
                    "the next one": ("done", again.happened),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                    "values outside the guest": ({}, RICH.exposed(left)),
                },
            )
            if at.kind == "done":
                break
        return {"problems": found}

    name = f"processes/dies-beside-a-cleanup-{begun}"
    there.check_side(backend, name, body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_a_cleanup_beside_an_approval_takes_nothing(there: Sides, backend: Backend) -> None:
    """Whatever an approval has done when a cleanup comes: it ends as without, and the bottle lives."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        for steps in range(STEPS):
            with approval(there, world, steps=steps) as (left, launcher, bottle, _, one):
                at = one.at
                meanwhile = there.open(left).active(left.backend)
                with in_a_process(there, left, clean_up) as two:
                    two.advance()
                    approved, cleaned = (str(end) for end in ends(one, two))
                wanted = "applied" if own.applies_proposals else "refused"
                checks = {
                    "cleanup": ("cleaned up", cleaned),
                    "approval": (wanted, wanted if approved.startswith(wanted) else approved),
                    "its environment": (RICH.env, look(bottle, RICH)["env"]),
                    "listed meanwhile": ([bottle.identity], meanwhile),
                    "listed": ([bottle.identity], launcher.active(left.backend)),
                    "recorded": ([bottle.identity], left.recorded()),
                }
            found += problems(f"approval before {at}, then a cleanup", checks)
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "processes/approval-and-cleanup", body, expected={"problems": []})


@pytest.mark.covers("PARITY-BOTTLE")
def test_two_starts_in_the_same_instant_are_two(there: Sides, backend: Backend) -> None:
    """Of one name: each has its identity, and both run."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        for where, left, one, two in beside(there, lambda: (fresh(there, world), start, start)):
            listed = there.open(left).active(left.backend)
            came_to = ends(one, two)
            identities = sorted(end[0] for end in came_to if isinstance(end, list))
            found += problems(
                where,
                {
                    "how many run": (2, len(set(identities))),
                    "what is listed": (identities, sorted(listed)),
                    "environments": (
                        [RICH.env] * 2,
                        [end[1]["env"] for end in came_to if isinstance(end, list)],
                    ),
                    "guests at the end": ([], sorted(left.guests())),
                    "records at the end": ([], left.recorded()),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/two-starts", body, expected={"problems": []})


def test_two_cleanups_in_the_same_instant_are_one(there: Sides, backend: Backend) -> None:
    """Both come to their end, and what a launch left is gone."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act, Act]:
            made = fresh(there, world)
            with in_a_process(there, made, start) as process:
                process.advance(point="runs")
            return made, clean_up, clean_up

        for where, left, one, two in beside(there, make):
            found += problems(
                where,
                {
                    "what both come to": (["cleaned up"] * 2, ends(one, two)),
                    "guests": ([], sorted(left.guests())),
                    "records": ([], left.recorded()),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/two-cleanups", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION")
def test_two_approvals_in_the_same_instant_apply_once(there: Sides, backend: Backend) -> None:
    """One is applied, the other is refused, and the bottle lives; or both are refused."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        expected_ends = ["applied", "refused"] if own.applies_proposals else ["refused"] * 2
        for steps in range(STEPS):
            with approval(there, world, steps=steps) as (left, launcher, bottle, proposal, one):
                at = one.at
                with in_a_process(there, left, approve(proposal)) as two:
                    two.advance()
                    came_to = sorted(str(each).partition(":")[0] for each in ends(one, two))
                checks = {
                    "how they end": (expected_ends, came_to),
                    "its environment": (RICH.env, look(bottle, RICH)["env"]),
                    "what waits": (
                        [] if own.applies_proposals else [proposal],
                        launcher.pending(),
                    ),
                }
                if own.applies_proposals:
                    images = sorted(guest.image for guest in left.guests().values())
                    checks["images"] = ([OTHER_IMAGE], images)
                found += problems(f"one before {at}, then the other", checks)
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "processes/two-approvals", body, expected={"problems": []})
