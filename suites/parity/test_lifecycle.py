"""What every bottle does beyond PRD 0042: run, copy, close, and be cleaned up after a crash."""

from __future__ import annotations

from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import (
    ENVIRONMENT,
    USER,
    Guest,
    read_environment,
    script_that_answers,
    script_that_reads,
)
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-BOTTLE")

#: More commands than a launch takes.
_STEPS: Final = 6


def add_foreign_guests(world: World) -> dict[str, Guest]:
    """Guests that the launcher did not start, some with names much like ours."""
    for number, name in enumerate(("my-database", "not-bot-bottle-dev", "bottle", "bot-bottl")):
        world.docker.adopt(name, Guest(image="postgres", labels={"owner": str(number)}))
        world.smolvm.guests[name] = Guest(image="postgres")
    return dict(world.guests())


@pytest.mark.parametrize(
    ("stdout", "stderr", "code"),
    [
        ("out", "", 0),
        ("", "err", 1),
        ("out\n", "err\n", 42),
        ("  kept  \n\n", "Zürich 🍾", 0),
        ("", "", 255),
    ],
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
    name = f"lifecycle/exec-{code}-{stdout!r}-{stderr!r}"
    sides.check_side(backend, name, body, expected=expected)


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


FILES: Final = {
    "text": ("note.txt", b"hello\n"),
    "binary": ("blob.bin", bytes(range(256))),
    "empty": ("empty", b""),
    "name-with-spaces": ("two words.txt", b"x"),
    "name-like-a-flag": ("-rf", b"x"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_is_copied_in(sides: Sides, backend: Backend, what: str) -> None:
    """What lies on the host lies in the guest afterwards, byte for byte."""
    name, contents = FILES[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        source = world.home / "work" / name
        source.parent.mkdir()
        source.write_bytes(contents)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.cp_in(source, f"/tmp/{name}")
            result = bottle.exec(script_that_reads(f"/tmp/{name}"))
        return {
            "returncode": result.returncode,
            "text": result.stdout.encode(errors="surrogateescape") == contents,
        }

    expected = {"returncode": 0, "text": True}
    sides.check_side(backend, f"lifecycle/cp-{what}", body, expected=expected)


def test_copying_what_is_not_there_is_refused(sides: Sides, backend: Backend) -> None:
    """The refusal names the file, and the bottle goes on."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                bottle.cp_in(world.home / "not-there.txt", "/tmp/x")
            code = bottle.exec(script_that_answers("", "", 0)).returncode
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions("not-there.txt"),
            "afterwards": code,
        }

    expected = {"outcome": "refused", "mentions": {"not-there.txt": True}, "afterwards": 0}
    sides.check_side(backend, "lifecycle/cp-missing", body, expected=expected)


@pytest.mark.simulated("guests of others are made up")
def test_closing_is_idempotent_and_touches_nothing_else(sides: Sides, backend: Backend) -> None:
    """The guest is gone after the first time, and the second and third time nothing happens."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        foreign = add_foreign_guests(world)
        outcomes = []
        left: list[str] = []
        active: list[str] = []
        with (
            world.may_refuse(launcher.errors) as leaving,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            for _ in range(3):
                with world.may_refuse(launcher.errors) as outcome:
                    bottle.close()
                outcomes.append(outcome.happened)
            left = sorted(world.guests().keys() - foreign.keys())
            active = launcher.active(world.backend)
        return {
            # Leaving the block closes it once more.
            "outcomes": [*outcomes, leaving.happened],
            "left": left,
            "active": active,
            "foreign guests": sorted(world.guests().keys() & foreign.keys()) == sorted(foreign),
        }

    expected = {"outcomes": ["done"] * 4, "left": [], "active": [], "foreign guests": True}
    sides.check_side(backend, "lifecycle/close", body, expected=expected)


@pytest.mark.simulated("guests of others are made up")
def test_closing_after_the_guest_vanished(sides: Sides, backend: Backend) -> None:
    """A guest that is gone already is no error at the end."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            world.docker.guests.clear()
            world.smolvm.guests.clear()
        return {"outcome": outcome.happened, "active": launcher.active(world.backend)}

    expected = {"outcome": "done", "active": []}
    sides.check_side(backend, "lifecycle/vanished", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
@pytest.mark.simulated("the launcher dies on request")
@pytest.mark.parametrize("step", range(1, _STEPS + 1))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_is_cleaned_up(sides: Sides, backend: Backend, step: int, *, after: bool) -> None:
    """Wherever a launch dies, cleanup removes what it left, secrets included, and only that."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {"TYPED": "?", "PLAIN": "canary-in-the-clear"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        world.answers.append("canary-4711")
        foreign = add_foreign_guests(world)
        world.stub.crash_at(step, after=after)
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            for _ in range(_STEPS):
                bottle.exec(ENVIRONMENT)
        world.stub.revive()
        with world.may_refuse(launcher.errors) as cleaning:
            launcher.cleanup()
        return {
            "launch": outcome.happened,
            "cleanup": cleaning.happened,
            "left": sorted(world.guests().keys() - foreign.keys()),
            "foreign guests": sorted(world.guests().keys() & foreign.keys()) == sorted(foreign),
            "active": launcher.active(world.backend),
            "secrets left in files": [
                text for text in world.readable()["state"] if "canary" in text
            ],
        }

    expected = {
        "launch": "launcher died",
        "cleanup": "done",
        "left": [],
        "foreign guests": True,
        "active": [],
        "secrets left in files": [],
    }
    where = "after" if after else "before"
    sides.check_side(backend, f"lifecycle/crash-{where}-{step}", body, expected=expected)


@pytest.mark.covers("PARITY-CLEANUP")
def test_cleanup_spares_bottles_that_run(sides: Sides, backend: Backend) -> None:
    """What is not left over is not cleaned up."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})
        with launcher.start("dev", backend=world.backend) as bottle:
            launcher.cleanup()
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {"GREETING": inside.get("GREETING")}

    expected = {"GREETING": "hello"}
    sides.check_side(backend, "lifecycle/cleanup-spares", body, expected=expected)


@pytest.mark.covers("PARITY-MANIFEST")
@pytest.mark.simulated("the default backend need not be there")
def test_the_backend_is_chosen_in_order(sides: Sides, backend: Backend) -> None:
    """The flag is stronger than the variable, which is stronger than the default."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        used: dict[str, list[str]] = {}
        for how, flag, variable in (
            ("flag", world.backend, "docker"),
            ("variable", None, world.backend),
            ("default", None, ""),
        ):
            calls = len(world.commands.calls)
            if variable:
                world.environ["BOT_BOTTLE_BACKEND"] = variable
            else:
                world.environ.pop("BOT_BOTTLE_BACKEND", None)
            with launcher.start("dev", backend=flag) as bottle:
                bottle.exec(ENVIRONMENT)
            used[how] = sorted({call.tool for call in world.commands.calls[calls:]})
        world.environ["BOT_BOTTLE_BACKEND"] = "krypton"
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=None),
        ):
            pass
        return {
            "flag and variable agree": used["flag"] == used["variable"],
            "default": used["default"],
            "unknown": outcome.happened,
            "mentions": outcome.mentions("krypton"),
        }

    expected = {
        "flag and variable agree": True,
        "default": ["docker"],
        "unknown": "refused",
        "mentions": {"krypton": True},
    }
    sides.check_side(backend, "lifecycle/choice", body, expected=expected)


#: What is wrong with a manifest → its text, and what the refusal must mention beside the file.
MANIFESTS: Final = {
    "unknown-key": ("---\nimage: x\nimgae: y\n---\n", "imgae"),
    "unknown-egress-key": ("---\negress:\n  rutes: []\n---\n", "rutes"),
    "env-is-a-list": ("---\nenv: [A]\n---\n", "env"),
    "env-value-is-a-number": ("---\nenv:\n  A: 7\n---\n", "A"),
    "missing-parent": ("---\nextends: nowhere\n---\n", "nowhere"),
    "its-own-parent": ("---\nextends: dev\n---\n", "extends"),
    "no-front-matter": ("Just text.\n", "front matter"),
    "front-matter-without-end": ("---\nimage: x\n", "front matter"),
    "no-yaml": ("---\nenv: {A: [\n---\n", "dev.md"),
}


@pytest.mark.covers("PARITY-MANIFEST")
@pytest.mark.parametrize("what", MANIFESTS)
def test_a_bad_manifest_is_refused(sides: Sides, backend: Backend, what: str) -> None:
    """One error names file and key, and nothing is started."""
    text, mention = MANIFESTS[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_manifest("dev", text)
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            pass
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions("dev.md", mention),
            "guests": sorted(world.guests()),
        }

    expected = {"outcome": "refused", "mentions": {"dev.md": True, mention: True}, "guests": []}
    sides.check_side(backend, f"lifecycle/manifest-{what}", body, expected=expected)


@pytest.mark.covers("PARITY-MANIFEST")
def test_a_cycle_of_manifests_is_refused(sides: Sides, backend: Backend) -> None:
    """Manifests that extend each other are named, not followed for ever."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"extends": "base"})
        world.write_bottle("base", {"extends": "dev"})
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            pass
        return {"outcome": outcome.happened, "mentions": outcome.mentions("extends", "base")}

    expected = {"outcome": "refused", "mentions": {"extends": True, "base": True}}
    sides.check_side(backend, "lifecycle/manifest-cycle", body, expected=expected)
