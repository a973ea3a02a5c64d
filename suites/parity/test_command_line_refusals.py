"""What the reference launcher refuses on its command line: one line, with file, place, what was found and expected."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
from typing import Final

import pytest

from suites.parity.shell import (
    BACKENDS,
    MANIFEST,
    PATIENCE_S,
    TOOLS,
    Shell,
    bot_bottle,
    expect_same,
    said,
    show,
    staying,
)
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("start", "nothing"), "there is no bottle 'nothing'"),
        (("start", "../dev"), "../dev"),
        (("start", "dev"), "HOST_TOKEN"),
        (("start", "dev", "--backend", "krypton"), "krypton"),
        (("resume", "nothing"), "nothing"),
        (("resume", "../dev"), "../dev"),
        (("propose", "nothing", "--image", "x", "--justification", "y"), "nothing"),
        (("approve", "../x"), "../x"),
        (("approve", "p-01234567"), "p-01234567"),
    ],
)
def test_a_refusal_is_one_line(shell: Shell, words: tuple[str, ...], reported: str) -> None:
    """What is refused is one line on stderr and status 1, never a traceback, and nothing happens."""
    missing = {"HOST_TOKEN": ""} if words != ("start", "dev") else {}
    environ = {**shell.environ(), **missing}
    environ.pop("HOST_TOKEN", None)
    done = subprocess.run(
        [bot_bottle(), *words],
        env=environ,
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    expect_same("exit status of a refusal", 1, done.returncode)
    assert reported in done.stderr, f"the refusal names {reported}: found {done.stderr!r}"
    expect_same("lines of the refusal", 1, len(done.stderr.strip().splitlines()))
    expect_same("output of a refusal", "", done.stdout)
    expect_same("commands that were run", [], shell.commands.calls())
    expect_same("recorded bottles", [], shell.recorded())


#: What is wrong → manifests by name, and what the refusal says of it beside the file, as words.
FAULTS: Final = {
    "a-number-for-a-text": ({"dev": "image: 7"}, ("dev.md", "image", "number", "string")),
    "a-text-for-a-mapping": ({"dev": "git: please"}, ("dev.md", "git", "string", "mapping")),
    "a-list-for-a-mapping": ({"dev": "git: [please]"}, ("dev.md", "git", "list", "mapping")),
    "a-mapping-for-a-text": ({"dev": "image: {a: b}"}, ("dev.md", "image", "mapping", "string")),
    "yes-for-a-text": ({"dev": "image: yes"}, ("dev.md", "image", "boolean", "string")),
    "no-yaml-in-line-4": ({"dev": "image: x\nenv:\n  A: b: c"}, ("dev.md", "line 4")),
    "a-circle": (
        {"dev": "extends: base", "base": "extends: third", "third": "extends: dev"},
        ("third.md", "extends", "dev", "base", "third"),
    ),
    "no-variable": ({"dev": 'env: {NAME: "${NOT_THERE}"}'}, ("dev.md", "NAME", "NOT_THERE")),
    "no-answer": ({"dev": 'env: {NAME: "?"}'}, ("dev.md", "NAME")),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_refusal_says_where_and_what(shell: Shell, what: str) -> None:
    """File, key or variable, what was found and what was expected: each is a word of its own."""
    manifests, words = FAULTS[what]
    for name, front_matter in manifests.items():
        path = shell.home / ".bot-bottle" / "bottles" / f"{name}.md"
        path.write_text(f"---\n{front_matter}\n---\n")
    done = shell.run("start", "dev")

    expect_same("exit status of a refusal", 1, done.returncode)
    for word in words:
        assert re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", said(done)), (
            f"the refusal says {word!r} as a word: found {said(done)!r}"
        )


def test_a_manifest_that_cannot_be_read_says_why(shell: Shell) -> None:
    """The refusal has the reason of the system: a disk that fails is mended otherwise than a mode."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    manifest.unlink()
    # From its beginning on it has no bytes, for nobody.
    manifest.symlink_to("/proc/self/mem")
    done = shell.run("start", "dev")

    expect_same("exit status of a refusal", 1, done.returncode)
    for word in ("dev.md", os.strerror(errno.EIO)):
        assert word in said(done), f"the refusal says {word!r}: found {said(done)!r}"


