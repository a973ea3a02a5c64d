"""What a launcher in a process of its own does, stopped between two of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from suites.parity.bottles import Rich, look
from suites.parity.compare import exposures
from suites.parity.launcher import Bottle, Launcher
from suites.parity.processes import Act, Process, in_a_process, settle
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

__all__ = [
    "RICH",
    "STEPS",
    "approval",
    "approve",
    "beside",
    "clean_up",
    "ends",
    "fresh",
    "kept",
    "of_bottles",
    "problems",
    "readable_by_others",
    "resume",
    "start",
]

#: The bottle of every one of them.
RICH: Final = Rich.marked("dev", "killed")

#: More steps than anything here takes.
STEPS: Final = 200


def fresh(sides: Sides, world: World) -> World:
    """Another home like that of a world, with tools of its own."""
    home = sides.homes / f"{next(sides.numbers):05} {world.backend}"
    made = sides.make_world(world.backend, home)
    RICH.write(made)
    RICH.type_in(made)
    return made


def start(world: World, launcher: Launcher, stop: Callable[[str], None]) -> Any:
    """Start a bottle, look at it, preserve it and end it."""
    with launcher.start("dev", backend=world.backend) as bottle:
        seen = look(bottle, RICH)
        stop("runs")
    return [bottle.identity, seen]


def kept(sides: Sides, world: World) -> str:
    """A preserved bottle; its identity. The values of the next launch are typed in."""
    launcher = sides.open(world)
    with launcher.start("dev", backend=world.backend) as bottle:
        launcher.preserve(bottle.identity)
        (world.state / bottle.identity / "transcript" / "turns").write_text("1\n")
    RICH.type_in(world)
    return bottle.identity


def resume(identity: str) -> Act:
    """Resume a bottle and look at it."""

    def act(_: World, launcher: Launcher, stop: Callable[[str], None]) -> Any:
        with launcher.resume(identity) as bottle:
            seen = look(bottle, RICH)
            stop("runs")
        return [bottle.identity, seen]

    return act


def approve(proposal: str) -> Act:
    """Approve a proposal."""

    def act(_: World, launcher: Launcher, __: Callable[[str], None]) -> Any:
        launcher.approve(proposal)
        return "applied"

    return act


@contextmanager
def approval(
    sides: Sides, world: World, *, steps: int
) -> Iterator[tuple[World, Launcher, Bottle, str, Process]]:
    """A bottle that runs, and an approval for it that has taken so many steps.

    In a home of its own: that, its launcher, the bottle, the proposal, and the process that approves.
    """
    left = fresh(sides, world)
    launcher = sides.open(left)
    with launcher.start("dev", backend=left.backend) as bottle:
        proposal = launcher.propose(bottle.identity, image=OTHER_IMAGE, justification="gcc")
        with in_a_process(sides, left, approve(proposal)) as process:
            process.advance(steps=steps)
            yield left, launcher, bottle, proposal, process


def clean_up(_: World, launcher: Launcher, __: Callable[[str], None]) -> Any:
    """Clean up."""
    launcher.cleanup()
    return "cleaned up"


def problems(where: str, checks: dict[str, tuple[Any, Any]]) -> list[str]:
    """What is not as expected: check → what is expected, what was found."""
    return [
        f"{where}: {what}: expected {expected!r}, found {found!r}"
        for what, (expected, found) in checks.items()
        if expected != found
    ]


def beside(
    sides: Sides, make: Callable[[], tuple[World, Act, Act]]
) -> Iterator[tuple[str, World, Process, Process]]:
    """One process between every two steps of another: each time both, where they stopped.

    Both stop where their bottle runs, or at their end.
    """
    for steps in range(STEPS):
        world, first, second = make()
        with in_a_process(sides, world, first) as one:
            if one.advance(steps=steps, point="runs").kind in ("point", "done"):
                return
            where = f"one before {one.at}, then the other"
            with in_a_process(sides, world, second) as two:
                two.advance(point="runs")
                settle(one, two, point="runs")
                yield where, world, one, two


def ends(*processes: Process) -> list[Any]:
    """What processes come to; ``"waits"`` for one that does not come to its end."""
    settle(*processes)
    return [each.at.what if each.at.kind == "done" else "waits" for each in processes]


def readable_by_others(world: World) -> dict[str, tuple[str, ...]]:
    """Files of the home with a value in them that others may read: file → variables."""
    texts = {
        f"{path.name} with mode {path.stat().st_mode & 0o777:o}": [
            path.read_text(errors="surrogateescape")
        ]
        for path in world.home.rglob("*")
        if path.is_file() and path.parent.name != "bottles" and path.stat().st_mode & 0o077
    }
    return exposures(RICH.hidden, texts)


def of_bottles(world: World, identities: list[str]) -> list[str]:
    """What is called after one of these bottles, anywhere in the home."""
    root = world.home / ".bot-bottle"
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if any(path.name.startswith(identity) for identity in identities)
    ]
