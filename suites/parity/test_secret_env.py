"""Secrets that are typed in and variables of the host reach the guest alone (PRD 0042)."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from suites.parity.bottles import try_to_start
from suites.parity.compare import exposures
from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Body, Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-SECRET-ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRow:
    """One manifest with secrets.

    Attributes:
        id: kebab-case.
        env: what the manifest says.
        guest: what the guest must see of it.
        host: variables of the host.
        answers: what is typed, in the order of the manifest.
        prompts: what each prompt must mention, in that order.
    """

    id: str
    env: Mapping[str, str]
    guest: Mapping[str, str]
    host: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()


#: Names that only begin like those of variables by which docker or its own libraries are steered.
_ALIKE: Final = (
    *("USER_TOKEN", "HOMEPAGE_KEY", "PATHS", "SHELL_X", "GOOGLE_API_KEY", "LDAP_PASSWORD"),
    *("SSLKEY", "NO_PROXY_KEY"),
)

ROWS: Final = (
    SecretRow(
        id="prompt",
        env={"TOKEN": "?"},
        answers=("canary-4711",),
        guest={"TOKEN": "canary-4711"},
        prompts=("TOKEN",),
    ),
    SecretRow(
        id="prompt-with-message",
        env={"TOKEN": "?The key of the shop"},
        answers=("canary-4711",),
        guest={"TOKEN": "canary-4711"},
        prompts=("The key of the shop",),
    ),
    SecretRow(
        id="two-prompts",
        env={"FIRST": "?One", "SECOND": "?Two"},
        answers=("canary-first", "canary-second"),
        guest={"FIRST": "canary-first", "SECOND": "canary-second"},
        prompts=("One", "Two"),
    ),
    SecretRow(
        id="two-prompts-of-one-message",
        env={"FIRST": "?Access key", "PLAIN": "Access key", "SECOND": "?Access key"},
        answers=("canary-first", "canary-second"),
        guest={"FIRST": "canary-first", "PLAIN": "Access key", "SECOND": "canary-second"},
        prompts=("Access key", "Access key"),
    ),
    SecretRow(
        id="messages-that-are-nearly-one",
        env={"FIRST": "?Key", "SECOND": "? Key ", "THIRD": "?key", "FOURTH": "?Key:"},
        answers=("canary-first", "canary-second", "canary-third", "canary-fourth"),
        guest={
            "FIRST": "canary-first",
            "SECOND": "canary-second",
            "THIRD": "canary-third",
            "FOURTH": "canary-fourth",
        },
        prompts=("Key", "Key", "key", "Key:"),
    ),
    SecretRow(
        id="a-message-that-is-the-name-of-another",
        env={"FIRST": "?SECOND", "SECOND": "?", "THIRD": "?FIRST"},
        answers=("canary-first", "canary-second", "canary-third"),
        guest={"FIRST": "canary-first", "SECOND": "canary-second", "THIRD": "canary-third"},
        prompts=("SECOND", "SECOND", "FIRST"),
    ),
    SecretRow(
        id="one-answer-to-two-prompts",
        env={"FIRST": "?One", "SECOND": "?Two", "THIRD": "?Three"},
        answers=("canary-same", "canary-same", "canary-other"),
        guest={"FIRST": "canary-same", "SECOND": "canary-same", "THIRD": "canary-other"},
        prompts=("One", "Two", "Three"),
    ),
    SecretRow(
        id="a-prompt-beside-a-host-variable-of-its-name",
        env={"TOKEN": "?TOKEN", "OTHER": "${TOKEN}"},
        host={"TOKEN": "canary-of-the-host"},
        answers=("canary-4711",),
        guest={"TOKEN": "canary-4711", "OTHER": "canary-of-the-host"},
        prompts=("TOKEN",),
    ),
    *(
        SecretRow(
            id=f"answer-with-{what}",
            env={"TOKEN": "?", "AFTER": "plain"},
            answers=(answer,),
            guest={"TOKEN": answer, "AFTER": "plain"},
            prompts=("TOKEN",),
        )
        for what, answer in {
            "newline": "-----BEGIN-----\nabc\n-----END-----\n",
            "double-quotes": 'canary"4711"',
            "single-quotes": "canary'4711'",
            "dollar": "canary$HOME$(id)",
            "equals": "canary=4711==",
            "backslash": "canary\\n4711\\",
            "spaces": "  canary 4711  ",
            "a-flag": "-e EVIL=1",
            "a-question": "?canary-4711",
            "a-variable": "${HOST_TOKEN}",
            "unicode": "canary-Zürich-🍾",
            "hash": "#canary-4711",
            "percent": "canary%s%(a)s{0}",
        }.items()
    ),
    SecretRow(
        id="host-variable",
        env={"TOKEN": "${HOST_TOKEN}"},
        host={"HOST_TOKEN": "canary-of-the-host"},
        guest={"TOKEN": "canary-of-the-host"},
    ),
    SecretRow(
        id="host-variable-of-the-same-name",
        env={"TOKEN": "${TOKEN}"},
        host={"TOKEN": "canary-of-the-host"},
        guest={"TOKEN": "canary-of-the-host"},
    ),
    SecretRow(
        id="host-variable-empty",
        env={"TOKEN": "${HOST_TOKEN}", "AFTER": "plain"},
        host={"HOST_TOKEN": ""},
        guest={"TOKEN": "", "AFTER": "plain"},
    ),
    SecretRow(
        id="host-variable-with-newline",
        env={"TOKEN": "${HOST_TOKEN}", "AFTER": "plain"},
        host={"HOST_TOKEN": "canary\nof=the\nhost"},
        guest={"TOKEN": "canary\nof=the\nhost", "AFTER": "plain"},
    ),
    SecretRow(
        id="host-variable-that-looks-like-an-entry",
        env={"TOKEN": "${HOST_TOKEN}"},
        host={"HOST_TOKEN": "${OTHER_TOKEN}", "OTHER_TOKEN": "canary-of-another"},
        guest={"TOKEN": "${OTHER_TOKEN}"},
    ),
    SecretRow(
        id="host-variable-twice",
        env={"FIRST": "${HOST_TOKEN}", "SECOND": "${HOST_TOKEN}"},
        host={"HOST_TOKEN": "canary-of-the-host"},
        guest={"FIRST": "canary-of-the-host", "SECOND": "canary-of-the-host"},
    ),
    SecretRow(
        id="swapped-names",
        env={"FIRST": "${SECOND}", "SECOND": "${FIRST}"},
        host={"FIRST": "canary-first", "SECOND": "canary-second"},
        guest={"FIRST": "canary-second", "SECOND": "canary-first"},
    ),
    SecretRow(
        id="names-in-another-case",
        env={"TOKEN": "?", "token": "${HOST_TOKEN}", "Token": "?", "tOKEN": "${host_token}"},
        host={"HOST_TOKEN": "canary-of-the-host", "host_token": "canary-of-another"},
        answers=("canary-first", "canary-second"),
        guest={
            "TOKEN": "canary-first",
            "token": "canary-of-the-host",
            "Token": "canary-second",
            "tOKEN": "canary-of-another",
        },
        prompts=("TOKEN", "Token"),
    ),
    SecretRow(
        id="names-of-the-tools",
        env={"DOCKER_HOST": "?", "HOME": "${HOST_TOKEN}", "LD_PRELOAD": "?"},
        host={"HOST_TOKEN": "/canary-of-the-host"},
        answers=("tcp://canary:1", "/canary/evil.so"),
        guest={
            "DOCKER_HOST": "tcp://canary:1",
            "HOME": "/canary-of-the-host",
            "LD_PRELOAD": "/canary/evil.so",
        },
    ),
    SecretRow(
        id="more-names-of-the-tools",
        env={
            "DOCKER_CONTEXT": "?",
            "DOCKER_CONFIG": "${HOST_TOKEN}",
            "LD_LIBRARY_PATH": "?",
            "HTTPS_PROXY": "?",
            "https_proxy": "${HOST_PROXY}",
            "TMPDIR": "${HOST_TMPDIR}",
        },
        host={
            "HOST_TOKEN": "/canary-of-the-host",
            "HOST_PROXY": "http://canary:3",
            "HOST_TMPDIR": "/canary-tmp",
        },
        answers=("canary-context", "/canary/lib", "http://canary:2"),
        guest={
            "DOCKER_CONTEXT": "canary-context",
            "DOCKER_CONFIG": "/canary-of-the-host",
            "LD_LIBRARY_PATH": "/canary/lib",
            "HTTPS_PROXY": "http://canary:2",
            "https_proxy": "http://canary:3",
            "TMPDIR": "/canary-tmp",
        },
    ),
    SecretRow(
        id="names-that-begin-like-those-of-the-tools",
        env=dict.fromkeys(_ALIKE, "?") | {"GOAL": "${HOST_TOKEN}"},
        host={"HOST_TOKEN": "canary-of\nthe-host"},
        answers=tuple(f"canary-{name}" for name in _ALIKE),
        guest={name: f"canary-{name}" for name in _ALIKE} | {"GOAL": "canary-of\nthe-host"},
    ),
    SecretRow(
        id="every-kind-at-once",
        env={"LITERAL": "plain", "TYPED": "?", "GIVEN": "${HOST_TOKEN}", "LAST": "end"},
        host={"HOST_TOKEN": "canary-of-the-host"},
        answers=("canary-4711",),
        guest={
            "LITERAL": "plain",
            "TYPED": "canary-4711",
            "GIVEN": "canary-of-the-host",
            "LAST": "end",
        },
        prompts=("TYPED",),
    ),
    SecretRow(
        id="many",
        env={f"TOKEN_{n:02}": f"${{HOST_{n:02}}}" for n in range(60)},
        host={f"HOST_{n:02}": f"canary-{n:02}" for n in range(60)},
        guest={f"TOKEN_{n:02}": f"canary-{n:02}" for n in range(60)},
    ),
)

#: Variables of the host that decide what a tool itself does; a value for the guest must not.
_OF_THE_TOOL: Final = (
    *("DOCKER_HOST", "LD_PRELOAD", "HOME", "PATH", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("LD_LIBRARY_PATH", "HTTPS_PROXY", "https_proxy", "TMPDIR"),
)


def hidden(row: SecretRow) -> dict[str, str]:
    """The values of a row that only the guest may see: name in the guest → value."""
    return {
        name: value
        for name, value in row.guest.items()
        if row.env[name][:1] in ("?", "$") and "canary" in value
    }


def launch_and_use(row: SecretRow) -> Body:
    """Launch, read the guest's environment, run the agent; what any other process could have read."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ.update(row.host)
        world.answers += row.answers
        before = dict(world.environ)
        world.write_bottle("dev", {"image": world.image, "env": dict(row.env)})
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
            bottle.exec_agent(["sh", "-c", script_that_answers("", "", 0)], tty=False)
            world.errors += [repr(bottle), " ".join(bottle.agent_argv(["agent"], tty=True))]
            while_running = exposures(hidden(row), world.readable())
        return {
            "env": {name: inside[name] for name in row.env if name in inside},
            "exposed": while_running,
            "exposed afterwards": exposures(hidden(row), world.readable()),
            "in the file for literals": [
                name
                for name, value in hidden(row).items()
                if name not in _OF_THE_TOOL
                and any(value in text for _, text in world.docker.env_files)
            ],
            "host environment as before": world.environ == before,
            "prompts": len(world.asked),
            "prompts mention": [
                wanted in asked for wanted, asked in zip(row.prompts, world.asked, strict=False)
            ],
            "environment of the tools": sorted(
                name
                for name in _OF_THE_TOOL
                if name in row.env
                and any(
                    call.env.get(name) == row.guest[name]
                    for call in world.commands.calls
                    if call.tool != "bwrap"
                )
            ),
        }

    return body


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_secrets_reach_the_guest_alone(sides: Sides, backend: Backend, row: SecretRow) -> None:
    """The guest sees every value exactly; no argv, log, error, prompt or file of the host does."""
    expected = {
        "env": dict(row.guest),
        "exposed": {},
        "exposed afterwards": {},
        "in the file for literals": [],
        "host environment as before": True,
        "prompts": len(row.answers),
        "prompts mention": [True] * len(row.prompts),
        "environment of the tools": [],
    }

    sides.check_side(backend, f"secret-env/{row.id}", launch_and_use(row), expected=expected)


