"""An approved capability-block proposal goes to the bottle's own backend (PRD 0042, 0039).

A backend that can change the image of a bottle does; one that cannot refuses before it tears
anything down. The adapter says which is which (``applies_proposals``).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.bottles import AROUND, Rich, look
from suites.parity.bottles import images as images_of
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.docker import image_environment
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import IMAGE, LACKING, OTHER_IMAGE, THIRD_IMAGE, World

pytestmark = pytest.mark.covers("PARITY-REMEDIATION")

#: More commands than applying a proposal takes.
_STEPS: Final = 8

#: Resumes after an approval; what the first of them forgets shows in the second.
_ROUNDS: Final = 3


def lives(bottle: Bottle) -> bool:
    """Whether the bottle answers, with its own environment."""
    return read_environment(bottle.exec(ENVIRONMENT).stdout).get("GREETING") == "hello"


def images(world: World) -> list[str]:
    """What the running guests are made of."""
    return sorted(guest.image for guest in world.guests().values() if guest.is_running)


def write_bottle(world: World) -> None:
    """A manifest with one literal, by which the bottle is known again."""
    world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})


def by_kind(backend: Backend, *, applies: Any, refuses: Any) -> Any:
    """What is expected of a backend that can apply proposals, or of one that cannot."""
    return applies if backend.applies_proposals else refuses


def of_its_kind(sides: Sides, backend: Backend, seen: Mapping[str, Any]) -> dict[str, Any]:
    """The sides that are expected to do as this one."""
    alike = {
        side.name for side in sides.backends if side.applies_proposals == backend.applies_proposals
    }
    return {name: each for name, each in seen.items() if name in alike}


def check_kind(
    sides: Sides,
    backend: Backend,
    scenario: str,
    body: Any,
    expected: Mapping[str, Any],
) -> None:
    """Judge a side against those that can do what it can."""
    seen = of_its_kind(sides, backend, sides.observe(scenario, body))
    sides.check_seen(backend, scenario, seen, expected=expected)


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


def test_an_unknown_proposal_is_refused(sides: Sides, backend: Backend) -> None:
    """An unknown id, or one that is a path, touches nothing."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            calls, outcomes = len(world.commands.calls), []
            for proposal in ("none", "../metadata", ""):
                with world.may_refuse(launcher.errors) as outcome:
                    launcher.approve(proposal)
                outcomes.append(outcome.happened)
            return {
                "outcomes": outcomes,
                "commands run": len(world.commands.calls) - calls,
                "bottle lives": lives(bottle),
            }

    expected = {"outcomes": ["refused"] * 3, "commands run": 0, "bottle lives": True}
    sides.check_side(backend, "remediation/unknown-proposal", body, expected=expected)


@pytest.mark.parametrize(
    ("image", "justification"),
    [("", "gcc"), ("   ", "gcc"), (OTHER_IMAGE, ""), (OTHER_IMAGE, " \n")],
)
def test_a_proposal_needs_an_image_and_a_justification(
    sides: Sides, backend: Backend, image: str, justification: str
) -> None:
    """Without one of them nothing is queued."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                launcher.propose(bottle.identity, image=image, justification=justification)
            return {
                "outcome": outcome.happened,
                "pending": launcher.pending(),
                "lives": lives(bottle),
            }

    expected = {"outcome": "refused", "pending": [], "lives": True}
    name = f"remediation/empty-{image!r}-{justification!r}"
    sides.check_side(backend, name, body, expected=expected)


def strings_kept(world: World) -> set[str]:
    """Texts that are kept in the home: of files as they are, and each string of those that are JSON."""
    found: set[str] = set()

    def take(value: Any) -> None:
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, list | dict):
            for each in value.values() if isinstance(value, dict) else value:
                take(each)

    for path in (world.home / ".bot-bottle").rglob("*"):
        if path.is_file():
            take(path.read_bytes().decode(errors="surrogateescape"))
            with contextlib.suppress(ValueError):
                take(json.loads(path.read_bytes()))
    return found


def test_a_justification_is_kept_as_it_is(sides: Sides, backend: Backend) -> None:
    """Who approves reads what was written: no blank and no end of a line is folded or trimmed."""
    texts = {
        shape: f"{before}it  needs\n\n gcc{behind}" for shape, (before, behind) in AROUND.items()
    }

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            made = [
                launcher.propose(bottle.identity, image=world.other_image, justification=text)
                for text in texts.values()
            ]
            waiting = sides.open(world).pending()
            kept = strings_kept(world)
        return {
            "all wait": sorted(waiting) == sorted(made),
            "changed": [
                shape for shape, text in texts.items() if not any(text in each for each in kept)
            ],
        }

    expected = {"all wait": True, "changed": []}
    sides.check_side(backend, "remediation/justifications", body, expected=expected)


@pytest.mark.parametrize("identity", ["nothing-here", "../dev", ""])
def test_a_proposal_for_no_bottle_is_refused(sides: Sides, backend: Backend, identity: str) -> None:
    """It names what was asked for, and nothing is queued."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        with world.may_refuse(launcher.errors) as outcome:
            launcher.propose(identity, image=world.other_image, justification="gcc")
        return {
            "outcome": outcome.happened,
            "mentions": identity in outcome.text,
            "pending": launcher.pending(),
        }

    expected = {"outcome": "refused", "mentions": True, "pending": []}
    sides.check_side(backend, f"remediation/no-bottle-{identity!r}", body, expected=expected)


