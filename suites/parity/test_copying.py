"""Files and folders copied into a bottle: their bytes, names, modes, links and owner."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.folders import BENT, a_folder, made_of
from suites.parity.launcher import Backend, Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import (
    script_that_answers,
    script_that_links,
    script_that_reads,
    script_that_shows_the_mode,
)
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-BOTTLE")

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
