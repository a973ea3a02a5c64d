"""Literal values of a manifest reach the guest, exactly, on every backend (PRD 0042, forwarded env)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from suites.parity.bottles import OF_THE_HOST, WELL_KNOWN
from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Body, Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-FORWARDED-ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralRow:
    """Literals of one manifest; each must be in the guest as it is."""

    id: str
    env: Mapping[str, str]


ROWS: Final = (
    LiteralRow(id="one", env={"GREETING": "hello"}),
    LiteralRow(id="two", env={"FIRST": "one", "SECOND": "two"}),
    LiteralRow(id="none", env={}),
    LiteralRow(id="empty", env={"EMPTY": "", "AFTER": "x"}),
    LiteralRow(id="spaces", env={"INSIDE": "a  b", "BEFORE": "  a", "BEHIND": "a  ", "ONLY": " "}),
    LiteralRow(id="tabs", env={"TAB": "a\tb", "LAST": "a\t"}),
    LiteralRow(id="double-quotes", env={"QUOTED": '"a"', "ONE": 'a"b'}),
    LiteralRow(id="single-quotes", env={"QUOTED": "'a'", "ONE": "it's"}),
    LiteralRow(id="dollar", env={"NAME": "$HOME", "CALL": "$(id)", "BACK": "`id`", "LAST": "5$"}),
    # An entry is a variable of the host when it is nothing else, and a prompt when it begins as one.
    LiteralRow(
        id="nearly-a-variable",
        env={
            "BEFORE": "a${HOST_ONLY}", "BEHIND": "${HOST_ONLY}/b", "BOTH": "a${HOST_ONLY}b",
            "TWO": "${HOST_ONLY}${HOST_ONLY}", "LINE": "${HOST_ONLY}\n", "SPACE": " ${HOST_ONLY}",
            "SPACE_BEHIND": "${HOST_ONLY} ", "NO_END": "${HOST_ONLY", "NO_NAME": "${}",
            "DEFAULT": "${HOST_ONLY:-x}", "NESTED": "${${HOST_ONLY}}", "BARE": "$HOST_ONLY",
            "DOUBLED": "$${HOST_ONLY}", "NOT_THERE": "${NOT_THERE}/b", "PERCENT": "%HOST_ONLY%",
        },
    ),
    LiteralRow(id="nearly-a-prompt", env={"SPACE": " ?Token", "INSIDE": "a?", "LINE": "\n?", "TILDE": "~"}),
    LiteralRow(id="backslash", env={"PATHLIKE": "C:\\new\\table", "LAST": "a\\", "N": "a\\nb"}),
    LiteralRow(id="equals", env={"PAIR": "a=b=c", "FIRST": "=a", "LAST": "a="}),
    LiteralRow(id="hash", env={"COMMENT": "# not one", "INSIDE": "a # b", "COLOUR": "#fff"}),
    LiteralRow(id="newline", env={"LINES": "one\ntwo\n", "AFTER": "x"}),
    LiteralRow(id="newline-looks-like-another", env={"LINES": "one\nINJECTED=two", "AFTER": "x"}),
    LiteralRow(id="carriage-return", env={"DOS": "one\r\ntwo\r", "LAST": "a\r"}),
    LiteralRow(id="glob", env={"STAR": "*", "SET": "[a-z]?", "BRACES": "{a,b}"}),
    LiteralRow(id="looks-like-a-flag", env={"FLAG": "-e EVIL=1", "LONG": "--rm", "END": "--"}),
    LiteralRow(id="looks-like-a-template", env={"GO": "{{.Id}}", "PERCENT": "%s %d %%", "B": "%(a)s"}),
    LiteralRow(id="looks-like-yaml", env={"N": "null", "T": "true", "NO": "no", "I": "007", "E": "1e3"}),
    LiteralRow(id="unicode", env={"UMLAUT": "Zürich", "EMOJI": "🍾", "MARKS": "e\u0301", "RTL": "שלום"}),
    LiteralRow(id="control", env={"BELL": "a\u0007b", "ESCAPE": "\u001b[31m"}),
    LiteralRow(id="many", env={f"NAME_{n:03}": f"value {n}" for n in range(200)}),
    LiteralRow(id="large", env={"LARGE": "0123456789" * 6000, "AFTER": "x"}),
    LiteralRow(id="prefixes", env={"A": "1", "AB": "2", "ABC": "3", "_A": "4", "A_": "5"}),
    LiteralRow(id="case", env={"name": "lower", "NAME": "upper", "Name": "both"}),
    # A file of variables has lines of 65,535 bytes at most, a word of a command line 131,071.
    *(
        LiteralRow(id=f"long-{what}", env={"LONG": text, "AFTER": "plain"})
        for what, text in {
            "in-ascii": "x" * 65_530,
            "and-one-more": "x" * 65_531,
            "in-two-bytes": "é" * 40_000,
            "in-three-bytes": "日" * 30_000,
        }.items()
    ),
    LiteralRow(id="names-of-the-guest", env={"HOME": "/elsewhere", "PATH": "/opt/bin:/usr/bin:/bin"}),
    LiteralRow(id="names-of-the-host", env={"LANG": "de_DE.UTF-8", "HOST_ONLY": "mine"}),
    LiteralRow(
        id="names-of-the-tools",
        env={
            "DOCKER_HOST": "tcp://127.0.0.1:1",
            "DOCKER_CONFIG": "/nowhere",
            "BOT_BOTTLE_BACKEND": "none",
            "LD_LIBRARY_PATH": "/nowhere",
        },
    ),
)  # fmt: skip


def launch_and_look(env: Mapping[str, str]) -> Body:
    """Launch a bottle with this environment and look at it from inside."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ |= dict.fromkeys(("HOST_ONLY", *WELL_KNOWN), OF_THE_HOST)
        world.write_bottle("dev", {"image": world.image, "env": dict(env)})
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {
            "env": {name: inside[name] for name in env if name in inside},
            "came along from the host": sorted(
                name for name, value in inside.items() if value == OF_THE_HOST
            ),
            "files for literals that others read": [
                oct(mode) for mode, _ in world.docker.env_files if mode & 0o077
            ],
            "split off from a value": sorted(name for name in inside if name == "INJECTED"),
        }

    return body


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_literals_reach_the_guest(sides: Sides, backend: Backend, row: LiteralRow) -> None:
    """Every literal is in the guest's environment, character by character, and nothing else is."""
    expected = {
        "env": dict(row.env),
        "came along from the host": [],
        "files for literals that others read": [],
        "split off from a value": [],
    }

    sides.check_side(
        backend, f"forwarded-env/{row.id}", launch_and_look(row.env), expected=expected
    )


