"""What every bottle does beyond PRD 0042: run, copy, close, and be cleaned up after a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import (
    ENVIRONMENT,
    USER,
    USERS,
    Guest,
    read_environment,
    script_that_answers,
    script_that_dies,
    script_that_links,
    script_that_reads,
    script_that_shows_the_mode,
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


FILES: Final = {
    "text": ("note.txt", b"hello\n"),
    "binary": ("blob.bin", bytes(range(256))),
    "empty": ("empty", b""),
    "name-with-spaces": ("two words.txt", b"x"),
    "name-like-a-flag": ("-rf", b"x"),
    "name-with-a-colon": ("a:b.txt", b"x"),
    "name-with-quotes": ('it\'s "a" $HOME.txt', b"x"),
    "name-of-another-script": ("नेपाल-🍾.txt", b"x"),
    "lines-of-dos": ("dos.txt", b"one\r\ntwo\r\n\r"),
    "a-mebibyte-and-one": ("large.bin", bytes(range(256)) * 4096 + b"\xff"),
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


#: Names that are bytes and no more: none is another's, and the longest is as long as a name can be.
BYTES: Final = {
    "no-utf-8": "Z\udcfcrich\udcff.txt",
    "a-newline": "a\nb.txt",
    "a-newline-at-the-end": "b.txt\n",
    "a-sign-and-a-mark": "e\u0301.txt",
    "a-sign-that-has-it": "\u00e9.txt",
    "as-long-as-can-be": "x" * 255,
    "letters-as-long-as-can-be": "\u00e9" * 127,
}


@pytest.mark.simulated("files that are really there, whose names are bytes")
def test_names_are_bytes(there: Sides, backend: Backend) -> None:
    """A file of any name arrives under it, by itself and in a folder: none is changed, folded or passed over."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        folder = world.home / "work"
        for name in BYTES.values():
            (folder / "deep" / name).mkdir(parents=True)
            (folder / "deep" / name / name).write_bytes(os.fsencode(name))
            (folder / name).write_bytes(os.fsencode(name))
        problems: dict[str, str] = {}
        with launcher.start("dev", backend=world.backend) as bottle:

            def look_at(what: str, name: str, place: str) -> None:
                text = bottle.exec(script_that_reads(place)).stdout
                if os.fsencode(text) != os.fsencode(name):
                    problems[what] = f"{place}: found {text!r}"

            for what, name in BYTES.items():
                with world.may_refuse(launcher.errors) as outcome:
                    bottle.cp_in(folder / name, f"/tmp/{name}")
                if outcome.happened != "done":
                    problems[what] = f"{outcome.happened} {outcome.text}"
                else:
                    look_at(what, name, f"/tmp/{name}")
            with world.may_refuse(launcher.errors) as outcome:
                bottle.cp_in(folder, "/tmp/folder")
            for what, name in BYTES.items() if outcome.happened == "done" else ():
                look_at(f"{what}, in a folder", name, f"/tmp/folder/{name}")
                look_at(f"{what}, of a folder", name, f"/tmp/folder/deep/{name}/{name}")
        return {"the folder": outcome.happened, "names that are not there": problems}

    expected: dict[str, Any] = {"names that are not there": {}, "the folder": "done"}
    there.check_side(backend, "lifecycle/cp-names", body, expected=expected)


def test_what_is_copied_in_is_its_owners(sides: Sides, backend: Backend) -> None:
    """Wherever a guest keeps a file that only its owner may read, no other user of the host reaches it."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        source = world.home / "work" / "private.txt"
        source.parent.mkdir()
        source.write_text("canary-of-a-file", encoding="utf-8")
        source.chmod(0o600)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.cp_in(source, "/tmp/private.txt")
            bottle.cp_in(source.parent, "/home/node/work")
            root = world.home / ".bot-bottle"
            reached = [
                str(path.relative_to(root))
                for path in sorted(root.rglob("*"))
                if path.is_file()
                and b"canary-of-a-file" in path.read_bytes()
                and path.stat().st_mode & 0o004
                and all(above.stat().st_mode & 0o001 for above in _between(path, root))
            ]
            listed = [
                str(path.relative_to(root))
                for path in sorted(root.rglob("private.txt"))
                if all(above.stat().st_mode & 0o001 for above in _between(path, root))
                and path.parent.stat().st_mode & 0o004
            ]
        return {"files that others read": reached, "folders that others list": listed}

    expected = {"files that others read": [], "folders that others list": []}
    sides.check_side(backend, "lifecycle/cp-private", body, expected=expected)


def _between(path: Path, root: Path) -> list[Path]:
    """The folders of a path below a root."""
    return [above for above in path.parents if root in above.parents]


@pytest.mark.parametrize("name", ["near.txt", "-n", "--help", "-", "a:b.txt"])
def test_a_relative_path_is_copied_in(sides: Sides, backend: Backend, name: str) -> None:
    """It is looked for where its user is, also when a tool would take it for an option."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        folder = world.home / "where one is"
        folder.mkdir()
        (folder / name).write_text("near", encoding="utf-8")
        with launcher.start("dev", backend=world.backend) as bottle:
            with contextlib.chdir(folder):
                bottle.cp_in(Path(name), "/tmp/relative")
            return {"text": bottle.exec(script_that_reads("/tmp/relative")).stdout}

    sides.check_side(backend, f"lifecycle/cp-relative{name}", body, expected={"text": "near"})


