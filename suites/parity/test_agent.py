"""The agent, for which a bottle is there: it has the variables of the manifest, and its end is its own."""

from __future__ import annotations

from typing import Any, Final

import pytest

from suites.parity.bottles import OF_THE_HOST, WELL_KNOWN, Rich, look, of_the_manifest
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import script_that_answers, script_that_dies
from suites.parity.world import OTHER_IMAGE, World

pytestmark = [
    pytest.mark.covers("PARITY-BOTTLE"),
    pytest.mark.simulated(
        "it is what reaches the guest that is looked at, and a terminal is made up"
    ),
]


def had_by(world: World, bottle: Bottle, rich: Rich) -> dict[str, Any]:
    """What everybody who runs something in a guest has of the variables of its manifest."""
    had = {f"a script of {user}": look(bottle, rich, user=user) for user in ("node", "root")}
    for tty in (False, True):
        bottle.exec_agent(["true"], tty=tty)
        inside = world.ran()[-1].env
        had["the agent on a terminal" if tty else "the agent"] = {
            **of_the_manifest(inside, rich),
            "came along from the host": sorted(
                name for name, value in inside.items() if value == OF_THE_HOST
            ),
        }
    return had


#: What was done with a bottle before its agent runs.
BEFORE: Final = ("a-start", "an-approval", "a-resume")


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-SECRET-ENV", "PARITY-FORWARDED-ENV")
@pytest.mark.parametrize("before", BEFORE)
def test_the_agent_has_the_variables(sides: Sides, backend: Backend, before: str) -> None:
    """All of the manifest and none of the host, with a terminal and without, and so has a script of root."""
    rich = Rich.marked("dev", "agent")

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ |= dict.fromkeys(WELL_KNOWN, OF_THE_HOST)
        rich.write(world)
        rich.type_in(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            if before == "a-start":
                return had_by(world, bottle, rich)
            if before == "an-approval":
                proposal = launcher.propose(
                    bottle.identity, image=OTHER_IMAGE, justification="more"
                )
                # A backend that cannot apply it refuses, and the bottle lives.
                with world.may_refuse(launcher.errors):
                    launcher.approve(proposal)
                return had_by(world, bottle, rich)
            launcher.preserve(bottle.identity)
        rich.type_in(world)
        with launcher.resume(bottle.identity) as bottle:
            return had_by(world, bottle, rich)

    script = {"env": rich.env, "elsewhere": []}
    agent = {**script, "came along from the host": []}
    expected = {
        "a script of node": script,
        "a script of root": script,
        "the agent": agent,
        "the agent on a terminal": agent,
    }
    sides.check_side(backend, f"agent/variables-after-{before}", body, expected=expected)


#: Exit statuses that mean something to a shell, or to a tool.
STATUSES: Final = (0, 1, 42, 125, 126, 127, 130, 255)


@pytest.mark.parametrize("code", STATUSES)
def test_the_exit_status_on_a_terminal_is_the_agents(
    sides: Sides, backend: Backend, code: int
) -> None:
    """With a terminal as without one, at a start and at a resume."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        words = ["sh", "-c", script_that_answers("out", "err", code)]
        with launcher.start("dev", backend=world.backend) as bottle:
            launcher.preserve(bottle.identity)
            started = bottle.exec_agent(words, tty=True)
        with launcher.resume(bottle.identity) as bottle:
            return {"started": started, "resumed": bottle.exec_agent(words, tty=True)}

    expected = {"started": code, "resumed": code}
    sides.check_side(backend, f"agent/terminal-status-{code}", body, expected=expected)


@pytest.mark.parametrize("number", [1, 2, 9, 15, 31])
def test_a_signal_on_a_terminal_is_the_agents(sides: Sides, backend: Backend, number: int) -> None:
    """An agent that a signal ends has the status a shell gives it, and the next one runs."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            ended = bottle.exec_agent(["sh", "-c", script_that_dies(number)], tty=True)
            return {"status": ended, "the next": bottle.exec_agent(["true"], tty=True)}

    expected = {"status": 128 + number, "the next": 0}
    sides.check_side(backend, f"agent/terminal-signal-{number}", body, expected=expected)


#: What an agent prints, on its output and as errors.
PRINTED: Final = {
    "words": ("out\n", "err\n"),
    "nothing": ("", ""),
    "blanks-around-it": ("  kept  \n\n", "\t kept \n\n"),
    "lines-of-dos": ("one\r\ntwo\r", "\r\n\r\n"),
    "no-end-of-line": ("Zürich 🍾", "नेपाल"),
    "no-text": ("\udcff\udc80 is no UTF-8", "Z\udcfcrich"),
    "much": ("0123456789" * 6_554, "x" * 40_000),
}


@pytest.mark.parametrize("what", PRINTED)
def test_what_an_agent_prints_is_all_that_is_printed(
    sides: Sides, backend: Backend, what: str
) -> None:
    """Output and errors of a program that runs an agent are those of the agent, unchanged.

    The agent of a library has the output of the library's own process, where nothing can be between.
    """
    out, err = PRINTED[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        script = script_that_answers(out, err, 3)
        with launcher.start("dev", backend=world.backend) as bottle:
            status = bottle.exec_agent(["sh", "-c", script], tty=False)
            printed = getattr(bottle, "printed", {"stdout": out, "stderr": err})
        return {"status": status, **printed}

    expected = {"status": 3, "stdout": out, "stderr": err}
    sides.check_side(backend, f"agent/printed-{what}", body, expected=expected)
