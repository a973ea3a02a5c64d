"""Scripts and agents in a bottle: what they answer, which signals reach them, whose they are, their terminal."""

from __future__ import annotations

from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import (
    USER,
    USERS,
    script_that_answers,
    script_that_dies,
)
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-BOTTLE")


@pytest.mark.parametrize(
    ("stdout", "stderr", "code"),
    [
        ("out", "", 0),
        ("", "err", 1),
        ("out\n", "err\n", 42),
        ("  kept  \n\n", "Zürich 🍾", 0),
        ("", "", 255),
        ("one\r\ntwo\r", "\r\n\r\n", 2),
        ("\n\nfirst", "\t\x1b[31m\x07", 126),
        ("नेपाल\u2028\ufeff", "e\u0301", 127),
        pytest.param(
            *("\udcff\udc80 is no UTF-8", "Z\udcfcrich", 128),
            marks=pytest.mark.simulated("docker's own command line takes UTF-8 alone"),
        ),
        ("'$HOME' \"`id`\" \\n %s", "--rm -e X=1", 137),
        ("0123456789" * 6_554, "x" * 40_000, 254),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_a_script_answers_as_it_did(
    sides: Sides, backend: Backend, stdout: str, stderr: str, code: int
) -> None:
    """Output, errors and exit status come back apart and unchanged."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        script = script_that_answers(stdout, stderr, code)
        with launcher.start("dev", backend=world.backend) as bottle:
            result = bottle.exec(script)
            agent = bottle.exec_agent(["sh", "-c", script], tty=False)
        return {
            "stdout": result.stdout,
            "stderr": result.stderr,
            "returncode": result.returncode,
            "agent returncode": agent,
        }

    expected = {"stdout": stdout, "stderr": stderr, "returncode": code, "agent returncode": code}
    sides.check_side(backend, f"lifecycle/exec-{code}-{stdout[:12]!r}", body, expected=expected)


@pytest.mark.parametrize("number", [1, 2, 9, 15, 31])
def test_a_signal_comes_through(sides: Sides, backend: Backend, number: int) -> None:
    """A script that a signal ends has the status a shell gives it, and the bottle goes on."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            result = bottle.exec(script_that_dies(number))
            agent = bottle.exec_agent(["sh", "-c", script_that_dies(number)], tty=False)
            after = bottle.exec(script_that_answers("on", "", 0)).stdout
        return {"returncode": result.returncode, "agent returncode": agent, "afterwards": after}

    expected = {"returncode": 128 + number, "agent returncode": 128 + number, "afterwards": "on"}
    sides.check_side(backend, f"lifecycle/signal-{number}", body, expected=expected)


#: What an agent is asked to run; a tool may have a use for some of these words itself.
WORDS: Final = {
    "signs": ("cat", "--", '/tmp/it\'s a "file"\n $HOME -e X=1'),
    "several-dashes": ("printf", "%s\\0", "--", "one", "--", "--"),
    "flags": ("printf", "%s\\0", "-u", "root", "-e", "X=1", "--name", "x", "-it", "--rm"),
    "empty": ("printf", "%s\\0", "", " ", "\n", ""),
}


@pytest.mark.simulated("it is what reaches the guest that is looked at")
@pytest.mark.parametrize("what", WORDS)
@pytest.mark.parametrize("tty", [True, False], ids=["terminal", "no-terminal"])
def test_the_agents_words_reach_the_guest(
    sides: Sides, backend: Backend, what: str, *, tty: bool
) -> None:
    """Every word as it is, as the agent's user, with an input, and with a terminal where asked for."""
    words = list(WORDS[what])

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.exec_agent(words, tty=tty)
            ran = world.ran()[-1]
            guests = [name.split()[1] for name in world.guests()]
            command = bottle.agent_argv(words, tty=tty)
        return {
            "argv": list(ran.argv),
            "user": ran.user,
            "terminal": ran.tty in (None, tty),
            "input": ran.interactive in (None, True),
            "its own guest": [ran.guest] == (guests or [""]),
            "named as a bottle": [name.startswith("bot-bottle-") for name in guests] in ([], [True]),
            "the command is of strings": [type(word).__name__ for word in command if type(word) is not str],
        }  # fmt: skip

    expected = {
        "argv": words,
        "user": "node",
        "terminal": True,
        "input": True,
        "its own guest": True,
        "named as a bottle": True,
        "the command is of strings": [],
    }
    sides.check_side(backend, f"lifecycle/agent-words-{what}-{tty}", body, expected=expected)


@pytest.mark.parametrize("user", ["node", "root"])
def test_a_script_runs_as_the_user_it_names(sides: Sides, backend: Backend, user: str) -> None:
    """The user of a script is the one asked for; ``node`` by default."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            given = bottle.exec(USER, user=user).stdout.strip()
            default = bottle.exec(USER).stdout.strip()
        return {f"as {user}": given, "by default": default}

    expected = {f"as {user}": user, "by default": "node"}
    sides.check_side(backend, f"lifecycle/user-{user}", body, expected=expected)


#: Users that a guest does not have, or has under another name.
OTHERS: Final = {
    "a-name-of-nobody": "nobody-of-this-name",
    "in-capitals": "ROOT",
    "and-a-blank": "root ",
    "empty": "",
    "a-number": "1000",
}


@pytest.mark.parametrize("who", OTHERS)
def test_a_script_runs_as_nobody_else(sides: Sides, backend: Backend, who: str) -> None:
    """As a user that the guest does not know it runs not at all; as one it knows by a number, as that."""
    user = OTHERS[who]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        ran_as: list[str] = []
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                result = bottle.exec(USER, user=user)
                ran_as += [result.stdout.strip()] if result.returncode == 0 else []
            default = bottle.exec(USER).stdout.strip()
        return {
            "no traceback": outcome.happened in ("done", "refused"),
            "ran as somebody else": [
                name for name in ran_as if name not in (user, USERS.get(user))
            ],
            "by default": default,
        }

    expected = {"no traceback": True, "ran as somebody else": [], "by default": "node"}
    sides.check_side(backend, f"lifecycle/user-{who}", body, expected=expected)


def test_the_agents_command_takes_a_terminal_when_it_has_one(
    sides: Sides, backend: Backend
) -> None:
    """The command ends in the agent's own words, and only with a terminal asks for one."""
    words = ["agent", "--flag", "two words", "it's"]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            with_tty = bottle.agent_argv(words, tty=True)
            without = bottle.agent_argv(words, tty=False)
        return {
            "own words": [with_tty[-4:] == words, without[-4:] == words],
            "tool": [with_tty[0] == without[0], "/" not in with_tty[0] or with_tty[0][0] == "/"],
        }

    expected = {"own words": [True, True], "tool": [True, True]}
    sides.check_side(backend, "lifecycle/agent-argv", body, expected=expected)
