"""An approved capability-block proposal goes to the bottle's own backend (PRD 0042, 0039).

A backend that can change the image of a bottle does; one that cannot refuses before it tears
anything down. The adapter says which is which (``applies_proposals``).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich, look
from suites.parity.bottles import images as images_of
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.proposing import by_kind, check_kind, images, lives, of_its_kind, write_bottle
from suites.parity.sides import Sides
from suites.parity.tools.docker import image_environment
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import IMAGE, LACKING, OTHER_IMAGE, THIRD_IMAGE, World

pytestmark = pytest.mark.covers("PARITY-REMEDIATION")

#: More commands than applying a proposal takes.
_STEPS: Final = 8

#: Resumes after an approval; what the first of them forgets shows in the second.
_ROUNDS: Final = 3


@pytest.mark.simulated("guests are counted by image")
def test_an_approved_proposal_goes_to_its_own_backend(sides: Sides, backend: Backend) -> None:
    """It is applied there, or refused there with the bottle untouched; it touches no other tool."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            tools, guests = world.tools_used(), sorted(world.guests())
            proposal = launcher.propose(
                bottle.identity, image=world.other_image, justification="gcc"
            )
            queued = launcher.pending() == [proposal]
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            return {
                "queued": queued,
                "outcome": outcome.happened,
                "says why": outcome.happened == "done" or world.backend in outcome.text,
                "pending": len(launcher.pending()),
                "images": images(world),
                "bottle lives": lives(bottle),
                "guests as before": sorted(world.guests()) == guests,
                "own tools alone": set(world.tools_used()) <= set(tools),
            }

    simulated_guest = backend.tool != "bwrap"
    expected = {
        # A wrong tool, or a bottle that is dead, tells more than what is said about it.
        "queued": True,
        "own tools alone": True,
        "bottle lives": True,
        "outcome": by_kind(backend, applies="done", refuses="refused"),
        "says why": True,
        "pending": by_kind(backend, applies=0, refuses=1),
        "guests as before": True,
    }
    if simulated_guest:
        expected["images"] = [by_kind(backend, applies=OTHER_IMAGE, refuses=IMAGE)]
    seen = of_its_kind(sides, backend, sides.observe("remediation/approve", body))
    kept = {
        name: {k: v for k, v in each.items() if simulated_guest or k != "images"}
        for name, each in seen.items()
        if (name == backend.name) or simulated_guest is (each["images"] != [])
    }
    sides.check_seen(backend, "remediation/approve", kept, expected=expected)


@pytest.mark.simulated("guests are counted by image")
def test_what_was_approved_outlives_the_guest(sides: Sides, backend: Backend) -> None:
    """A preserved bottle comes back with the image that was approved, or with its own, ever again."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            proposal = launcher.propose(identity, image=world.other_image, justification="gcc")
            with world.may_refuse(launcher.errors):
                launcher.approve(proposal)
            launcher.preserve(identity)
        seen: dict[str, list[Any]] = {"images": [], "bottle lives": []}
        for _ in range(_ROUNDS):
            with sides.open(world).resume(identity) as bottle:
                seen["images"] += images(world)
                seen["bottle lives"].append(lives(bottle))
        return seen

    # A bottle of bubblewrap has no image.
    image = [by_kind(backend, applies=OTHER_IMAGE, refuses=IMAGE)]
    expected = {
        "images": [] if backend.tool == "bwrap" else image * _ROUNDS,
        "bottle lives": [True] * _ROUNDS,
    }
    seen = of_its_kind(sides, backend, sides.observe("remediation/resumed", body))
    kept = {
        name: each
        for name, each in seen.items()
        if name == backend.name or bool(each["images"]) is (backend.tool != "bwrap")
    }
    sides.check_seen(backend, "remediation/resumed", kept, expected=expected)


@pytest.mark.simulated("images that set variables of their own")
def test_a_changed_image_is_as_one_started_with_it(sides: Sides, backend: Backend) -> None:
    """The manifest's variables stay; what an image sets goes with it, and comes with the next."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        # What the first image sets too, and yet the manifest's own.
        own = {"GREETING": "hello", "IMAGE_VERSION": image_environment(IMAGE)["IMAGE_VERSION"]}
        world.write_bottle("dev", {"image": IMAGE, "env": own})
        applies = next(s for s in sides.backends if s.name == world.backend).applies_proposals
        differs: dict[str, Any] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            for image in (IMAGE, OTHER_IMAGE, THIRD_IMAGE):
                if image != IMAGE:
                    proposal = launcher.propose(bottle.identity, image=image, justification="gcc")
                    with world.may_refuse(launcher.errors):
                        launcher.approve(proposal)
                now = image if applies else IMAGE
                world.write_bottle("new", {"image": now, "env": own})
                with launcher.start("new", backend=world.backend) as new:
                    wanted = read_environment(new.exec(ENVIRONMENT).stdout)
                found = read_environment(bottle.exec(ENVIRONMENT).stdout)
                for name in sorted(found.keys() | wanted.keys()):
                    if found.get(name) != wanted.get(name):
                        differs[f"{name} in {now}"] = (
                            f"{found.get(name)!r} instead of {wanted.get(name)!r}"
                        )
        return {"differs from a new bottle": differs, "own": own.items() <= found.items()}

    expected = {"differs from a new bottle": {}, "own": True}
    sides.check_side(backend, "remediation/as-a-new-one", body, expected=expected)


