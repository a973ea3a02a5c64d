"""Whether an ordinary user may make namespaces, tried rather than guessed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_core.base.machine import cannot_make_namespaces


@pytest.fixture
def refused() -> Iterator[Callable[..., str]]:
    """Ask on a machine whose kernel refuses, with these settings."""
    # Not below pytest's own directories: the probe of root is nobody's.
    place = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="harness-test-"))
    place.chmod(0o755)
    command = place / "unshare"
    command.write_text("#!/bin/sh\necho 'unshare: unshare failed: not permitted' >&2\nexit 1\n")
    command.chmod(0o755)

    def ask(**settings: str) -> str:
        for name, value in settings.items():
            file = place / "sys" / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
        return cannot_make_namespaces(unshare=str(command), sysctl=place / "sys")

    yield ask
    shutil.rmtree(place)


@pytest.mark.real
def test_it_is_tried_for_real():
    """The answer is the kernel's, in words when it is no; what the probe mounted went with it."""
    before = Path("/proc/self/mountinfo").read_text()

    reason = cannot_make_namespaces()

    assert before == Path("/proc/self/mountinfo").read_text()
    assert reason == "" or "unshare" in reason or "mount" in reason


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (
            {"kernel__apparmor_restrict_unprivileged_userns": "1"},
            (
                "kernel.apparmor_restrict_unprivileged_userns is 1: "
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
            ),
        ),
        (
            {"kernel__unprivileged_userns_clone": "0", "user__max_user_namespaces": "0"},
            (
                "kernel.unprivileged_userns_clone is 0: sysctl kernel.unprivileged_userns_clone=1; "
                "user.max_user_namespaces is 0: sysctl user.max_user_namespaces=10000"
            ),
        ),
        (
            {"kernel__apparmor_restrict_unprivileged_userns": "0"},
            "no sysctl forbids it: a container's or a security module's rules do",
        ),
        ({}, "no sysctl forbids it: a container's or a security module's rules do"),
    ],
)
def test_the_setting_that_forbids_it_is_named(refused, settings, advice):
    """Where it is refused: which switch, how to turn it, and the command's own message."""
    assert f"{advice} (unshare: unshare failed: not permitted)" == refused(**settings)


def test_without_the_command_it_cannot_be_tried():
    """What is missing is the package that brings it."""
    expected = "no unshare-nowhere on the PATH: apt-get install util-linux"

    assert expected == cannot_make_namespaces(unshare="unshare-nowhere")
