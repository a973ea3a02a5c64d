"""Proposals that come in the same instant, by two processes: each is one of its own, and none is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from suites.parity.acts import (
    RICH,
    STEPS,
    approval,
    approve,
    beside,
    ends,
    fresh,
    kept,
    problems,
)
from suites.parity.bottles import images, look
from suites.parity.launcher import Backend, Launcher
from suites.parity.processes import Act, in_a_process
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, THIRD_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-REMEDIATION"),
    pytest.mark.simulated("the tools stay with the test"),
]

#: What the first and the second of two proposals ask for.
IMAGES: Final = (OTHER_IMAGE, THIRD_IMAGE)


def propose(identity: str, image: str, justification: str) -> Act:
    """Queue a proposal; its id."""

    def act(_: World, launcher: Launcher, __: Callable[[str], None]) -> Any:
        return launcher.propose(identity, image=image, justification=justification)

    return act


def is_kept(world: World, text: str) -> bool:
    """Whether a text stands in a file of the home."""
    return any(
        text in path.read_text(errors="surrogateescape")
        for path in (world.home / ".bot-bottle").rglob("*")
        if path.is_file()
    )


def made_of(world: World, identity: str) -> str:
    """What the guests of a bottle that run are made of; nothing for a tool without images."""
    return " and ".join(images(world, [identity]))


def test_two_proposals_in_the_same_instant_are_two(there: Sides, backend: Backend) -> None:
    """Whatever one has done when the other is queued: each has an id of its own, and both wait."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []

        def make() -> tuple[World, Act, Act]:
            made = fresh(there, world)
            identity = kept(there, made)
            one, two = (propose(identity, image, f"it needs what {image} has") for image in IMAGES)
            return made, one, two

        for where, left, one, two in beside(there, make):
            ids = ends(one, two)
            waiting = there.open(left).pending()
            lost = [image for image in IMAGES if not is_kept(left, f"it needs what {image} has")]
            found += problems(
                where,
                {
                    "how many ids": (2, len(set(map(str, ids)))),
                    "proposals whose justification is lost": ([], lost),
                    "what waits": (sorted(map(str, ids)), sorted(waiting)),
                },
            )
        return {"problems": found}

    there.check_side(backend, "processes/two-proposals", body, expected={"problems": []})


def test_a_proposal_beside_an_approval_waits(there: Sides, backend: Backend) -> None:
    """Whatever an approval has done when another proposal is queued: that one waits, and is not lost."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        for steps in range(STEPS):
            with approval(there, world, steps=steps) as (left, launcher, bottle, proposal, one):
                at = one.at
                act = propose(bottle.identity, THIRD_IMAGE, "it needs more")
                with in_a_process(there, left, act) as two:
                    two.advance()
                    approved, queued = (str(end) for end in ends(one, two))
                wanted = "applied" if own.applies_proposals else "refused"
                checks = {
                    "approval": (wanted, wanted if approved.startswith(wanted) else approved),
                    "what waits": (
                        sorted({queued} if own.applies_proposals else {queued, proposal}),
                        sorted(launcher.pending()),
                    ),
                    "its justification is kept": (True, is_kept(left, "it needs more")),
                    "its environment": (RICH.env, look(bottle, RICH)["env"]),
                }
            found += problems(f"approval before {at}, then a proposal", checks)
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "processes/proposal-and-approval", body, expected={"problems": []})


@pytest.mark.covers("PARITY-REMEDIATION", "PARITY-RESUME")
def test_two_changes_in_the_same_instant_agree(there: Sides, backend: Backend) -> None:
    """Two proposals of one bottle are approved: what was applied last runs, and is what comes back."""

    def body(world: World, _: Launcher) -> dict[str, Any]:
        found: list[str] = []
        own = next(side for side in there.backends if side.name == world.backend)
        wanted = "applied" if own.applies_proposals else "refused"
        for steps in range(STEPS):
            left = fresh(there, world)
            launcher = there.open(left)
            with launcher.start("dev", backend=left.backend) as bottle:
                identity = bottle.identity
                launcher.preserve(identity)
                waiting = [
                    launcher.propose(identity, image=image, justification="gcc") for image in IMAGES
                ]
                with in_a_process(there, left, approve(waiting[0])) as one:
                    at = one.advance(steps=steps)
                    with in_a_process(there, left, approve(waiting[1])) as two:
                        two.advance()
                        came_to = [str(end).partition(":")[0] for end in ends(one, two)]
                refused = [
                    each for each, end in zip(waiting, came_to, strict=True) if end != "applied"
                ]
                still = launcher.pending()
                before, env = made_of(left, identity), look(bottle, RICH)["env"]
            # One that is under way may be a reason to refuse the other.
            is_well = came_to == [wanted] * 2 or (
                at.kind != "done"
                and own.applies_proposals
                and sorted(came_to) == ["applied", "refused"]
            )
            applied = [
                image for image, end in zip(IMAGES, came_to, strict=True) if end == "applied"
            ]
            is_of_those = before in (applied or [left.image]) or not before
            RICH.type_in(left)
            after = None
            with left.may_refuse(launcher.errors) as again, launcher.resume(identity):
                after = made_of(left, identity)
            found += problems(
                f"one before {at}, then the other",
                {
                    "how they end": ([wanted] * 2, [wanted] * 2 if is_well else came_to),
                    "what waits": (sorted(refused), sorted(still)),
                    "its environment": (RICH.env, env),
                    "the next resume": ("done", again.happened),
                    "an image that was not applied": ("", "" if is_of_those else before),
                    "image of the guest that is resumed": (before, after),
                },
            )
            if at.kind == "done":
                break
        return {"problems": found}

    there.check_side(backend, "processes/two-changes", body, expected={"problems": []})