@pytest.mark.parametrize("other", ["docker", "smolmachines", "bubblewrap", "krypton"])
def test_the_chosen_backend_has_no_say(sides: Sides, backend: Backend, other: str) -> None:
    """Whatever the environment asks for, the handler is that of the bottle's record."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            tools = world.tools_used()
            proposal = launcher.propose(
                bottle.identity, image=world.other_image, justification="gcc"
            )
            world.environ["BOT_BOTTLE_BACKEND"] = other
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            return {
                "outcome": outcome.happened,
                "own tools alone": set(world.tools_used()) <= set(tools),
                "bottle lives": lives(bottle),
            }

    expected = {
        "own tools alone": True,
        "bottle lives": True,
        "outcome": by_kind(backend, applies="done", refuses="refused"),
    }
    check_kind(sides, backend, f"remediation/chosen-{other}", body, expected)


@pytest.mark.simulated("commands fail on request")
@pytest.mark.parametrize("step", range(1, _STEPS + 1))
def test_a_failing_step_keeps_proposal_and_bottle(
    sides: Sides, backend: Backend, step: int
) -> None:
    """Whichever command of applying fails, the bottle answers and the proposal waits."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            proposal = launcher.propose(
                bottle.identity, image=world.other_image, justification="gcc"
            )
            calls = len(world.commands.calls)
            world.stub.fail_at(step)
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            reached = len(world.commands.calls) - calls >= step
            world.stub.revive()
            applied = images(world) == [world.other_image]
            return {
                "no crash": outcome.happened in ("done", "refused"),
                "bottle lives": lives(bottle),
                "proposal and image agree": (launcher.pending() == []) == applied,
                "refusal keeps the proposal": outcome.happened == "done"
                or launcher.pending() == [proposal],
                "one guest at most": len(images(world)) <= 1,
                "failure reported": not reached or outcome.happened == "refused" or applied,
            }

    expected = {
        "no crash": True,
        "bottle lives": True,
        "proposal and image agree": True,
        "refusal keeps the proposal": True,
        "one guest at most": True,
        "failure reported": True,
    }
    check_kind(sides, backend, f"remediation/step-{step}-fails", body, expected)


@pytest.mark.simulated("labels are taken from a container")
def test_a_guest_of_an_older_launcher_loses_nothing(sides: Sides, backend: Backend) -> None:
    """Whichever label a container has not yet: it is changed whole, or refused and as it was."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        problems: list[str] = []
        with launcher.start("dev", backend=world.backend):
            labels = sorted({each for guest in world.guests().values() for each in guest.labels})
        for label in labels:
            with launcher.start("dev", backend=world.backend) as bottle:
                (guest,) = world.guests().values()
                value = guest.labels.pop(label)
                proposal = launcher.propose(
                    bottle.identity, image=world.other_image, justification="gcc"
                )
                with world.may_refuse(launcher.errors) as outcome:
                    launcher.approve(proposal)
                if outcome.happened not in ("done", "refused"):
                    problems.append(f"{label}: ends as {outcome.happened}")
                if (outcome.happened == "done") != (images(world) == [world.other_image]):
                    problems.append(f"{label}: {outcome.happened}, and runs on {images(world)}")
                if not lives(bottle):
                    problems.append(f"{label}: the bottle has lost its environment")
                guest.labels[label] = value
        return {"problems": problems}

    sides.check_side(backend, "remediation/older", body, expected={"problems": []})


#: An image that no bottle can run on → what it is called.
UNFIT: Final = {
    "that-is-missing": "does-not/exist:1",
    **{f"without-{what}": image for image, what in LACKING.items()},
}


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=pytest.mark.simulated("the model has such an image"))
        if UNFIT[what] in LACKING
        else what
        for what in UNFIT
    ],
)
def test_an_image_that_is_unfit_is_refused(sides: Sides, backend: Backend, what: str) -> None:
    """One that does not exist, does not start or cannot run the agent is named, and changes nothing."""
    image = UNFIT[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            guests = sorted(world.guests())
            proposal = launcher.propose(bottle.identity, image=image, justification="x")
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            seen = {
                "outcome": outcome.happened,
                "mentions": outcome.mentions(image),
                "says why": world.backend in outcome.text,
                "pending": launcher.pending() == [proposal],
                "bottle lives": lives(bottle),
                "agent runs": bottle.exec_agent(["true"], tty=False),
                "guests as before": sorted(world.guests()) == guests,
            }
            launcher.preserve(bottle.identity)
        with launcher.resume(bottle.identity) as bottle:
            return {**seen, "resumed": lives(bottle)}

    expected = {
        "outcome": "refused",
        "mentions": {image: True},
        "says why": True,
        "pending": True,
        "bottle lives": True,
        "agent runs": 0,
        "guests as before": True,
        "resumed": True,
    }
    sides.check_side(backend, f"remediation/image-{what}", body, expected=expected)


def test_approving_twice_applies_once(sides: Sides, backend: Backend) -> None:
    """The second approval of an applied proposal is refused and runs no command."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            proposal = launcher.propose(
                bottle.identity, image=world.other_image, justification="gcc"
            )
            with world.may_refuse(launcher.errors) as first:
                launcher.approve(proposal)
            calls = len(world.commands.calls)
            with world.may_refuse(launcher.errors) as second:
                launcher.approve(proposal)
            return {
                "first": first.happened,
                "second": second.happened,
                "guest touched again": any(
                    word in call.argv
                    for call in world.commands.calls[calls:]
                    for word in ("rm", "run", "delete", "create", "stop", "rename")
                ),
                "bottle lives": lives(bottle),
            }

    expected = {
        "first": by_kind(backend, applies="done", refuses="refused"),
        "second": "refused",
        "guest touched again": False,
        "bottle lives": True,
    }
    check_kind(sides, backend, "remediation/approve-twice", body, expected)