@pytest.mark.simulated("guests are counted by image")
@pytest.mark.parametrize("state", ["ended", "preserved", "unknown-backend"])
def test_a_proposal_outlives_what_it_is_for(sides: Sides, backend: Backend, state: str) -> None:
    """Approved when nothing runs, or nobody knows where: no crash, and no lie about what was applied."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            proposal = launcher.propose(identity, image=world.other_image, justification="gcc")
            if state != "ended":
                launcher.preserve(identity)
        if state == "unknown-backend":
            file = world.state / identity / "metadata.json"
            file.write_text(json.dumps({**world.metadata(identity), "backend": "krypton"}))
        before = world.tree()
        with world.may_refuse(launcher.errors) as outcome:
            launcher.approve(proposal)
        seen: dict[str, Any] = {
            "no traceback": outcome.happened in ("done", "refused"),
            "waits unless applied": (launcher.pending() == []) == (outcome.happened == "done"),
            "guests": sorted(world.guests()),
        }
        if state == "unknown-backend":
            seen["refused"] = outcome.happened
            seen["mentions"] = outcome.mentions("krypton")
            seen["state untouched"] = before == world.tree()
        if state == "preserved":
            with launcher.resume(identity) as bottle:
                applied = images(world) == [world.other_image]
                seen["as it was said"] = applied == (outcome.happened == "done")
                seen["lives"] = lives(bottle)
        return seen

    expected: dict[str, Any] = {"no traceback": True, "waits unless applied": True, "guests": []}
    if state == "unknown-backend":
        expected |= {"refused": "refused", "mentions": {"krypton": True}, "state untouched": True}
    if state == "preserved":
        expected |= {"as it was said": True, "lives": True}
    sides.check_side(backend, f"remediation/outlives-{state}", body, expected=expected)


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


#: What is wrong with what is kept of a proposal → what it is made of, from what it was.
SPOILT: Final[Mapping[str, Callable[[str], str]]] = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "nuls": lambda text: "\0" * len(text),
    "no-utf-8": lambda text: text.replace("gcc", "g\udcffc"),
    "a-list": lambda text: f"[{text}]",
    "null": lambda _: "null",
    "a-string": lambda _: '"pending"',
    "twice": lambda text: text * 2,
    "numbers": lambda text: re.sub(r'(: *)"[^"]*"', r"\g<1>7", text),
    "lists": lambda text: re.sub(r'(: *)"[^"]*"', r"\g<1>[]", text),
    "no-values": lambda _: "{}",
    "another-name": lambda text: re.sub(r'("id" *: *)"[^"]*"', r'\g<1>"p-00000000"', text),
    "another-state": lambda text: text.replace("pending", "perhaps"),
}


def spoil(world: World, proposal: str, others: list[str], make: Callable[[str], str]) -> list[Path]:
    """Damage what is kept of this proposal alone; the files that were damaged.

    A way of damaging that changes nothing where proposals are kept in another form damages none.
    """
    spoilt = []
    for path in sorted((world.home / ".bot-bottle").rglob("*")):
        text = path.read_text(errors="surrogateescape") if path.is_file() else ""
        known = f"{path.name} {text}"
        damaged = make(text)
        if damaged == text:
            continue
        if proposal in known and not any(other in known for other in others):
            path.write_bytes(damaged.encode(errors="surrogateescape"))
            spoilt.append(path)
    return spoilt


@pytest.mark.parametrize("what", SPOILT)
def test_a_damaged_proposal_is_in_nobodys_way(sides: Sides, backend: Backend, what: str) -> None:
    """It is refused by its name and not deleted; the others wait, and are applied, as before."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            made = [
                launcher.propose(bottle.identity, image=world.other_image, justification="gcc")
                for _ in range(3)
            ]
            # Wherever it stands in a list.
            damaged, first, *_ = made = sorted(made)
            others = made[1:]
            spoilt = spoil(world, damaged, others, SPOILT[what])
            before = [path.read_bytes() for path in spoilt]
            launcher = sides.open(world)
            with world.may_refuse(launcher.errors) as listing:
                waiting = sorted(launcher.pending())
            with world.may_refuse(launcher.errors) as approving:
                launcher.approve(damaged)
            with world.may_refuse(launcher.errors) as applying:
                launcher.approve(first)
            with world.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            alive = lives(bottle)
        return {
            "listing": listing.happened,
            "others wait": listing.happened == "done" and set(others) <= set(waiting),
            "approving it": "refused" if not spoilt else approving.happened,
            "named": not spoilt or damaged in approving.text,
            "approving another": applying.happened,
            "cleanup": cleaning.happened,
            "bottle lives": alive,
            "kept": [path.read_bytes() for path in spoilt if path.exists()] == before,
        }

    expected = {
        "listing": "done",
        "others wait": True,
        "approving it": "refused",
        "named": True,
        "approving another": by_kind(backend, applies="done", refuses="refused"),
        "cleanup": "done",
        "bottle lives": True,
        "kept": True,
    }
    check_kind(sides, backend, f"remediation/spoilt-{what}", body, expected)
