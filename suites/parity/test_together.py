"""Several bottles at once: look-alike names, the same variables with other values, other homes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich, images, look
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import USER, Guest, script_that_reads
from suites.parity.world import IMAGE, OTHER_IMAGE, World

#: What two bottles are called; ``{identity}`` is that of the first.
NAMES: Final = {
    "the-same": ("dev", "dev"),
    "other-case": ("dev", "DEV"),
    "a-beginning": ("dev", "dev-1"),
    "an-end": ("bottle-dev", "dev"),
    "as-an-old-one": ("dev", "dev-old"),
    "as-a-new-one": ("dev-new", "dev"),
    "a-sign": ("dev_1", "dev-1"),
    "long": ("a" * 60 + "x", "a" * 60 + "y"),
    "numbers": ("1", "0001"),
    "like-a-guest": ("bot-bottle", "bot-bottle-bot-bottle"),
    "an-identity": ("dev", "{identity}"),
    "an-identity-and-more": ("dev", "{identity}-new"),
    "an-identity-as-an-old-one": ("dev", "{identity}-old"),
}


def facts(world: World, bottle: Bottle, rich: Rich, file: str) -> dict[str, Any]:
    """What is a bottle's own: its environment, a file, its user, its image, its record."""
    record = world.metadata(bottle.identity)
    return {
        **look(bottle, rich),
        "file": bottle.exec(script_that_reads("/tmp/same name")).stdout == file,
        "user": bottle.exec(USER).stdout,
        "image": images(world, [bottle.identity]) in ([rich.image], []),
        "recorded as": [record["identity"] == bottle.identity, record["agent_name"] == rich.name],
    }


def expected_facts(rich: Rich) -> dict[str, Any]:
    """The same, as it must be."""
    return {
        "env": rich.env,
        "elsewhere": [],
        "file": True,
        "user": "node\n",
        "image": True,
        "recorded as": [True, True],
    }


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-SECRET-ENV", "PARITY-CLEANUP")
@pytest.mark.simulated("guests are looked at by image")
@pytest.mark.parametrize("first_ends", [True, False], ids=["first-ends-first", "last-ends-first"])
@pytest.mark.parametrize("names", NAMES)
def test_two_bottles_are_two(
    sides: Sides, backend: Backend, names: str, *, first_ends: bool
) -> None:
    """Each has its identity, environment, files, image and record, and its end is its own."""
    one, two = NAMES[names]
    first = Rich.marked(one, "first", image=IMAGE)
    second = Rich.marked(two, "second", image=IMAGE if one == two else OTHER_IMAGE)

    def started(world: World, launcher: Launcher, rich: Rich, block: ExitStack) -> Bottle:
        rich.write(world)
        rich.type_in(world)
        bottle = block.enter_context(launcher.start(rich.name, backend=world.backend))
        file = world.home / "source"
        file.write_text(rich.literals["GREETING"])
        bottle.cp_in(file, "/tmp/same name")
        return bottle

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        with ExitStack() as one_block, ExitStack() as two_block:
            one_bottle = started(world, launcher, first, one_block)
            called = replace(second, name=two.format(identity=one_bottle.identity))
            bottles = (one_bottle, started(world, sides.open(world), called, two_block))
            kinds = (first, called)
            for which, bottle, rich in zip(("first", "second"), bottles, kinds, strict=True):
                seen[which] = facts(world, bottle, rich, rich.literals["GREETING"])
            identities = sorted(bottle.identity for bottle in bottles)
            seen["identities"] = len(set(identities))
            seen["both listed"] = sorted(launcher.active(world.backend)) == identities
            sides.open(world).cleanup()
            blocks = (one_block, two_block)
            ends, stays = (0, 1) if first_ends else (1, 0)
            blocks[ends].close()
            seen["left"] = facts(
                world, bottles[stays], kinds[stays], kinds[stays].literals["GREETING"]
            )
            seen["one listed"] = launcher.active(world.backend) == [bottles[stays].identity]
            seen["one recorded"] = sorted(path.name for path in world.state.iterdir()) == [
                bottles[stays].identity
            ]
            launcher.cleanup()
            seen["after a cleanup"] = look(bottles[stays], kinds[stays])["env"]
        return {
            **seen,
            "guests at the end": sorted(world.guests()),
            "recorded at the end": sorted(path.name for path in world.state.iterdir()),
            "exposed": {**first.exposed(world), **second.exposed(world)},
        }

    last = (second, first)[not first_ends]
    expected = {
        "first": expected_facts(first),
        "second": expected_facts(second),
        "identities": 2,
        "both listed": True,
        "left": expected_facts(last),
        "one listed": True,
        "one recorded": True,
        "after a cleanup": last.env,
        "guests at the end": [],
        "recorded at the end": [],
        "exposed": {},
    }
    name = f"together/{names}-{'first' if first_ends else 'last'}"
    sides.check_side(backend, name, body, expected=expected)