#: In which order two proposals are approved, and of which of two bottles of a name each is.
ORDERS: Final = {"the-first-first": ("first", "second"), "the-last-first": ("second", "first")}


@pytest.mark.simulated("guests are looked at by image")
@pytest.mark.parametrize("order", ORDERS)
def test_an_approval_is_for_one_of_two_of_a_name(
    sides: Sides, backend: Backend, order: str
) -> None:
    """Two bottles of one manifest run: each gets the image proposed for it, now and when it is resumed."""
    kinds = {which: Rich.marked("dev", which) for which in ORDERS[order]}
    proposed = {"first": OTHER_IMAGE, "second": THIRD_IMAGE}

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        bottles: dict[str, Bottle] = {}
        waiting: dict[str, str] = {}
        seen: dict[str, Any] = {}

        def image(which: str, otherwise: str) -> str:
            """What its guest is made of; a tool without images is never wrong."""
            return " and ".join(images_of(world, [bottles[which].identity])) or otherwise

        with ExitStack() as block:
            for which in ("first", "second"):
                kinds[which].write(world)
                kinds[which].type_in(world)
                bottles[which] = block.enter_context(launcher.start("dev", backend=world.backend))
                waiting[which] = launcher.propose(
                    bottles[which].identity, image=proposed[which], justification="gcc"
                )
            now = dict.fromkeys(bottles, IMAGE)
            for which in ORDERS[order]:
                with world.may_refuse(launcher.errors) as outcome:
                    sides.open(world).approve(waiting[which])
                if outcome.happened == "done":
                    now[which] = proposed[which]
                seen[f"once that of the {which} was approved"] = {
                    f"image of the {each}": image(each, now[each]) for each in bottles
                } | {
                    f"env of the {each}": look(bottles[each], kinds[each])["env"]
                    for each in bottles
                }
            for bottle in bottles.values():
                launcher.preserve(bottle.identity)
        for which, rich in kinds.items():
            rich.write(world)
            rich.type_in(world)
            with launcher.resume(bottles[which].identity) as bottle:
                seen[f"the {which}, resumed"] = {
                    "image": image(which, now[which]),
                    "env": look(bottle, rich)["env"],
                }
        return seen

    now = dict.fromkeys(proposed, IMAGE)
    expected: dict[str, Any] = {}
    for which in ORDERS[order]:
        now[which] = by_kind(backend, applies=proposed[which], refuses=IMAGE)
        expected[f"once that of the {which} was approved"] = {
            f"image of the {each}": now[each] for each in kinds
        } | {f"env of the {each}": kinds[each].env for each in kinds}
    for which, rich in kinds.items():
        expected[f"the {which}, resumed"] = {"image": now[which], "env": rich.env}
    check_kind(sides, backend, f"remediation/two-of-a-name-{order}", body, expected)


@pytest.mark.simulated("guests are looked at by image")
def test_a_proposal_is_not_for_the_next_bottle_of_its_name(sides: Sides, backend: Backend) -> None:
    """Its bottle has ended and another of that manifest runs: whatever comes of it, that one is as it was."""
    rich = Rich.marked("dev", "next")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            proposal = launcher.propose(
                bottle.identity, image=world.other_image, justification="gcc"
            )
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                sides.open(world).approve(proposal)
            now = images_of(world, [bottle.identity])
            return {
                "image of the next": " and ".join(now) or IMAGE,
                "env of the next": look(bottle, rich)["env"],
                "no traceback": outcome.happened in ("done", "refused"),
            }

    expected = {"image of the next": IMAGE, "env of the next": rich.env, "no traceback": True}
    sides.check_side(backend, "remediation/the-next-of-its-name", body, expected=expected)
