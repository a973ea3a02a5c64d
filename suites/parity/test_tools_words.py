"""A tool that fails may print what it was given: what a launcher tells of it repeats no value."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.bottles import Rich
from suites.parity.compare import Call, Reply, exposures
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-SECRET-ENV"),
    pytest.mark.simulated("commands fail on request"),
]

RICH = Rich.marked("dev", "told")

#: More commands than a launch, a change or an end takes.
_STEPS: Final = 8


def saying(values: dict[str, str]) -> Reply:
    """A command that fails and prints an environment: as it is, and quoted."""
    lines = [
        f"{name}={value}\ninvalid value '{name}={value}' for '-e': {json.dumps(value)}\n"
        for name, value in values.items()
    ]
    text = "".join(lines).encode(errors="surrogateescape")
    return Reply(returncode=1, stdout=text, stderr=b"error: " + text)


def saying_what_it_was_given(call: Call) -> Reply:
    """A command that fails and prints what it was given for the guest, by its environment or a file."""
    files = [
        Path(call.argv[at + 1]).read_text(encoding="utf-8", errors="surrogateescape")
        for at, word in enumerate(call.argv)
        if word == "--env-file"
    ]
    given = {name: value for name, value in call.env.items() if name in RICH.env}
    return saying({**given, "IN A FILE": "".join(files)})


def told(world: World) -> dict[str, Any]:
    """Where values can be read: the hidden ones anywhere, the others in what is said to a user."""
    literals = {name: value for name, value in RICH.literals.items() if value}
    messages = {place: world.readable()[place] for place in ("log", "errors", "prompts")}
    return {"exposed": RICH.exposed(world), "literals in messages": exposures(literals, messages)}


def each_command_failing(
    world: World, errors: tuple[type[Exception], ...], reply: Any, act: Callable[[], object]
) -> list[str]:
    """Do something again and again, each time with the next of its commands failing: what became of it."""
    outcomes = []
    for number in range(1, _STEPS + 1):
        world.answers.clear()
        RICH.type_in(world)
        world.stub.fail_at(number, reply=reply)
        with world.may_refuse(errors) as outcome:
            act()
        world.stub.revive()
        outcomes.append(outcome.happened)
    return outcomes


#: Nothing of it is shown, and it was put to the test.
_NOTHING: Final = {
    "exposed": {},
    "literals in messages": {},
    "outcomes of others": [],
    "refused": True,
}


def of(outcomes: list[str], *, refuses: bool = True) -> dict[str, Any]:
    """How it ended: well each time, and refused at least once."""
    return {
        "outcomes of others": sorted(set(outcomes) - {"done", "refused"}),
        "refused": "refused" in outcomes or not refuses,
    }


@pytest.mark.parametrize("launch", ["start", "resume"])
def test_a_launch_that_fails_repeats_no_value(sides: Sides, backend: Backend, launch: str) -> None:
    """Whichever command of a launch or of its end fails, and whatever it prints."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        RICH.write(world)
        RICH.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)

        def launched() -> AbstractContextManager[Bottle]:
            if launch == "resume":
                return launcher.resume(identity)
            return launcher.start("dev", backend=world.backend)

        def act() -> None:
            with launched():
                pass

        outcomes = each_command_failing(world, launcher.errors, saying(RICH.env), act)
        launcher.cleanup()
        return {**told(world), **of(outcomes), "guests": sorted(world.guests())}

    expected = {**_NOTHING, "guests": []}
    sides.check_side(backend, f"tools-words/{launch}", body, expected=expected)


@pytest.mark.covers("PARITY-SECRET-ENV", "PARITY-REMEDIATION")
def test_an_approval_that_fails_repeats_no_value(sides: Sides, backend: Backend) -> None:
    """Another launcher approves: whichever of its commands fails, and prints what it was given."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        RICH.write(world)
        RICH.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            proposal = launcher.propose(identity, image=OTHER_IMAGE, justification="gcc")
            other = sides.open(world)
            outcomes = each_command_failing(
                world, other.errors, saying_what_it_was_given, lambda: other.approve(proposal)
            )
        return {**told(world), **of(outcomes), "guests": sorted(world.guests())}

    expected = {**_NOTHING, "guests": []}
    sides.check_side(backend, "tools-words/approval", body, expected=expected)


@pytest.mark.covers("PARITY-SECRET-ENV", "PARITY-BOTTLE")
@pytest.mark.library("what a program runs for this need not know the values")
def test_a_copy_or_a_close_that_fails_repeats_no_value(sides: Sides, backend: Backend) -> None:
    """Whoever holds the bottle knows its values, and takes them out of what the tool says."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        RICH.write(world)
        RICH.type_in(world)
        source = world.home / "file.txt"
        source.write_text("text", encoding="utf-8")
        outcomes = []
        with launcher.start("dev", backend=world.backend) as bottle:
            for act in (lambda: bottle.cp_in(source, "/tmp/file.txt"), bottle.close):
                outcomes += each_command_failing(world, launcher.errors, saying(RICH.env), act)
        return {**told(world), **of(outcomes, refuses=world.backend != "bubblewrap")}

    sides.check_side(backend, "tools-words/copy-and-close", body, expected=_NOTHING)