#: What guests of others are called, by the name of the guest of a bottle.
ALIKE: Final = {
    "and-a-number": "{name}-2",
    "and-a-digit": "{name}0",
    "and-a-beginning": "x-{name}",
    "as-a-new-one": "{name}-new",
    "as-an-old-one": "{name}-old",
}


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-CLEANUP", "PARITY-RESUME")
@pytest.mark.simulated("guests of others are made up")
@pytest.mark.parametrize("alike", ALIKE)
def test_a_guest_whose_name_holds_that_of_a_bottle_is_anothers(
    sides: Sides, backend: Backend, alike: str
) -> None:
    """It outlives whatever is done with the bottle, and is taken for no bottle that runs."""
    rich = Rich.marked("dev", "alike")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        seen: dict[str, Any] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
            names = [name.split()[1] for name in world.guests()] or [f"bot-bottle-{identity}"]
            theirs, guest = ALIKE[alike].format(name=names[0]), Guest(image="postgres")
            world.docker.adopt(theirs, guest)
            world.smolvm.guests[theirs] = guest

            def look_again(after: str, *, runs: Bottle | None) -> None:
                tools = (world.docker, world.smolvm)
                seen[f"after {after}"] = {
                    "guest of another": [tool.guests.get(theirs) is guest for tool in tools],
                    "listed": launcher.active(world.backend) == [identity] * (runs is not None),
                    "bottle": runs is None or look(runs, rich)["env"] == rich.env,
                }

            launcher.cleanup()
            look_again("a cleanup", runs=bottle)
            proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="more")
            with world.may_refuse(launcher.errors) as outcome:
                launcher.approve(proposal)
            look_again("an approval", runs=bottle)
        look_again("its end", runs=None)
        rich.type_in(world)
        with world.may_refuse(launcher.errors), launcher.resume(identity) as bottle:
            look_again("a resume", runs=bottle)
            world.stub.crash_at(1)
        world.stub.revive()
        sides.open(world).cleanup()
        look_again("a crash", runs=None)
        return {"no traceback": outcome.happened in ("done", "refused"), **seen}

    after = {"guest of another": [True, True], "listed": True, "bottle": True}
    steps = ("a cleanup", "an approval", "its end", "a resume", "a crash")
    expected = {"no traceback": True, **{f"after {step}": after for step in steps}}
    sides.check_side(backend, f"together/guest-of-another-{alike}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP", "PARITY-RESUME")