def test_a_missing_host_variable_is_refused(sides: Sides, backend: Backend) -> None:
    """The refusal names the variable, shows no value, and comes before anything is started."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ["THERE"] = "canary-of-the-host"
        env = {"FIRST": "${THERE}", "TOKEN": "${NOT_THERE}"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        outcome, _ = try_to_start(world, launcher)
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions("NOT_THERE"),
            "exposed": exposures({"FIRST": "canary-of-the-host"}, world.readable()),
            "guests": sorted(world.guests()),
        }

    expected = {
        "outcome": "refused",
        "mentions": {"NOT_THERE": True},
        "exposed": {},
        "guests": [],
    }
    sides.check_side(backend, "secret-env/host-variable-missing", body, expected=expected)


def test_an_empty_host_variable_is_there(sides: Sides, backend: Backend) -> None:
    """A variable of the host that is empty is not missing: the guest has it, empty."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ["HOST_TOKEN"] = ""
        world.write_bottle("dev", {"image": world.image, "env": {"TOKEN": "${HOST_TOKEN}"}})
        outcome, inside = try_to_start(world, launcher)
        return {"outcome": outcome.happened, "TOKEN": inside.get("TOKEN")}

    expected = {"outcome": "done", "TOKEN": ""}
    sides.check_side(backend, "secret-env/host-variable-is-empty", body, expected=expected)