def test_a_folder_is_copied_in(sides: Sides, backend: Backend) -> None:
    """With all that is in it; a second copy of a file takes the place of the first."""
    tree = {
        "a.txt": b"one",
        "deep er/b.bin": bytes(range(256)),
        "deep er/still/empty": b"",
        ".hidden": b"dot",
        ".dot er/.deep/x": b"dots",
        "-n": b"dash",
        "a  b\tc": b"blanks",
        "Z\u00fcrich \u65e5\u672c": b"any script",
    }

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        for name, contents in tree.items():
            file = world.home / "work" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
        seen: dict[str, Any] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.cp_in(world.home / "work", "/tmp/new folder")
            for name, contents in tree.items():
                result = bottle.exec(script_that_reads(f"/tmp/new folder/{name}"))
                seen[name] = result.stdout.encode(errors="surrogateescape") == contents
            (world.home / "work" / "a.txt").write_bytes(b"two, and longer")
            bottle.cp_in(world.home / "work" / "a.txt", "/tmp/new folder/a.txt")
            second = bottle.exec(script_that_reads("/tmp/new folder/a.txt")).stdout
            missing = bottle.exec(script_that_reads("/tmp/new folder/none")).returncode
        return {"files": seen, "second copy": second, "a file that was not copied": missing}

    expected = {
        "files": dict.fromkeys(tree, True),
        "second copy": "two, and longer",
        "a file that was not copied": 1,
    }
    sides.check_side(backend, "lifecycle/cp-folder", body, expected=expected)


#: How a guest bends a path: what it links, what is copied, and to where.
BENT: Final = {
    "the-file": ({"/home/node/x": "{outside}/kept.txt"}, "kept.txt", "/home/node/x"),
    "a-file-to-be": ({"/tmp/x": "{outside}/new.txt"}, "kept.txt", "/tmp/x"),
    "by-a-second-link": ({"/tmp/x": "y", "/tmp/y": "{outside}/kept.txt"}, "kept.txt", "/tmp/x"),
    "up-and-down": ({"/tmp/x": "{up}{outside}/kept.txt"}, "kept.txt", "/tmp/x"),
    "the-folder-above": ({"/home/node/d": "{outside}"}, "kept.txt", "/home/node/d/kept.txt"),
    "higher-up": ({"/home/node/d": "{outside}"}, "kept.txt", "/home/node/d/deep/er/new.txt"),
    "a-folder-to-copy-to": ({"/tmp/d": "{outside}"}, "kept.txt", "/tmp/d/"),
    "the-folder": ({"/home/node/d": "{outside}"}, "", "/home/node/d"),
    "a-folder-in-it": ({"/tmp/there/deep": "{outside}"}, "", "/tmp/there"),
    "a-file-in-it": ({"/tmp/there/kept.txt": "{outside}/kept.txt"}, "", "/tmp/there"),
    "a-circle": ({"/tmp/x": "y", "/tmp/y": "x"}, "kept.txt", "/tmp/x"),
    "by-dots-from-the-guests-home": ({}, "kept.txt", "/home/node/../../outside/kept.txt"),
    "by-dots-to-a-file-to-be": ({}, "kept.txt", "/tmp/../../../../outside/new.txt"),
    "by-dots-and-all-of-the-path": ({}, "kept.txt", "/tmp/{up}{outside}/kept.txt"),
    "by-dots-a-folder": ({}, "", "/home/node/{up}{outside}"),
    "not-at-all-to-a-folder": ({}, "kept.txt", "/tmp/there"),
}