@pytest.mark.simulated("guests of another home are made up")
@pytest.mark.parametrize("where", ["beside", "below", "of its name"])
def test_another_home_is_left_alone(sides: Sides, backend: Backend, where: str) -> None:
    """Two users have one name and the same tools: none lists, resumes or removes what is the other's."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        other = sides.another_world(world, where)
        theirs = sides.open(other)
        mine_rich, their_rich = Rich.marked("dev", "mine"), Rich.marked("dev", "theirs")
        for rich, owner in ((mine_rich, world), (their_rich, other)):
            rich.write(owner)
            rich.type_in(owner)
        with (
            launcher.start("dev", backend=world.backend) as mine,
            theirs.start("dev", backend=other.backend) as their,
        ):
            listed = [launcher.active(world.backend), theirs.active(world.backend)]
            apart = listed == [[mine.identity], [their.identity]]
            launcher.cleanup()
            theirs.cleanup()
            seen = {
                "each lists its own": apart,
                "mine": look(mine, mine_rich),
                "theirs": look(their, their_rich),
            }
            with (
                world.may_refuse(launcher.errors) as outcome,
                launcher.resume(their.identity),
            ):
                pass
            # Another home's launcher dies, with what it runs.
            theirs.preserve(their.identity)
            their_identity = their.identity
            guests = sorted(other.guests())
        return {
            **seen,
            "resume of theirs": outcome.happened,
            "two guests": len(guests) in (0, 2),
            "theirs is kept": [path.name for path in other.state.iterdir()] == [their_identity],
            "mine is gone": [path.name for path in world.state.iterdir()],
            "exposed": {**mine_rich.exposed(world), **their_rich.exposed(other)},
        }

    expected = {
        "each lists its own": True,
        "mine": {"env": Rich.marked("dev", "mine").env, "elsewhere": []},
        "theirs": {"env": Rich.marked("dev", "theirs").env, "elsewhere": []},
        "resume of theirs": "refused",
        "two guests": True,
        "theirs is kept": True,
        "mine is gone": [],
        "exposed": {},
    }
    sides.check_side(backend, f"together/another-home-{where}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("launchers die on request")
def test_cleanup_beside_all_that_must_stay(sides: Sides, backend: Backend) -> None:
    """Of several bottles only those are removed whose launcher died: not one that runs or is kept."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        kinds = {
            what: Rich.marked(name, what)
            for what, name in {
                "dead": "dev", "dead too": "dev", "kept": "dev", "dead and kept": "dev-1", "lives": "de"
            }.items()
        }  # fmt: skip
        found: dict[str, str] = {}
        dying = sides.open(world)
        blocks = ExitStack()
        for what in ("dead", "dead too", "dead and kept"):
            kinds[what].write(world)
            kinds[what].type_in(world)
            block = dying.start(kinds[what].name, backend=world.backend)
            found[what] = block.__enter__().identity
            blocks.push(block)
        dying.preserve(found["dead and kept"])
        world.stub.crash_at(1)
        with world.may_refuse(launcher.errors):
            blocks.close()
        world.stub.revive()
        kinds["kept"].write(world)
        kinds["kept"].type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            found["kept"] = bottle.identity
            launcher.preserve(bottle.identity)
        kinds["lives"].write(world)
        kinds["lives"].type_in(world)
        with launcher.start("de", backend=world.backend) as lives:
            found["lives"] = lives.identity
            seen = {}
            for time in ("once", "twice"):
                sides.open(world).cleanup()
                seen[time] = {
                    "recorded": sorted(
                        what
                        for what, identity in found.items()
                        if (world.state / identity).is_dir()
                    ),
                    "listed": launcher.active(world.backend) == [lives.identity],
                    "lives": look(lives, kinds["lives"])["env"],
                    "guests": len(world.guests()) in (0, 1),
                }
        for what in ("kept", "dead and kept"):
            kinds[what].set_variables(world)
            kinds[what].type_in(world)
            with launcher.resume(found[what]) as bottle:
                seen[f"{what} comes back"] = look(bottle, kinds[what])["env"]
        return {
            **seen,
            "exposed": {place: names for rich in kinds.values() for place, names in rich.exposed(world).items()},
            "guests at the end": sorted(world.guests()),
        }  # fmt: skip

    after = {
        "recorded": ["dead and kept", "kept", "lives"],
        "listed": True,
        "lives": Rich.marked("de", "lives").env,
        "guests": True,
    }
    expected = {
        "once": after,
        "twice": after,
        "kept comes back": Rich.marked("dev", "kept").env,
        "dead and kept comes back": Rich.marked("dev-1", "dead and kept").env,
        "exposed": {},
        "guests at the end": [],
    }
    sides.check_side(backend, "together/cleanup", body, expected=expected)