EXTENDS: Final = {
    "child-wins": (
        {"A": "parent", "B": "parent"},
        {"B": "child", "C": "child"},
        {"A": "parent", "B": "child", "C": "child"},
    ),
    "parent-alone": ({"A": "parent"}, {}, {"A": "parent"}),
    "child-empties": ({"A": "parent"}, {"A": ""}, {"A": ""}),
}


@pytest.mark.parametrize("name", EXTENDS)
def test_a_child_manifest_inherits(sides: Sides, backend: Backend, name: str) -> None:
    """What a parent sets is there, and what the child sets is stronger."""
    parent, child, expected = EXTENDS[name]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("base", {"image": world.image, "env": parent})
        world.write_bottle("dev", {"extends": "base", "env": child})
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {"env": {key: inside[key] for key in ("A", "B", "C") if key in inside}}

    sides.check_side(backend, f"forwarded-env/extends-{name}", body, expected={"env": expected})


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"], ids=["line", "paragraph"])
def test_a_separator_of_unicode_ends_no_line(
    sides: Sides, backend: Backend, separator: str
) -> None:
    """A manifest's lines end by a newline; Unicode's separators in a value are characters of it."""
    value = f"one{separator}two{separator}"

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        front = f'image: {world.image}\nenv:\n  POEM: "{value}"\n  AFTER: x\n'
        world.write_manifest("dev", f"---\n{front}---\n\nA bottle.\n")
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {name: inside.get(name) for name in ("POEM", "AFTER")}

    name = f"forwarded-env/separator-{ord(separator):x}"
    sides.check_side(backend, name, body, expected={"POEM": value, "AFTER": "x"})