def made_of(folder: Path) -> dict[str, str]:
    """Every file, link and folder below a folder: its path → its mode and what it holds."""
    return {
        str(path.relative_to(folder)): f"{path.lstat().st_mode:o} "
        + (
            str(path.readlink())
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else ""
        )
        for path in sorted(folder.rglob("*"))
    }


def a_folder(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder of the host with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


#: A real `docker cp` nests what it copies in a folder that is there, so that nothing is where it is said.
NESTED: Final = ("a-folder-in-it", "a-file-in-it", "not-at-all-to-a-folder")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=pytest.mark.simulated("docker nests the second copy"))
        if how in NESTED
        else how
        for how in BENT
    ],
)
def test_a_copy_does_not_leave_the_guest(sides: Sides, backend: Backend, how: str) -> None:
    """Whatever a guest has linked, nothing of the host is changed; what is not refused is there."""
    links, name, bent = BENT[how]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        names = ("kept.txt", "deep/kept.txt")
        outside = a_folder(world.home / "outside", dict.fromkeys(names, "of the host"))
        source = a_folder(world.home / "source", dict.fromkeys(names, "copied"))
        first = a_folder(world.home / "first", {"other.txt": ""})
        words = {"outside": outside, "up": "../" * 9 + ".."}
        place = bent.format(**words)
        before = made_of(outside)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.cp_in(first, "/tmp/there")
            linked = [
                bottle.exec(script_that_links(target.format(**words), path)).returncode
                for path, target in links.items()
            ]
            with world.may_refuse(launcher.errors) as outcome:
                bottle.cp_in(source / name, place)
            file = place + ("kept.txt" if place.endswith("/") else "" if name else "/kept.txt")
            inside = bottle.exec(script_that_reads(file)).stdout
            after = made_of(outside)
            left = sum(
                path.is_file() and path.read_bytes() == b"copied"
                for path in (world.home / ".bot-bottle").rglob("*")
            )
        launcher.cleanup()
        return {
            "links in the guest": linked,
            "the host's files, changed": {
                path: after.get(path, "gone")
                for path in before.keys() | after.keys()
                if after.get(path) != before.get(path)
            },
            "no traceback": outcome.happened in ("done", "refused"),
            "copied or refused": outcome.happened == "refused" or inside == "copied",
            "left by a copy of one file that is refused": left
            if name and outcome.happened == "refused"
            else 0,
            "changed by its end": made_of(outside) != before,
        }

    expected = {
        "links in the guest": [0] * len(links),
        "the host's files, changed": {},
        "no traceback": True,
        "copied or refused": True,
        "left by a copy of one file that is refused": 0,
        "changed by its end": False,
    }
    sides.check_side(backend, f"lifecycle/cp-by-a-link-{how}", body, expected=expected)


#: Permissions that a file has; a second copy gives it the next ones.
MODES: Final = (0o600, 0o755, 0o644, 0o700, 0o400, 0o640, 0o555)


def read_by_others(world: World, text: str) -> list[str]:
    """Files of the launcher that hold a text and that another user of the host can read."""
    top = world.home / ".bot-bottle"
    return [
        f"read by other users of the host: expected no file, found one of mode "
        f"{path.stat().st_mode & 0o777:o}: {path.relative_to(world.home)}"
        for path in sorted(top.rglob("*"))
        if path.is_file()
        and path.stat().st_mode & 0o004
        and all(each.stat().st_mode & 0o001 for each in path.parents if each.is_relative_to(top))
        and text in path.read_text(errors="surrogateescape")
    ]


