"""The life of a bottle goes round more than once: resumed again, remediated again, closed again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich, images, look, of_every_shape
from suites.parity.compare import Reply
from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import Guest, script_that_answers
from suites.parity.world import IMAGE, OTHER_IMAGE, THIRD_IMAGE, World

pytestmark = pytest.mark.covers("PARITY-RESUME")

#: More commands than ending a bottle, or cleaning up, takes.
_STEPS: Final = 7


def of_round(number: int) -> Rich:
    """One bottle as it is in a round: what was written stays, what is typed or given is another."""
    kept, now = Rich.marked("dev", "kept"), Rich.marked("dev", f"round-{number}")
    return Rich(name="dev", literals=kept.literals, typed=now.typed, given=now.given)


@pytest.mark.covers("PARITY-RESUME", "PARITY-SECRET-ENV")
@pytest.mark.simulated("launchers die on request")
@pytest.mark.parametrize("between", ["nothing", "a-cleanup", "a-crash"])
def test_a_bottle_comes_back_again_and_again(sides: Sides, backend: Backend, between: str) -> None:
    """Each time by another launcher, with the values of that time, its record and its transcript."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        first = of_round(0)
        first.write(world)
        first.type_in(world)
        rounds: dict[str, Any] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
            transcript = world.state / identity / "transcript" / "turns.jsonl"
            transcript.write_text("0\n")
        record = world.metadata(identity)
        for number in (1, 2, 3):
            rich = of_round(number)
            rich.set_variables(world)
            rich.type_in(world)
            asked = len(world.asked)
            launcher = sides.open(world)
            with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity) as bottle:
                seen = look(bottle, rich)
                same = bottle.identity == identity
                listed = launcher.active(world.backend) == [identity]
                if between == "a-crash":
                    world.stub.crash_at(1)
            world.stub.revive()
            turns = transcript.read_text()
            transcript.write_text(turns + f"{number}\n")
            if between != "nothing":
                sides.open(world).cleanup()
            rounds[f"round {number}"] = {
                "outcome": outcome.happened,
                **seen,
                "same identity": same,
                "listed": listed,
                "prompts": len(world.asked) - asked,
                "record kept": world.metadata(identity) == record,
                "transcript": turns,
                "guests left": [] if between == "nothing" else sorted(world.guests()),
                "recorded": world.recorded() == [identity],
                "exposed": rich.exposed(world),
            }
        return rounds

    expected = {
        f"round {number}": {
            "outcome": "launcher died" if between == "a-crash" and backend.tool != "bwrap" else "done",
            "env": of_round(number).env,
            "elsewhere": [],
            "same identity": True,
            "listed": True,
            "prompts": len(of_round(0).typed),
            "record kept": True,
            "transcript": "".join(f"{each}\n" for each in range(number)),
            "guests left": [],
            "recorded": True,
            "exposed": {},
        }
        for number in (1, 2, 3)
    }  # fmt: skip
    seen = sides.observe(f"rounds/resume-{between}", body)
    # A tool without guests is not run at the end, so that the launcher does not die there.
    alike = {
        side.name for side in sides.backends if (side.tool == "bwrap") == (backend.tool == "bwrap")
    }
    kept = {name: each for name, each in seen.items() if name in alike}
    sides.check_seen(backend, f"rounds/resume-{between}", kept, expected=expected)


@pytest.mark.simulated("launchers die on request")
@pytest.mark.parametrize("guest", ["running", "stopped", "created"])
def test_a_bottle_whose_launcher_died_comes_back(
    sides: Sides, backend: Backend, guest: str
) -> None:
    """At once or after a cleanup: nothing of it is lost, and nobody sees a traceback.

    Its guest goes on without it, or has stopped, as when the machine was started anew, or was made
    and never started. Only one that runs is listed.
    """

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich = Rich.marked("dev", "died")
        rich.write(world)
        rich.type_in(world)
        with (
            world.may_refuse(launcher.errors),
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            identity = bottle.identity
            launcher.preserve(identity)
            world.stub.crash_at(1)
        world.stub.revive()
        for each in world.guests().values():
            each.is_running, each.has_run = guest == "running", guest != "created"
        idle = guest != "running" and bool(world.guests())
        listed = sides.open(world).active(world.backend)
        record = world.metadata(identity)
        outcomes, inside, left = [], {}, None
        for cleanup in (False, True) if guest == "running" else (True,):
            launcher = sides.open(world)
            if cleanup:
                launcher.cleanup()
                left = sorted(world.guests())
            rich.type_in(world)
            with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity) as bottle:
                inside = look(bottle, rich)["env"]
            outcomes.append(outcome.happened)
        return {
            f"listed as running while its guest is {guest}": listed if idle else [],
            "no traceback": outcomes[0] in ("done", "refused"),
            "left by a cleanup": left,
            "after a cleanup": outcomes[-1],
            "env": inside,
            "record kept": world.metadata(identity) == record,
            "guests": sorted(world.guests()),
            "exposed": rich.exposed(world),
        }

    expected = {
        f"listed as running while its guest is {guest}": [],
        "no traceback": True,
        "left by a cleanup": [],
        "after a cleanup": "done",
        "env": Rich.marked("dev", "died").env,
        "record kept": True,
        "guests": [],
        "exposed": {},
    }
    sides.check_side(backend, f"rounds/launcher-died-{guest}", body, expected=expected)