def test_an_empty_answer_is_alike(sides: Sides, backend: Backend) -> None:
    """Whether Enter alone is an empty secret or a refusal, it is the same on every backend."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.answers.append("")
        world.write_bottle("dev", {"image": world.image, "env": {"TOKEN": "?", "AFTER": "plain"}})
        outcome, inside = try_to_start(world, launcher)
        return {
            "outcome": outcome.happened,
            "env": {name: inside[name] for name in ("TOKEN", "AFTER") if name in inside},
        }

    sides.check_side(backend, "secret-env/empty-answer", body, expected={})


def reprs(package: str) -> list[str]:
    """How everything that a package has made, and that is there still, shows itself."""
    return [
        repr(each)
        for each in gc.get_objects()
        if str(type(each).__module__).partition(".")[0] == package
        and not isinstance(each, Exception)
    ]


@pytest.mark.library("its objects are looked at")
def test_nothing_shows_a_value_when_it_is_printed(sides: Sides, backend: Backend) -> None:
    """Whatever a launcher holds while a bottle runs, no repr of it has what was typed or given."""
    values = {"TYPED": "canary-typed", "GIVEN": "canary-given", "WRITTEN": "canary-written"}

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ["HOST_TOKEN"] = values["GIVEN"]
        world.answers.append(values["TYPED"])
        env = {"TYPED": "?", "GIVEN": "${HOST_TOKEN}", "WRITTEN": values["WRITTEN"]}
        world.write_bottle("dev", {"image": world.image, "env": env})
        with launcher.start("dev", backend=world.backend) as bottle:
            shown = reprs(type(bottle).__module__.partition(".")[0])
        return {"looked at": bool(shown), "exposed": exposures(values, {"reprs": shown})}

    expected = {"looked at": True, "exposed": {}}
    sides.check_side(backend, "secret-env/reprs", body, expected=expected)


#: Answers that no environment can hold → what is wrong with them.
IMPOSSIBLE: Final = {"a-nul": "canary-4711\0b", "longer-than-any": "canary-4711" * 20_000}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_value_that_cannot_be_handed_on_is_refused(
    sides: Sides, backend: Backend, what: str
) -> None:
    """No traceback, and nothing of it is shown or left; where it can be, the guest has all of it."""
    value = IMPOSSIBLE[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.answers.append(value)
        world.write_bottle("dev", {"image": world.image, "env": {"TOKEN": "?"}})
        outcome, inside = try_to_start(world, launcher)
        there = inside.get("TOKEN") == value
        return {
            "refused, or there": outcome.happened == "refused" or there,
            "shown": [
                place
                for place in ("log", "errors", "prompts", "state")
                if any("canary-4711" in text for text in world.readable()[place])
            ],
            "guests": sorted(world.guests()),
            "recorded": sorted(world.tree()) if world.state.is_dir() else [],
        }

    expected = {"refused, or there": True, "shown": [], "guests": [], "recorded": []}
    sides.check_side(backend, f"secret-env/impossible-{what}", body, expected=expected)


def test_a_closed_terminal_is_refused(sides: Sides, backend: Backend) -> None:
    """Without an answer nothing is started, and what was typed before is not shown."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.answers.append("canary-4711")
        world.write_bottle("dev", {"image": world.image, "env": {"FIRST": "?", "SECOND": "?"}})
        with (
            world.may_refuse((*launcher.errors, EOFError)) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            pass
        return {
            "outcome": outcome.happened,
            "exposed": exposures({"FIRST": "canary-4711"}, world.readable()),
            "guests": sorted(world.guests()),
        }

    expected = {"outcome": "refused", "exposed": {}, "guests": []}
    sides.check_side(backend, "secret-env/no-answer", body, expected=expected)


@pytest.mark.simulated("commands fail on request")
@pytest.mark.parametrize("number", range(1, 5))
def test_a_failing_command_shows_no_value(sides: Sides, backend: Backend, number: int) -> None:
    """Whichever command fails, and whatever it prints, no value gets into the error or the log.

    A literal may stand on a command line, and yet in no message.
    """

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ["HOST_TOKEN"] = "canary-of-the-host"
        world.answers.append("canary-4711")
        env = {"TYPED": "?", "GIVEN": "${HOST_TOKEN}", "PLAIN": "canary-literal"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        world.stub.fail_at(number)
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            for _ in range(4):
                bottle.exec(ENVIRONMENT)
        values = {"TYPED": "canary-4711", "GIVEN": "canary-of-the-host"}
        messages = {place: world.readable()[place] for place in ("log", "errors", "prompts")}
        return {
            "no crash": outcome.happened in ("refused", "done"),
            "exposed": exposures(values, world.readable()),
            "literals in messages": exposures({"PLAIN": "canary-literal"}, messages),
        }

    expected = {"no crash": True, "exposed": {}, "literals in messages": {}}
    sides.check_side(backend, f"secret-env/command-{number}-fails", body, expected=expected)