def test_a_copy_may_be_read_and_run_by_whom_the_file_may(sides: Sides, backend: Backend) -> None:
    """What its owner can run can be run, and what others cannot read is closed to them."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        folder = a_folder(world.home / "work", {f"{mode:o}": "canary-closed" for mode in MODES})
        problems: list[str] = []

        def look_at(bottle: Bottle, place: str, mode: int) -> None:
            shown = bottle.exec(script_that_shows_the_mode(place)).stdout.strip()
            found = int(shown or "0", 8)
            if (found ^ mode) & 0o100 or found & ~mode & 0o007:
                problems.append(f"{place}: expected a mode like {mode:o}, found {shown}")

        with launcher.start("dev", backend=world.backend) as bottle:
            for mode in MODES:
                (folder / f"{mode:o}").chmod(mode)
                bottle.cp_in(folder / f"{mode:o}", "/tmp/one")
                look_at(bottle, "/tmp/one", mode)
                if not mode & 0o004:
                    problems += read_by_others(world, "canary-closed")
            for _ in range(2):
                bottle.cp_in(folder, "/home/node/all")
                for mode in MODES:
                    look_at(bottle, f"/home/node/all/{mode:o}", mode)
        return {"problems": problems}

    sides.check_side(backend, "lifecycle/cp-modes", body, expected={"problems": []})


def test_links_in_a_folder_mean_the_same_in_the_guest(sides: Sides, backend: Backend) -> None:
    """A link beside a file leads to its copy; one that leads nowhere is in nobody's way."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        folder = a_folder(world.home / "work", {"v1/a.txt": "one", "last.txt": "last"})
        (folder / "now").symlink_to("v1")
        (folder / "a.txt").symlink_to("now/a.txt")
        (folder / "nowhere").symlink_to("not/there")
        seen: dict[str, str] = {}
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                bottle.cp_in(folder, "/tmp/work")
            for name in ("v1/a.txt", "last.txt", "a.txt", "now/a.txt"):
                seen[name] = bottle.exec(script_that_reads(f"/tmp/work/{name}")).stdout
        return {"outcome": outcome.happened, "files": seen}

    files = {"v1/a.txt": "one", "last.txt": "last", "a.txt": "one", "now/a.txt": "one"}
    expected = {"outcome": "done", "files": files}
    sides.check_side(backend, "lifecycle/cp-links", body, expected=expected)


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


@pytest.mark.covers("PARITY-BOTTLE", "PARITY-RESUME")
@pytest.mark.library("a program ends a bottle by its identity, whoever launched it")
def test_closing_again_spares_the_bottle_that_was_resumed(sides: Sides, backend: Backend) -> None:
    """What was closed is over: closed again, it has no say over the guest that is there since."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})
        with launcher.start("dev", backend=world.backend) as old:
            launcher.preserve(old.identity)
        inside: dict[str, str] = {}
        with launcher.resume(old.identity) as bottle:
            with world.may_refuse(launcher.errors) as closing:
                old.close()
            listed = launcher.active(world.backend) == [old.identity]
            with world.may_refuse(launcher.errors):
                inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        return {
            "GREETING in the bottle that was resumed": inside.get("GREETING"),
            "listed": listed,
            "closing": closing.happened,
        }

    expected = {
        "GREETING in the bottle that was resumed": "hello",
        "listed": True,
        "closing": "done",
    }
    sides.check_side(backend, "lifecycle/closed-again", body, expected=expected)


@pytest.mark.simulated("guests of others are made up")
def test_closing_after_the_guest_vanished(sides: Sides, backend: Backend) -> None:
    """A guest that is gone already is no error at the end, also when a value is what a tool says of that."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {"ONE": "No such container", "TWO": "not found", "THREE": "No", "FOUR": "not"}
        world.write_bottle("dev", {"image": world.image, "env": env})
        with (
            world.may_refuse(launcher.errors) as outcome,
            launcher.start("dev", backend=world.backend),
        ):
            world.docker.guests.clear()
            world.smolvm.guests.clear()
        return {"outcome": outcome.happened, "active": launcher.active(world.backend)}

    expected = {"outcome": "done", "active": []}
    sides.check_side(backend, "lifecycle/vanished", body, expected=expected)


def test_nothing_succeeds_in_a_guest_that_is_gone(sides: Sides, backend: Backend) -> None:
    """Whatever is asked of a bottle that was closed is refused or fails, and makes no guest anew."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        source = world.home / "late.txt"
        source.write_text("late", encoding="utf-8")
        answers = script_that_answers("", "", 0)
        with launcher.start("dev", backend=world.backend) as bottle:
            bottle.close()
            deeds: dict[str, Callable[[], object]] = {
                "exec": lambda: bottle.exec(answers).returncode,
                "exec_agent": lambda: bottle.exec_agent(["sh", "-c", answers], tty=False),
                "cp_in": lambda: bottle.cp_in(source, "/tmp/late.txt"),
            }
            succeeded = []
            for name, deed in deeds.items():
                status: object = None
                with world.may_refuse(launcher.errors) as outcome:
                    status = deed()
                if outcome.happened == "done" and status in (0, None):
                    succeeded.append(name)
                elif outcome.happened not in ("done", "refused"):
                    succeeded.append(f"{name}: {outcome.happened}")
            guests = sorted(world.guests())
        return {"succeeded": succeeded, "guests": guests, "active": launcher.active(world.backend)}

    expected: dict[str, Any] = {"succeeded": [], "guests": [], "active": []}
    sides.check_side(backend, "lifecycle/after-its-end", body, expected=expected)


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