@pytest.mark.simulated("guests of others are made up")
def test_a_guest_of_another_with_its_name_is_left_alone(sides: Sides, backend: Backend) -> None:
    """Who has a guest by the name of a bottle keeps it, whether the bottle can be resumed or not."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich = Rich.marked("dev", "other")
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            names = [name.split()[1] for name in world.guests()] or [f"bot-bottle-{identity}"]
            launcher.preserve(identity)
        world.docker.adopt(names[0], Guest(image="postgres"))
        before = world.docker.guests[names[0]]
        rich.type_in(world)
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        launcher.cleanup()
        return {
            "no traceback": outcome.happened in ("done", "refused"),
            "guest of another": world.docker.guests.get(names[0]) is before,
            "recorded": world.recorded() == [identity],
        }

    expected = {"no traceback": True, "guest of another": True, "recorded": True}
    sides.check_side(backend, "rounds/name-taken", body, expected=expected)


@pytest.mark.covers("PARITY-REMEDIATION", "PARITY-SECRET-ENV")
@pytest.mark.simulated("guests are looked at by image")
def test_a_bottle_is_remediated_again(sides: Sides, backend: Backend) -> None:
    """Of several proposals each changes its own bottle; environment, list and record go with it."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich, beside = Rich.marked("dev", "changed"), Rich.marked("dev-new", "beside")
        beside.write(world)
        rich.write(world)
        rich.type_in(world)
        beside.type_in(world)
        steps: dict[str, Any] = {}

        def approve(proposal: str, wanted: str, bottle: Any, other: Any) -> dict[str, Any]:
            image = wanted if applied else IMAGE
            with world.may_refuse(launcher.errors) as outcome:
                sides.open(world).approve(proposal)
            others = [each.identity for each in (other,) if each is not None]
            return {
                "outcome": outcome.happened,
                "image": images(world, [bottle.identity]) in ([image], []),
                "names": outcome.happened == "done"
                or all(outcome.mentions(world.backend, bottle.identity, wanted).values()),
                **look(bottle, rich),
                "image beside": images(world, others) in ([IMAGE], []),
                "beside": other is None or look(other, beside)["env"] == beside.env,
                "listed": sorted(launcher.active(world.backend))
                == sorted([bottle.identity, *others]),
                "runs": bottle.exec(script_that_answers("out", "err", 3)).returncode,
                "exposed": {**rich.exposed(world), **beside.exposed(world)},
            }

        applied = next(s for s in sides.backends if s.name == world.backend).applies_proposals
        with ExitStack() as block:
            bottle = block.enter_context(launcher.start("dev", backend=world.backend))
            beside.set_variables(world)
            other = block.enter_context(launcher.start("dev-new", backend=world.backend))
            rich.set_variables(world)
            identity = bottle.identity
            waiting = [
                launcher.propose(each, image=image, justification="it needs 'gcc'\nand more")
                for each, image in (
                    (identity, OTHER_IMAGE),
                    (other.identity, THIRD_IMAGE),
                    (identity, THIRD_IMAGE),
                )
            ]
            steps["all wait"] = sorted(launcher.pending()) == sorted(waiting)
            steps["first"] = approve(waiting[0], OTHER_IMAGE, bottle, other)
            left = waiting[1:] if applied else waiting
            steps["others wait"] = sorted(sides.open(world).pending()) == sorted(left)
            launcher.cleanup()
            launcher.preserve(identity)
        guests_between = sorted(world.guests())
        rich.type_in(world)
        with launcher.resume(identity) as bottle:
            now = OTHER_IMAGE if applied else IMAGE
            steps["resumed"] = {
                **look(bottle, rich),
                "image": images(world, [identity]) in ([now], []),
            }
            steps["second"] = approve(waiting[2], THIRD_IMAGE, bottle, None)
        rich.type_in(world)
        with world.may_refuse(launcher.errors), launcher.resume(identity) as bottle:
            now = THIRD_IMAGE if applied else IMAGE
            steps["resumed again"] = {
                **look(bottle, rich),
                "image": images(world, [identity]) in ([now], []),
            }
            world.stub.crash_at(1)
        world.stub.revive()
        sides.open(world).cleanup()
        return {
            **steps,
            "guests between": guests_between,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": world.recorded() == [identity],
        }

    rich = Rich.marked("dev", "changed")
    outcome = "done" if backend.applies_proposals else "refused"
    approved = {
        "outcome": outcome,
        "image": True,
        "names": True,
        "env": rich.env,
        "elsewhere": [],
        "image beside": True,
        "beside": True,
        "listed": True,
        "runs": 3,
        "exposed": {},
    }
    resumed = {"env": rich.env, "elsewhere": [], "image": True}
    expected = {
        "all wait": True,
        "first": approved,
        "others wait": True,
        "resumed": resumed,
        "second": approved,
        "resumed again": resumed,
        "guests between": [],
        "guests at the end": [],
        "recorded at the end": True,
    }
    alike = {
        side.name for side in sides.backends if side.applies_proposals == backend.applies_proposals
    }
    seen = sides.observe("rounds/remediated", body)
    kept = {name: each for name, each in seen.items() if name in alike}
    sides.check_seen(backend, "rounds/remediated", kept, expected=expected)


