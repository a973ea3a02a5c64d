"""A step that fails leaves nothing behind: no guest, no record, no value, no open file."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich, look
from suites.parity.compare import Reply
from suites.parity.folders import BENT, a_folder
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import script_that_links
from suites.parity.world import OTHER_IMAGE, Refusal, World

#: More commands than a launch takes.
_STEPS: Final = 4

#: More commands than a whole life takes: a start, a list, an approval, the end, a cleanup.
_STEPS_OF_A_LIFE: Final = 16

#: Copies that fail before what is open is counted again.
_COPIES: Final = 5


def let_nothing_start(world: World, *, starts: bool = False) -> None:
    """Let no guest be started from now on, or let it again; it can be made all the same."""
    world.docker.starts = world.smolvm.starts = world.bwrap.starts = starts


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-CLEANUP", "PARITY-RESUME")
@pytest.mark.simulated("commands fail on request")
@pytest.mark.parametrize("launch", ["start", "resume"])
@pytest.mark.parametrize(
    "how", ["no-guest-starts", *(f"command-{step}-fails" for step in range(1, _STEPS + 1))]
)
def test_a_launch_that_fails_leaves_nothing(
    sides: Sides, backend: Backend, launch: str, how: str
) -> None:
    """What it made is gone at once, without a cleanup; what was preserved stays, and comes back."""
    rich = Rich.marked("dev", "failed")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        kept: list[str] = []
        if launch == "resume":
            rich.type_in(world)
            with launcher.start("dev", backend=world.backend) as bottle:
                launcher.preserve(bottle.identity)
                kept.append(bottle.identity)
        before = world.tree() if kept else {}
        rich.type_in(world)
        if how == "no-guest-starts":
            let_nothing_start(world)
        else:
            world.stub.fail_at(int(how.split("-")[1]))
        with ExitStack() as block, world.may_refuse(launcher.errors) as outcome:
            for identity in kept:
                block.enter_context(launcher.resume(identity))
            if not kept:
                block.enter_context(launcher.start("dev", backend=world.backend))
            # It took fewer commands, or did without the one that failed.
            world.stub.revive()
        own = next(side.tool for side in sides.backends if side.name == world.backend)
        may_go_well = how != "no-guest-starts" or own == "bwrap"
        seen = {
            "ends as": "refused"
            if may_go_well and outcome.happened == "done"
            else outcome.happened,
            "guests that are left": sorted(world.guests()),
            "recorded": [identity for identity in world.recorded() if identity not in kept],
            "preserved and gone": sorted(set(kept) - set(world.recorded())),
            "files of the record as before": before.items() <= world.tree().items(),
            "listed": launcher.active(world.backend),
            "values outside the guest": rich.exposed(world),
        }
        let_nothing_start(world, starts=True)
        world.stub.revive()
        world.answers.clear()
        rich.type_in(world)
        again = launcher.resume(kept[0]) if kept else launcher.start("dev", backend=world.backend)
        with again as bottle:
            return {**seen, "environment of the next launch": look(bottle, rich)["env"]}

    expected = {
        "ends as": "refused",
        "guests that are left": [],
        "recorded": [],
        "preserved and gone": [],
        "files of the record as before": True,
        "listed": [],
        "values outside the guest": {},
        "environment of the next launch": rich.env,
    }
    sides.check_side(backend, f"failed-steps/{launch}-{how}", body, expected=expected)


#: What leaves the block of a bottle: an error, Ctrl-C, and what `sys.exit` raises.
LEAVING: Final[dict[str, Callable[[], BaseException]]] = {
    "an-error": lambda: ValueError("canary-of-the-caller"),
    "ctrl-c": KeyboardInterrupt,
    "an-exit": lambda: SystemExit(3),
}


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-CLEANUP", "PARITY-RESUME")
@pytest.mark.simulated("guests are looked at from outside")
@pytest.mark.parametrize("kept", [False, True], ids=["forgotten", "preserved"])
@pytest.mark.parametrize("leaving", [*LEAVING, "a-refusal"])
def test_a_block_that_fails_ends_as_any_other(
    sides: Sides, backend: Backend, leaving: str, *, kept: bool
) -> None:
    """What its caller raises comes out as it is, and the guest is gone at once, without a cleanup.

    A refusal of the launcher's own is no exception.
    """
    rich = Rich.marked("dev", "left")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        raised = LEAVING[leaving]() if leaving in LEAVING else None
        left: BaseException | None = None

        def leave(bottle: Bottle) -> None:
            if raised is not None:
                raise raised
            bottle.cp_in(world.home / "not-there", "/tmp/x")

        try:
            with launcher.start("dev", backend=world.backend) as bottle:
                identity = bottle.identity
                if kept:
                    launcher.preserve(identity)
                leave(bottle)
        except pytest.skip.Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at
            left = error
        seen = {
            "comes out": type(left).__name__
            if raised is not None
            else isinstance(left, launcher.errors),
            "as it is": raised is None or left is raised,
            "guests that are left": sorted(world.guests()),
            "recorded": world.recorded() == [identity] * kept,
            "listed": launcher.active(world.backend),
            "values outside the guest": rich.exposed(world),
        }
        if not kept:
            return seen
        rich.type_in(world)
        with launcher.resume(identity) as bottle:
            return {**seen, "comes back": look(bottle, rich)["env"]}

    expected: dict[str, Any] = {
        "comes out": type(LEAVING[leaving]()).__name__ if leaving in LEAVING else True,
        "as it is": True,
        "guests that are left": [],
        "recorded": True,
        "listed": [],
        "values outside the guest": {},
    }
    if kept:
        expected["comes back"] = rich.env
    name = f"failed-steps/left-by-{leaving}-{'preserved' if kept else 'forgotten'}"
    sides.check_side(backend, name, body, expected=expected)


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-RESUME")
@pytest.mark.simulated("guests are looked at from outside")
def test_ctrl_c_at_a_prompt_is_one_launch_less(sides: Sides, backend: Backend) -> None:
    """Nothing of a start is left, and what was to be resumed can be resumed the next time."""
    rich = Rich.marked("dev", "interrupted")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            launcher.preserve(bottle.identity)
        identity = bottle.identity
        world.interrupted = True
        ends = []
        for launch in (
            lambda: launcher.start("dev", backend=world.backend),
            lambda: launcher.resume(identity),
        ):
            try:
                with launch():
                    ends.append("it runs")
            except KeyboardInterrupt:
                ends.append("ctrl-c")
        world.interrupted = False
        seen = {
            "the two launches": ends,
            "guests that are left": sorted(world.guests()),
            "recorded": world.recorded() == [identity],
        }
        rich.type_in(world)
        with launcher.resume(identity) as bottle:
            return {**seen, "comes back": look(bottle, rich)["env"]}

    expected = {
        "the two launches": ["ctrl-c", "ctrl-c"],
        "guests that are left": [],
        "recorded": True,
        "comes back": rich.env,
    }
    sides.check_side(backend, "failed-steps/ctrl-c-at-a-prompt", body, expected=expected)


#: What a tool may print that ends well, and yet says nothing, or nothing that was asked for.
ANSWERS: Final = {
    "nothing": b"",
    "an-empty-line": b"\n",
    "words": b"Everything is fine.\nGo on.\n",
    "no-text": b"\xff\xfe\x00\x80\t\xff\n",
    "null": b"null\n",
    "an-empty-list": b"[]\n",
    "a-list-of-something-else": b'[{"version": 2}, 7, "x"]\n',
    "a-mapping": b'{"machines": [], "Config": {}}\n',
    "half-of-it": b'[{"name": "bot-bottle-dev", "sta',
}


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-CLEANUP", "PARITY-REMEDIATION")
@pytest.mark.simulated("commands answer on request")
@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_is_none_is_no_crash(sides: Sides, backend: Backend, what: str) -> None:
    """Whichever command ends well and says something else, as of another version: no traceback.

    Once it answers again, a cleanup leaves what is preserved, and nothing besides.
    """
    rich = Rich.marked("dev", "unclear")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
        others = sorted(world.guests())
        problems: list[str] = []
        for step in range(1, _STEPS_OF_A_LIFE + 1):
            rich.type_in(world)
            world.stub.fail_at(step, reply=Reply(stdout=ANSWERS[what]))
            calls = len(world.commands.calls)
            outcomes = {each: Refusal() for each in ("list", "approval")}
            with (
                world.may_refuse(launcher.errors) as outcomes["life"],
                launcher.start("dev", backend=world.backend) as bottle,
            ):
                with world.may_refuse(launcher.errors) as outcomes["list"]:
                    launcher.active(world.backend)
                proposal = launcher.propose(bottle.identity, image=OTHER_IMAGE, justification="x")
                with world.may_refuse(launcher.errors) as outcomes["approval"]:
                    launcher.approve(proposal)
            with world.may_refuse(launcher.errors) as outcomes["cleanup"]:
                launcher.cleanup()
            taken = world.commands.calls[calls:][step - 1 : step]
            world.stub.revive()
            world.answers.clear()
            with world.may_refuse(launcher.errors) as last:
                sides.open(world).cleanup()
            found = {
                **{each: outcome.happened for each, outcome in outcomes.items()},
                "cleanup after that": last.happened,
                "guests": sorted(world.guests()),
                "recorded": world.recorded(),
            }
            wanted = {**dict.fromkeys(outcomes, "done or refused"), "cleanup after that": "done"}
            wanted |= {"guests": others, "recorded": [identity]}
            problems += [
                f"{' '.join(taken[0].argv[:3]) if taken else step}: {each}: expected "
                f"{wanted[each]}, found {value}"
                for each, value in found.items()
                if value != wanted[each] and f"{value}" not in str(wanted[each]).split(" or ")
            ]
            if not taken:
                break
        rich.type_in(world)
        with launcher.resume(identity) as bottle:
            env = look(bottle, rich)["env"]
        return {"problems": problems, "all steps": not taken, "environment of what is kept": env}

    expected = {"problems": [], "all steps": True, "environment of what is kept": rich.env}
    sides.check_side(backend, f"failed-steps/answer-{what}", body, expected=expected)


def open_files() -> int:
    """How many descriptors this process has open."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.covers("PARITY-BOTTLE")
@pytest.mark.library("its descriptors are counted")
@pytest.mark.simulated("its files are really there")
@pytest.mark.parametrize("how", BENT)
def test_a_copy_leaves_nothing_open(there: Sides, backend: Backend, how: str) -> None:
    """Done or refused, however often: else every step of a long life would fail for want of descriptors."""
    links, name, place = BENT[how]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        files = dict.fromkeys(("kept.txt", "deep/kept.txt"), "of the host")
        words = {"outside": a_folder(world.home / "outside", files), "up": "../" * 9 + ".."}
        source = a_folder(world.home / "source", files)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.cp_in(a_folder(world.home / "first", {"other.txt": ""}), "/tmp/there")
            for path, target in links.items():
                bottle.exec(script_that_links(target.format(**words), path))
            counts = []
            for copies in (1, _COPIES):
                for _ in range(copies):
                    with world.may_refuse(launcher.errors):
                        bottle.cp_in(source / name, place)
                counts.append(open_files())
        # Something else of this process may open one at any time; each copy would at least one.
        return {"descriptors that each copy leaves open": (counts[1] - counts[0]) // _COPIES}

    expected = {"descriptors that each copy leaves open": 0}
    there.check_side(backend, f"failed-steps/open-{how}", body, expected=expected)
