"""The model of docker answers as docker does: one table, held against the model and the real thing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from suites.parity.world import World, simulated

pytestmark = pytest.mark.aside("the models of the tools are the suite's own")

#: One conversation: commands without the leading ``docker``, and how each of them ends.
Talk = Sequence[tuple[str, int]]

_RUN: Final = "run --detach --pull never --name NAME IMAGE sleep infinity"

TALKS: Final[dict[str, Talk]] = {
    "no-such-container": (
        ("rm NAME", 1),
        ("rm -f NAME", 0),
        ("inspect NAME", 1),
        ("exec NAME true", 1),
        ("start NAME", 1),
        ("stop NAME", 1),
        ("kill NAME", 1),
        ("rename NAME OTHER", 1),
        ("cp /etc/hostname NAME:/tmp/file", 1),
    ),
    "no-such-image": (
        ("image inspect IMAGE-that-is-missing", 1),
        ("run --detach --pull never --name NAME IMAGE-that-is-missing sleep infinity", 125),
        ("inspect NAME", 1),
    ),
    "label-without-a-name": (
        ("run -d --label =x --name NAME IMAGE sleep infinity", 125),
        ("run -d --label = --name NAME IMAGE sleep infinity", 125),
        ("inspect NAME", 1),
    ),
    "a-life": (
        (_RUN, 0),
        ("inspect NAME", 0),
        ("rm NAME", 1),
        ("exec NAME true", 0),
        ("exec -u root NAME true", 0),
        ("exec -u nobody-of-this-name NAME true", 126),
        ("exec -u 1000 NAME true", 0),
        ("kill NAME", 0),
        ("kill NAME", 1),
        ("exec NAME true", 1),
        ("stop NAME", 0),
        ("start NAME", 0),
        ("start NAME", 0),
        ("exec NAME true", 0),
        ("rm -f NAME", 0),
        ("inspect NAME", 1),
    ),
    "names": (
        (_RUN, 0),
        (_RUN, 125),
        ("rename NAME OTHER", 0),
        ("inspect NAME", 1),
        (_RUN, 0),
        ("rename NAME OTHER", 1),
        ("rm -f NAME OTHER", 0),
    ),
}

talks = pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS.keys())


def endings(world: World, talk: Talk) -> list[tuple[str, int]]:
    """How each command ends in a world; what it makes is removed again."""
    name = f"talk-{secrets.token_hex(4)}"
    seen = []
    try:
        for command, _ in talk:
            filled = (
                command.replace("NAME", name)
                .replace("OTHER", f"{name}-other")
                .replace("IMAGE", world.image)
            )
            reply = world.commands.run(["docker", *filled.split()], env=world.environ)
            seen.append((command, reply.returncode))
    finally:
        for each in (name, f"{name}-other"):
            world.commands.run(["docker", "rm", "-f", each], env=world.environ)
    return seen


def check_endings(talk: Talk, seen: list[tuple[str, int]]) -> None:
    """Compare the exit status of each command."""
    for (command, expected), (_, found) in zip(talk, seen, strict=True):
        assert expected == found, f"docker {command} ends with {expected}: found {found}"


@pytest.mark.simulated("it is the model that is looked at")
@talks
def test_the_model_ends_as_the_table_says(talk: Talk, tmp_path: Path) -> None:
    """Every command ends in the model as the table says."""
    check_endings(talk, endings(simulated("docker", tmp_path / "home"), talk))


@pytest.mark.live("it is docker that is looked at")
@pytest.mark.requires("docker")
@talks
def test_docker_ends_as_the_table_says(
    talk: Talk, real_worlds: Callable[[str, Path], World], tmp_path: Path
) -> None:
    """Every command ends in a real engine as the table says."""
    check_endings(talk, endings(real_worlds("docker", tmp_path / "home"), talk))
