"""A Debian root for an engine that can pull nothing: debootstrap, then import.

Needs root and the package ``debootstrap``; takes the better part of a minute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.infrastructure.containers._client import engine_errors
from harness_core.infrastructure.containers._recipes import DEBIAN_ROOT, SUITE
from harness_core.process import state_root

MIRROR_VARIABLE: Final = "HARNESS_DEBIAN_MIRROR"

#: 45 s seen on two cores with a near mirror; most of it unpacks packages.
_BOOTSTRAP_S: Final = 900.0

#: Device files belong to the engine, package lists and archives are of no use.
_LEFT_OUT: Final = ("./dev/*", "./proc/*", "./sys/*", "./var/cache/apt/*", "./var/lib/apt/lists/*")


def bootstrap_reason() -> str:
    """Why no Debian root can be made here, and how to change that; empty when one can."""
    reasons = []
    if shutil.which("debootstrap") is None:
        reasons.append("debootstrap is not installed (apt-get install debootstrap)")
    if os.geteuid() != 0:
        reasons.append("only root can run it (you are not root)")
    return " and ".join(reasons)


def import_debian(client: Any, *, say: Callable[[str], None]) -> str:
    """Make a Debian root and import it.

    Returns:
        Its reference.

    Raises:
        Unavailable: debootstrap or root is missing.
        HarnessError: it failed; shows its last lines.
    """
    if reason := bootstrap_reason():
        raise Unavailable(
            "make a Debian root without a registry",
            observed=reason,
            next_step="Get what is missing, or build where the engine can pull its base images",
        )
    with _workplace() as place:
        root, archive = place / "root", place / "root.tar"
        say(f"bootstrapping Debian {SUITE}; this takes about a minute")
        command = ["debootstrap", "--variant=minbase", SUITE, str(root)]
        _run([*command, *filter(None, [os.environ.get(MIRROR_VARIABLE)])])
        excluded = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
        _run(["tar", "--numeric-owner", *excluded, "-C", str(root), "-cf", str(archive), "."])
        say("importing it")
        repository, _, tag = DEBIAN_ROOT.partition(":")
        with engine_errors(f"import {DEBIAN_ROOT}"):
            client.api.import_image_from_file(str(archive), repository=repository, tag=tag)
    return DEBIAN_ROOT


@contextmanager
def _workplace() -> Iterator[Path]:
    """Some 300 MB, at one place: what a killed build left there goes with the next one.

    There is one builder at a time (``one_builder``).
    """
    place = state_root() / "debian"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(argv: list[str]) -> None:
    action = f"run {argv[0]}"
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_BOOTSTRAP_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise NotReady(action, observed=f"{_BOOTSTRAP_S:g} s passed") from error
    if done.returncode != 0:
        raise HarnessError(
            action,
            observed=f"it ended with {done.returncode}",
            next_step=f"If it cannot reach Debian, name a mirror in {MIRROR_VARIABLE}",
            tail=done.stdout.splitlines()[-limits.TAIL_LINES :],
        )