@pytest.mark.covers("PARITY-SECRET-ENV", "PARITY-FORWARDED-ENV", "PARITY-REMEDIATION")
@pytest.mark.simulated("guests are looked at by image")
@pytest.mark.parametrize("kind", ["literals", "typed", "given"])
def test_values_of_every_class_go_round(sides: Sides, backend: Backend, kind: str) -> None:
    """A value is the same at start, after an approved change, and after a resume, whatever it holds."""
    values = of_every_shape(kind)
    if kind == "given":
        # The host's variables are bytes that need not be text.
        values["GIVEN_BYTES"] = "\udcff\udc80canary-bytes\udcfe"
        values["GIVEN_LATIN"] = "canary-Z\udcfcrich"
    rich = Rich(name="dev", **{kind: values})

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        seen: dict[str, Any] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            seen["started"] = look(bottle, rich)
            launcher.preserve(identity)
            proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
            with world.may_refuse(launcher.errors):
                launcher.approve(proposal)
            seen["remediated"] = look(bottle, rich)
        rich.type_in(world)
        with launcher.resume(identity) as bottle:
            seen["resumed"] = look(bottle, rich)
        return {**seen, "exposed": rich.exposed(world)}

    stage = {"env": rich.env, "elsewhere": []}
    expected = {"started": stage, "remediated": stage, "resumed": stage, "exposed": {}}
    sides.check_side(backend, f"rounds/values-{kind}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("commands fail on request")
@pytest.mark.parametrize("how", ["at-the-end", "by-hand", "twice", "everything-fails"])
def test_what_fails_to_close_is_tried_again(sides: Sides, backend: Backend, how: str) -> None:
    """It is refused, the bottle stays on record as long as its guest is there, and goes with it."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich = Rich.marked("dev", "stuck")
        rich.write(world)
        rich.type_in(world)
        no = Reply(returncode=1, stderr=b"device or resource occup\xe9\n")
        by_hand = None
        with (
            world.may_refuse(launcher.errors) as leaving,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            identity = bottle.identity
            # Its engine may be away for all that follows, and not tell what is there either.
            for number in range(1, 9 if how == "everything-fails" else 2):
                world.stub.fail_at(number, reply=no)
            if how in {"by-hand", "twice"}:
                with world.may_refuse(launcher.errors) as by_hand:
                    bottle.close()
                still = bool(world.guests())
                if how == "twice":
                    world.stub.fail_at(1, reply=no)
            else:
                still = bool(world.guests())
        left = bool(world.guests())
        kept = world.recorded() == [identity]
        world.stub.revive()
        cleanups = []
        for _ in range(2):
            with world.may_refuse(launcher.errors) as outcome:
                sides.open(world).cleanup()
            cleanups.append(outcome.happened)
        return {
            "by hand": by_hand is None or by_hand.happened == ("refused" if still else "done"),
            "names the guest": by_hand is None or not still or identity in by_hand.text,
            "leaving is refused while the guest is there": (leaving.happened == "refused") == left,
            "the record stays while the guest is there": kept == left,
            "a second close closes": how != "by-hand" or not left,
            "cleanups": cleanups,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": world.recorded(),
            "exposed": rich.exposed(world),
        }

    expected = {
        "by hand": True,
        "names the guest": True,
        "leaving is refused while the guest is there": True,
        "the record stays while the guest is there": True,
        "a second close closes": True,
        "cleanups": ["done", "done"],
        "guests at the end": [],
        "recorded at the end": [],
        "exposed": {},
    }
    sides.check_side(backend, f"rounds/close-fails-{how}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("commands fail on request")
@pytest.mark.parametrize("step", range(1, _STEPS + 1))
def test_a_cleanup_that_fails_is_made_up_for(sides: Sides, backend: Backend, step: int) -> None:
    """Whichever of its commands fails, no guest loses its record, and the next cleanup removes both."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        kinds = [Rich.marked(name, name) for name in ("dev", "dev-old", "dev")]
        found = []
        world_blocks = []
        for rich in kinds:
            rich.write(world)
            rich.type_in(world)
            block = launcher.start(rich.name, backend=world.backend)
            found.append(block.__enter__().identity)
            world_blocks.append(block)
        launcher.preserve(found[2])
        world.stub.crash_at(1)
        for block in world_blocks:
            with world.may_refuse(launcher.errors):
                block.__exit__(None, None, None)
        world.stub.revive()
        world.stub.fail_at(step)
        launcher = sides.open(world)
        with world.may_refuse(launcher.errors) as first:
            launcher.cleanup()
        world.stub.revive()
        there = {identity for identity in found for name in world.guests() if identity in name}
        with world.may_refuse(launcher.errors) as second:
            sides.open(world).cleanup()
        exposed = {place: names for rich in kinds for place, names in rich.exposed(world).items()}
        return {
            "no crash": first.happened in ("done", "refused"),
            "who is there is recorded": sorted(there - set(world.recorded()) - {found[2]})
            if second.happened != "done"
            else [],
            "second": second.happened,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": world.recorded() == [found[2]],
            "exposed": exposed,
        }

    expected = {
        "no crash": True,
        "who is there is recorded": [],
        "second": "done",
        "guests at the end": [],
        "recorded at the end": True,
        "exposed": {},
    }
    sides.check_side(backend, f"rounds/cleanup-fails-{step}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("tools are missing on request")
@pytest.mark.parametrize("missing", ["the-others", "its-own"])
def test_a_tool_that_is_not_there(sides: Sides, backend: Backend, missing: str) -> None:
    """Without its own tool a launch and a cleanup are refused by its name; others are not needed."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich = Rich.marked("dev", "missing")
        rich.write(world)
        rich.type_in(world)
        own = next(side.tool for side in sides.backends if side.name == world.backend)
        others = {side.tool for side in sides.backends} - {own}
        with (
            world.may_refuse(launcher.errors),
            launcher.start("dev", backend=world.backend),
        ):
            world.stub.crash_at(1)
        world.stub.revive()
        left = bool(world.guests())
        world.stub.missing = others if missing == "the-others" else {own}
        with world.may_refuse(launcher.errors) as cleaning:
            sides.open(world).cleanup()
        kept = bool(world.recorded()) == bool(world.guests())
        rich.type_in(world)
        with (
            world.may_refuse(launcher.errors) as starting,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            bottle.exec(script_that_answers("", "", 0))
        world.stub.missing = set()
        with world.may_refuse(launcher.errors) as later:
            sides.open(world).cleanup()
        refused = missing == "its-own"
        return {
            "cleanup": (cleaning.happened == "refused") == (refused and left),
            "cleanup names it": cleaning.happened == "done" or own in cleaning.text,
            "a guest is there as long as its record": kept,
            "start": starting.happened == ("refused" if refused else "done"),
            "start names it": starting.happened == "done" or own in starting.text,
            "later": later.happened,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": world.recorded(),
            "exposed": rich.exposed(world),
        }

    expected = {
        "cleanup": True,
        "cleanup names it": True,
        "a guest is there as long as its record": True,
        "start": True,
        "start names it": True,
        "later": "done",
        "guests at the end": [],
        "recorded at the end": [],
        "exposed": {},
    }
    sides.check_side(backend, f"rounds/tool-missing-{missing}", body, expected=expected)