#: Ways to write the manifests of one bottle, which has PLAIN.
WRITTEN: Final = {
    "ends-of-lines-of-windows": {"dev": MANIFEST.replace("\n", "\r\n")},
    "blanks-behind-the-end": {"dev": MANIFEST.removesuffix("---\n") + "---  \n"},
    "a-parent-that-says-nothing": {
        "dev": MANIFEST.replace("image:", "extends: base\nimage:"),
        "base": "---\n---\n",
    },
}


@pytest.mark.parametrize(
    ("engine", "how"), [(BACKENDS[n % 2], how) for n, how in enumerate(WRITTEN)]
)
def test_a_manifest_is_read_however_it_is_written(shell: Shell, engine: str, how: str) -> None:
    """Ends of lines and blanks are no part of what it says; nothing between the lines is no fault."""
    for name, text in WRITTEN[how].items():
        path = shell.home / ".bot-bottle" / "bottles" / f"{name}.md"
        path.write_text(text, newline="")
    done = shell.run("start", "dev", "--backend", engine, "--", "sh", "-c", ENVIRONMENT)

    expect_same(f"exit status of the agent; it said {said(done)!r}", 0, done.returncode)
    inside = read_environment(done.stdout.decode(errors="surrogateescape"))
    expect_same("PLAIN in the guest", "canary-literal", inside.get("PLAIN"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "COMMAND"),
        (("nothing",), "nothing"),
        (("start",), "name"),
        (("resume",), "identity"),
        (("approve",), "proposal"),
        (("propose", "dev", "--image", "x"), "--justification"),
        (("propose", "dev", "--justification", "x"), "--image"),
        (("propose", "--image", "x", "--justification", "x"), "identity"),
        (("start", "dev", "--bakend", "docker"), "--bakend"),
    ],
)
def test_words_that_are_none_of_its_own_are_named(
    shell: Shell, words: tuple[str, ...], named: str
) -> None:
    """Status 2 and what is missing or not known; nothing happens."""
    done = shell.run(*words)

    expect_same("exit status of a mistake", 2, done.returncode)
    assert named in show(done), f"the mistake is named: expected {named}, found {show(done)!r}"
    expect_same("commands that were run", [], shell.commands.calls())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_cannot_be_run_is_named(shell: Shell, engine: str) -> None:
    """One that may not be run, or not with a value that is longer than Linux takes: no traceback, no value."""
    tool = TOOLS[engine]
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    text = MANIFEST.replace("canary-literal", "canary-literal" * 20_000)
    (manifest.with_name("long.md")).write_text(text)
    long = shell.run("start", "long", "--backend", engine)
    (shell.commands.folder / tool).chmod(0o644)
    closed = shell.run("start", "dev", "--backend", engine, PATH=str(shell.commands.folder))

    for what, done in (("a long value", long), (f"a {tool} that may not be run", closed)):
        said = done.stderr.decode(errors="surrogateescape")
        expect_same(f"exit status with {what}", 1, done.returncode)
        last = said.strip().splitlines()[-1:]
        assert tool in "".join(last), f"the refusal with {what} names {tool}: found {last}"
        for word in ("Traceback", "canary"):
            assert word not in said, f"{what}: expected a refusal without {word}, found {last}"
    (shell.commands.folder / tool).chmod(0o755)
    expect_same("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect_same("recorded bottles", [], shell.recorded())


def test_a_refusal_has_the_words_of_the_tool(shell: Shell) -> None:
    """What docker says on its errors is told, so that a user knows what to do; nothing is left."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "nowhere.md"
    manifest.write_text("---\nimage: nowhere/to-be-found:1\n---\n")
    done = shell.run("start", "nowhere", "--backend", "docker")

    expect_same("exit status", 1, done.returncode)
    said = "Unable to find image 'nowhere/to-be-found:1'"
    assert said in show(done), (
        f"the refusal says what docker says: expected {said} in {show(done)!r}"
    )
    expect_same("lines of the refusal", 1, len(show(done).strip().splitlines()))
    expect_same("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_is_not_installed_is_named(shell: Shell, engine: str) -> None:
    """Status 1 and its name; nothing is left once it is there again."""
    tool = TOOLS[engine]
    command = shell.commands.folder / tool
    command.rename(command.with_name("elsewhere"))
    done = shell.run("start", "dev", "--backend", engine, PATH=str(shell.commands.folder))

    expect_same("exit status", 1, done.returncode)
    assert tool in show(done), f"the refusal names {tool}: found {show(done)!r}"
    assert "Traceback" not in show(done), f"a refusal is no traceback: found {show(done)!r}"
    command.with_name("elsewhere").rename(command)
    expect_same("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect_same("recorded bottles", [], shell.recorded())


def test_a_list_that_fails_at_the_end_is_a_warning(shell: Shell) -> None:
    """The exit status is the agent's; the bottle stays recorded, which the warning says, for cleanup."""
    docker = shell.commands.folder / "docker"
    real = docker.rename(docker.with_name("docker-itself"))
    docker.write_text(f'#!/bin/sh\n[ "$1" = ps ] && exit 1\nexec {shlex.quote(str(real))} "$@"\n')
    docker.chmod(0o755)
    done = shell.run(
        *("start", "dev", "--backend", "docker", "--", "sh", "-c", script_that_answers("", "", 7))
    )

    expect_same(f"exit status of the agent; it said {show(done)!r}", 7, done.returncode)
    (identity,) = shell.recorded()
    warnings = [line for line in show(done).splitlines() if line.startswith("WARNING")]
    assert identity in "".join(warnings), f"a warning names {identity}: found {warnings}"
    real.rename(docker)
    expect_same("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect_same("recorded bottles", [], shell.recorded())


def test_a_bottle_whose_files_fail_is_named(shell: Shell) -> None:
    """Neither a folder that cannot be made, nor a lock that cannot be removed, is any bottle's."""
    guests = shell.home / ".bot-bottle" / "guests"
    guests.touch()
    made = shell.run("start", "dev", "--backend", "bubblewrap")
    guests.unlink()
    expect_same("exit status without a folder", 1, made.returncode)
    assert "dev-" in said(made), f"the refusal names the bottle: found {said(made)!r}"

    with staying(shell, "start", "dev", "--backend", "docker", "--preserve") as launched:
        (identity,) = shell.recorded()
        lock = shell.home / ".bot-bottle" / "state" / identity / "lock"
        lock.unlink()
        lock.mkdir()
        launched.terminate()
        launched.wait(timeout=PATIENCE_S)
        assert launched.stderr is not None
        error = launched.stderr.read().decode(errors="surrogateescape")
    last = error.strip().splitlines()[-1:]
    assert identity in "".join(last), f"the refusal names {identity}: found {last}"


def test_a_home_that_cannot_be_written_is_named(shell: Shell) -> None:
    """One line and status 1, also for a cleanup, which needs nothing that would have been there."""
    done = shell.run("cleanup", HOME="/dev/null")

    expect_same("exit status of a cleanup", 1, done.returncode)
    assert "Traceback" not in show(done), f"a refusal is no traceback: found {show(done)!r}"
    assert "/dev/null/" in show(done), f"the refusal names the folder: found {show(done)!r}"


def test_a_proposal_of_another_folder_is_none(shell: Shell) -> None:
    """What lies outside the queue was never queued: a path to it is no proposal, and changes nothing."""
    with staying(shell, "start", "dev", "--backend", "docker") as launched:
        (identity,) = shell.recorded()
        words = ("--image", "harness/bottle:2", "--justification", "it needs gcc")
        queued = show(shell.run("propose", identity, *words)).strip()
        root = shell.home / ".bot-bottle"
        (file,) = root.rglob(f"{queued}.json")
        forged = json.loads(file.read_text()) | {"id": "../forged"}
        (file.parent.parent / "forged.json").write_text(json.dumps(forged))
        done = shell.run("approve", "../forged")
        images = [each.image for each in shell.commands.guests().values()]
        launched.terminate()
        launched.wait(timeout=PATIENCE_S)

    expect_same("exit status of the approval", 1, done.returncode)
    assert "../forged" in said(done), f"the refusal names it: found {said(done)!r}"
    expect_same("images", ["harness/bottle:1"], images)
