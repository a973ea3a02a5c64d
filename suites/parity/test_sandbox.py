"""A bottle is a sandbox: what its guest reaches of the host that runs it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import script_that_reads
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-BOTTLE")

#: What is written into files of the host that are not the guest's.
_CANARY: Final = "canary-of-the-host"

#: The user's own file, a manifest, and two transcripts; a backend may keep a copied file too.
_LOOKED_FOR: Final = 4

#: What is called so, or lies there, tells an engine what to do: who has it has the host.
_ENGINES: Final = ("docker.sock", "containerd.sock", "podman.sock", "smolvm.sock", "run")


def files_of_the_host(world: World) -> list[Path]:
    """Files of the home with the canary in them."""
    return [
        path
        for path in sorted(world.home.rglob("*"))
        if path.is_file() and _CANARY in path.read_text(errors="surrogateescape")
    ]


def read_from_inside(world: World, bottle: Bottle, files: list[Path]) -> list[str]:
    """Which of these files its guest can read as root: by their own path, or below what is mounted."""
    reached = []
    for file in files:
        places = [PurePosixPath(file)]
        for inside, outside in world.mounts():
            if file.is_relative_to(outside):
                places.append(PurePosixPath(inside) / file.relative_to(outside))
        reached += [
            f"{file.relative_to(world.home)} as {place}"
            for place in places
            if _CANARY in bottle.exec(script_that_reads(str(place)), user="root").stdout
        ]
    return reached


@pytest.mark.parametrize("when", ["started", "resumed", "remediated"])
def test_a_guest_reads_no_file_of_the_host(sides: Sides, backend: Backend, when: str) -> None:
    """Not of its user, not of another bottle, nor what is recorded; and no engine listens to it."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        private = world.home / "private.txt"
        private.write_text(_CANARY)
        world.write_bottle("dev", {"image": world.image})
        world.write_bottle("other", {"image": world.image, "env": {"A": _CANARY}})
        with ExitStack() as block:
            other = block.enter_context(launcher.start("other", backend=world.backend))
            other.cp_in(private, "/tmp/copied.txt")
            (world.state / other.identity / "transcript" / "turns").write_text(_CANARY)
            if when == "resumed":
                with launcher.start("dev", backend=world.backend) as bottle:
                    launcher.preserve(bottle.identity)
                bottle = block.enter_context(launcher.resume(bottle.identity))
            else:
                bottle = block.enter_context(launcher.start("dev", backend=world.backend))
            (world.state / bottle.identity / "transcript" / "turns").write_text(_CANARY)
            if when == "remediated":
                proposal = launcher.propose(
                    bottle.identity, image=world.other_image, justification="gcc"
                )
                with world.may_refuse(launcher.errors):
                    launcher.approve(proposal)
            files = files_of_the_host(world)
            return {
                "read from inside": read_from_inside(world, bottle, files),
                "ways to an engine inside": [
                    str(outside) for _, outside in world.mounts() if outside.name in _ENGINES
                ],
                "files that are looked for": len(files) >= _LOOKED_FOR,
            }

    expected = {
        "read from inside": [],
        "ways to an engine inside": [],
        "files that are looked for": True,
    }
    sides.check_side(backend, f"sandbox/files-{when}", body, expected=expected)
