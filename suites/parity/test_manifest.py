"""What a manifest may say, which of two that say it is stronger, and how a bad one is refused."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from suites.parity.bottles import try_to_start
from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import IMAGE, OTHER_IMAGE, Refusal, World

pytestmark = pytest.mark.covers("PARITY-MANIFEST")


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
    sides.check_side(backend, "manifest/choice", body, expected=expected)


def test_a_backend_that_the_flag_does_not_know_is_refused(sides: Sides, backend: Backend) -> None:
    """It is named, whatever the variable says: another one is not taken for it, and nothing starts."""
    variables = {"the default": "docker", "its own": ""}

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        outcomes: dict[str, str] = {}
        named: dict[str, bool] = {}
        for variable, chosen in variables.items():
            world.environ["BOT_BOTTLE_BACKEND"] = chosen or world.backend
            with (
                world.may_refuse(launcher.errors) as outcome,
                launcher.start("dev", backend="krypton"),
            ):
                pass
            outcomes[variable] = outcome.happened
            named[variable] = "krypton" in outcome.text
        return {
            "outcome with the variable": outcomes,
            "named with the variable": named,
            "commands": world.tools_used(),
            "recorded": sorted(world.tree()),
        }

    expected = {
        "outcome with the variable": dict.fromkeys(variables, "refused"),
        "named with the variable": dict.fromkeys(variables, True),
        "commands": [],
        "recorded": [],
    }
    sides.check_side(backend, "manifest/unknown-flag", body, expected=expected)


@pytest.mark.covers("PARITY-MANIFEST", "PARITY-RESUME", "PARITY-CLEANUP")
def test_an_unknown_choice_stops_new_bottles_alone(sides: Sides, backend: Backend) -> None:
    """What is done with bottles that are there asks for no choice: a variable that is wrong is in no way."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image})
        outcomes: dict[str, str] = {}

        def does(what: str, act: Callable[[], Any]) -> Any:
            result = None
            with world.may_refuse(launcher.errors) as outcome:
                result = act()
            outcomes[what] = f"{outcome.happened} {outcome.text}".strip()
            return result

        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            world.environ["BOT_BOTTLE_BACKEND"] = "krypton"
            launcher = sides.open(world)
            does("preserve", lambda: launcher.preserve(identity))
            listed = does("list", lambda: launcher.active(world.backend))
            proposal = does(
                "propose",
                lambda: launcher.propose(identity, image=world.other_image, justification="gcc"),
            )
            waiting = does("pending", launcher.pending)
            does("cleanup", launcher.cleanup)
            ran = does("exec", lambda: bottle.exec(ENVIRONMENT).returncode)
        does("cleanup of none that runs", launcher.cleanup)
        return {
            "outcomes": outcomes,
            "listed": listed == [identity],
            "waits": waiting == [proposal],
            "exit status": ran,
            "recorded": [path.name for path in world.state.iterdir()] == [identity],
        }

    steps = (
        "preserve",
        "list",
        "propose",
        "pending",
        "cleanup",
        "exec",
        "cleanup of none that runs",
    )
    expected = {
        "outcomes": dict.fromkeys(steps, "done"),
        "listed": True,
        "waits": True,
        "exit status": 0,
        "recorded": True,
    }
    sides.check_side(backend, "manifest/unknown-variable", body, expected=expected)


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
    "a-list": ("---\n- image\n---\n", "dev.md"),
    "image-is-a-number": ("---\nimage: 7\n---\n", "image"),
    "image-is-a-list": ("---\nimage: [x]\n---\n", "image"),
    "provider-is-a-mapping": ("---\nagent_provider: {a: b}\n---\n", "agent_provider"),
    "git-is-a-string": ("---\ngit: yes please\n---\n", "git"),
    "egress-is-a-list": ("---\negress: [a]\n---\n", "egress"),
    "routes-is-a-string": ("---\negress:\n  routes: a\n---\n", "egress.routes"),
    "a-route-is-a-number": ("---\negress:\n  routes: [a, 7]\n---\n", "egress.routes"),
    "extends-is-a-list": ("---\nextends: [base]\n---\n", "extends"),
    "extends-is-a-path": ("---\nextends: ../bottles/dev\n---\n", "extends"),
    "env-value-is-a-list": ("---\nenv:\n  GOOD: x\n  WRONG: [canary-4711]\n---\n", "WRONG"),
    "env-value-is-true": ("---\nenv:\n  WRONG: true\n---\n", "WRONG"),
    "env-value-has-a-nul": ('---\nenv:\n  WRONG: "canary-4711\\0b"\n---\n', "WRONG"),
    "env-name-begins-with-a-digit": ("---\nenv:\n  1WRONG: x\n---\n", "1WRONG"),
    "env-name-with-a-dash": ("---\nenv:\n  WRO-NG: x\n---\n", "WRO-NG"),
    "env-name-with-a-space": ("---\nenv:\n  WRO NG: x\n---\n", "WRO NG"),
    "env-name-with-equals": ("---\nenv:\n  WRO=NG: x\n---\n", "WRO=NG"),
    "env-name-is-a-number": ("---\nenv:\n  77: x\n---\n", "77"),
    "env-value-is-a-pin": ("---\nenv:\n  WRONG: 471147\n---\n", "WRONG"),
    "env-value-is-a-negative-number": ("---\nenv:\n  WRONG: -4711\n---\n", "WRONG"),
    "env-value-is-a-fraction": ("---\nenv:\n  WRONG: 4711.25\n---\n", "WRONG"),
    "env-value-is-null": ("---\nenv:\n  GOOD: canary-4711\n  WRONG: null\n---\n", "WRONG"),
    "env-value-is-a-mapping": ("---\nenv:\n  WRONG: {canary: canary-4711}\n---\n", "WRONG"),
    "a-second-unknown-key": ("---\nimage: x\nenv: {}\nports: []\n---\n", "ports"),
    "key-in-another-case": ("---\nImage: x\n---\n", "Image"),
    "key-is-a-number": ("---\n4747: x\n---\n", "4747"),
    "key-is-a-list": ("---\n? [image]\n: x\n---\n", "dev.md"),
    "key-is-a-mapping": ("---\n? {image: x}\n: x\n---\n", "dev.md"),
    "egress-key-is-a-number": ("---\negress:\n  4747: []\n---\n", "4747"),
    "env-name-is-empty": ('---\nenv:\n  "": canary-4711\n---\n', "env"),
    "env-name-is-a-list": ("---\nenv:\n  ? [WRONG]\n  : canary-4711\n---\n", "dev.md"),
    "env-name-ends-in-a-newline": ('---\nenv:\n  "WRONG\\n": canary-4711\n---\n', "WRONG"),
}

#: What a value that stands under `env` here has in it, as it is written or as a program has it.
SPELLINGS: Final = ("4711", "47_11", "4.711", str(0x4711), "Y2FuYXJ5", "canary")


def values_shown(outcome: Refusal, world: World) -> list[str]:
    """Spellings of a value of the manifest that stand in the refusal or in the log."""
    text = "\n".join([outcome.text, *world.log])
    return [spelling for spelling in SPELLINGS if spelling in text]


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_bad_manifest_is_refused(sides: Sides, backend: Backend, what: str) -> None:
    """One error names file and key, and shows no value of a variable; nothing is started."""
    text, mention = MANIFESTS[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_manifest("dev", text)
        outcome, _ = try_to_start(world, launcher)
        return {
            "outcome": outcome.happened,
            "commands": [str(call) for call in world.commands.calls],
            "guests": sorted(world.guests()),
            "values shown in error or log": values_shown(outcome, world),
            "mentions": outcome.mentions("dev.md", mention),
            "recorded": sorted(world.state.iterdir()) if world.state.is_dir() else [],
        }

    # What was done comes before what was said: it tells why.
    expected = {
        "outcome": "refused",
        "commands": [],
        "guests": [],
        "values shown in error or log": [],
        "mentions": {"dev.md": True, mention: True},
        "recorded": [],
    }
    sides.check_side(backend, f"manifest/{what}", body, expected=expected)


#: What an entry of `env` may be, to which one reader of YAML objects and another does not.
ENTRIES: Final = {
    "a-date": "4711-12-24",
    "a-date-that-is-none": "4711-13-32",
    "an-instant": "4711-12-24T18:00:00Z",
    "a-number-of-another-base": "0x4711",
    "a-number-in-groups": "47_11",
    "a-number-with-an-exponent": "4.711e+3",
    "minutes-and-seconds": "4711:47",
    "a-number-that-is-none": "!!int canary-4711",
    "more-digits-than-a-number-has": "4711" * 2_000,
    "a-set": "!!set {canary-4711}",
    "binary": "!!binary Y2FuYXJ5LTQ3MTE=",
    "of-an-unknown-kind": "!canary-4711",
    "a-reserved-sign": "@canary-4711",
    "no-end-of-a-string": '"canary-4711',
    "no-end-of-a-list": "[canary-4711",
    "a-colon-in-it": "canary-4711: x",
    "an-unknown-escape": r'"canary-4711\q"',
    "an-unknown-alias": "*canary-4711",
    "a-sign-that-is-none": "canary-4711\x07",
    "given-twice": "canary-4711\n  WRONG: canary-47110",
}


def test_a_manifest_however_deep_is_no_crash(sides: Sides, backend: Backend) -> None:
    """One that is deeper than a launcher can read is refused by its file; another may read it."""
    deep = "[" * 3_000 + "]" * 3_000

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_manifest("dev", f"---\nimage: {world.image}\ngit: {{a: {deep}}}\n---\n")
        outcome, _ = try_to_start(world, launcher)
        return {
            "no traceback": outcome.happened in ("done", "refused"),
            "names the file, or runs": outcome.happened == "done" or "dev.md" in outcome.text,
            "guests": sorted(world.guests()),
        }

    expected = {"no traceback": True, "names the file, or runs": True, "guests": []}
    sides.check_side(backend, "manifest/deep", body, expected=expected)


@pytest.mark.covers("PARITY-FORWARDED-ENV")
@pytest.mark.parametrize("what", ENTRIES)
def test_an_entry_is_not_shown(sides: Sides, backend: Backend, what: str) -> None:
    """Whatever an entry of a manifest is taken for, its value is in no error and in no log."""
    text = f"---\nenv:\n  GOOD: canary-4711\n  WRONG: {ENTRIES[what]}\n---\n"

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_manifest("dev", text)
        outcome, _ = try_to_start(world, launcher)
        return {
            "ends as": "done or refused" if outcome.happened in ("done", "refused") else outcome.happened,
            "values shown in error or log": values_shown(outcome, world),
        }  # fmt: skip

    expected = {"ends as": "done or refused", "values shown in error or log": []}
    sides.check_side(backend, f"manifest/entry-{what}", body, expected=expected)


def test_a_manifest_ends_where_its_front_matter_does(sides: Sides, backend: Backend) -> None:
    """What follows is text for people, whatever it looks like; in the front matter all is taken."""
    front_matter = [
        "---",
        f"image: {IMAGE}",
        "env:",
        "  LINES: |",
        "    one",
        "    ---",
        "    two",
        "  INSIDE: one --- two",
        '  LAST: "---"',
        "--- ",
        "A bottle.",
        "---",
        "image: harness/bottle:other",
        "env: {LAST: other, TOKEN: '?'}",
        "---",
    ]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        lines = [line.replace(IMAGE, world.image) for line in front_matter]
        world.write_manifest("dev", "\n".join(lines))
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        names = ("LINES", "INSIDE", "LAST", "TOKEN")
        return {"env": {name: inside[name] for name in names if name in inside}}

    expected = {"env": {"LINES": "one\n---\ntwo\n", "INSIDE": "one --- two", "LAST": "---"}}
    sides.check_side(backend, "manifest/front-matter", body, expected=expected)


@pytest.mark.covers("PARITY-FORWARDED-ENV")
def test_a_manifest_that_is_no_utf_8_is_not_read_as_another(sides: Sides, backend: Backend) -> None:
    """It is refused by its file, or its values are the bytes that stand there; none is shown."""
    text = "---\nimage: {image}\nenv:\n  WRONG: canary-Z\udcfcrich\n---\n"

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        path = world.write_manifest("dev", "")
        path.write_bytes(text.format(image=world.image).encode(errors="surrogateescape"))
        outcome, inside = try_to_start(world, launcher)
        return {
            "no traceback": outcome.happened in ("done", "refused"),
            "names the file, or has the bytes": "dev.md" in outcome.text
            if outcome.happened == "refused"
            else inside.get("WRONG") == "canary-Z\udcfcrich",
            "values shown in error or log": values_shown(outcome, world),
        }

    expected = {
        "no traceback": True,
        "names the file, or has the bytes": True,
        "values shown in error or log": [],
    }
    sides.check_side(backend, "manifest/no-utf-8", body, expected=expected)


#: A file that is there and that nobody can read, not even root: from its beginning on it has no bytes.
UNREADABLE: Final = Path("/proc/self/mem")


@pytest.mark.simulated("a file that cannot be read is really there")
@pytest.mark.parametrize("which", ["dev", "base"])
def test_a_manifest_that_cannot_be_read_is_named(
    there: Sides, backend: Backend, which: str
) -> None:
    """It is refused by its file, whether it was asked for or is a parent; nothing is started."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "extends": "base"})
        path = world.write_bottle("base", {}).with_name(f"{which}.md")
        path.unlink()
        path.symlink_to(UNREADABLE)
        outcome, _ = try_to_start(world, launcher)
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions(path.name),
            "commands": [str(call) for call in world.commands.calls],
        }

    expected = {"outcome": "refused", "mentions": {f"{which}.md": True}, "commands": []}
    there.check_side(backend, f"manifest/unreadable-{which}", body, expected=expected)


#: Reading a few small files takes no time; what follows a circle of them has no end.
_READ_S: Final = 30


@contextmanager
def coming_to_an_end() -> Iterator[None]:
    """Fail when manifests are read on and on."""

    def over(_: int, __: FrameType | None) -> None:
        message = f"a circle of manifests is refused: expected an end, found none in {_READ_S} s"
        raise AssertionError(message)

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(_READ_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_cycle_of_manifests_is_refused(sides: Sides, backend: Backend) -> None:
    """Manifests that extend each other are named, not followed for ever."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"extends": "base"})
        world.write_bottle("base", {"extends": "dev"})
        with coming_to_an_end():
            outcome, _ = try_to_start(world, launcher)
        return {"outcome": outcome.happened, "mentions": outcome.mentions("extends", "base")}

    expected = {"outcome": "refused", "mentions": {"extends": True, "base": True}}
    sides.check_side(backend, "manifest/cycle", body, expected=expected)


#: Manifests by name, and what the refusal of `dev` must mention.
FAMILIES: Final = {
    "cycle-of-three": (
        {"dev": {"extends": "b"}, "b": {"extends": "c"}, "c": {"extends": "b"}},
        ("extends", "c.md"),
    ),
    "unknown-key-of-the-parent": (
        {"dev": {"extends": "base"}, "base": {"image": "x", "imgae": "y"}},
        ("base.md", "imgae"),
    ),
    "grandparent-is-missing": (
        {"dev": {"extends": "base"}, "base": {"extends": "nowhere"}},
        ("base.md", "extends", "nowhere"),
    ),
    "value-of-the-grandparent": (
        {"dev": {"extends": "b"}, "b": {"extends": "c"}, "c": {"env": {"WRONG": 7}}},
        ("c.md", "WRONG"),
    ),
}


@pytest.mark.parametrize("what", FAMILIES)
def test_a_bad_parent_is_refused(sides: Sides, backend: Backend, what: str) -> None:
    """The error names the file that is wrong, which need not be the one that was asked for."""
    manifests, mentions = FAMILIES[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        for name, front_matter in manifests.items():
            world.write_bottle(name, front_matter)
        with coming_to_an_end():
            outcome, _ = try_to_start(world, launcher)
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions(*mentions),
            "commands": [str(call) for call in world.commands.calls],
        }

    expected = {"outcome": "refused", "mentions": dict.fromkeys(mentions, True), "commands": []}
    sides.check_side(backend, f"manifest/parent-{what}", body, expected=expected)


@pytest.mark.covers("PARITY-FORWARDED-ENV")
@pytest.mark.simulated("guests are looked at by image")
def test_a_whole_manifest_of_three_generations(sides: Sides, backend: Backend) -> None:
    """Every key is taken, from the nearest that says it; entries of every kind are inherited."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.environ |= {"H_OLD": "canary-old", "H_NEW": "canary-new"}
        world.write_bottle(
            "old",
            {
                "image": OTHER_IMAGE,
                "agent_provider": "one",
                "git": {"user": "a", "deep": {"b": "c"}},
                "egress": {"routes": ["a.example", "b.example:443"]},
                "env": {
                    "OLD": "old",
                    "ALL": "old",
                    "GIVEN": "${H_OLD}",
                    "TYPED": "?Of old",
                    "ONCE_TYPED": "?Nobody asks for this",
                    "ONCE_GIVEN": "${H_NOT_THERE}",
                    "ONCE_PLAIN": "old",
                },
            },
        )
        world.write_bottle(
            "middle",
            {"extends": "old", "image": world.image, "env": {"ALL": "middle", "MIDDLE": "m"}},
        )
        world.write_bottle(
            "dev",
            {
                "extends": "middle",
                "agent_provider": "two",
                "egress": {"routes": []},
                "env": {
                    "ALL": "dev",
                    "GIVEN": "${H_NEW}",
                    "DEV": "d",
                    "ONCE_TYPED": "dev",
                    "ONCE_GIVEN": "dev",
                    "ONCE_PLAIN": "${H_NEW}",
                },
            },
        )
        world.answers.append("canary-typed")
        world.write_bottle("bare", {"image": world.image})
        with launcher.start("bare", backend=world.backend) as bottle:
            bare = read_environment(bottle.exec(ENVIRONMENT).stdout)
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
            made_of = [guest.image for guest in world.guests().values()]
        return {
            "env": {name: value for name, value in inside.items() if bare.get(name) != value},
            "image": made_of in ([], [world.image]),
            "prompt": [("Of old" in asked) for asked in world.asked],
        }  # fmt: skip

    expected = {
        "env": {
            "OLD": "old",
            "ALL": "dev",
            "GIVEN": "canary-new",
            "TYPED": "canary-typed",
            "MIDDLE": "m",
            "DEV": "d",
            "ONCE_TYPED": "dev",
            "ONCE_GIVEN": "dev",
            "ONCE_PLAIN": "canary-new",
        },
        "image": True,
        "prompt": [True],
    }
    sides.check_side(backend, "manifest/generations", body, expected=expected)


@pytest.mark.parametrize(
    "name", ["nothing", "../dev", "", ".", "a/b", "/etc/passwd", "dev.md", "-dev"]
)
def test_a_name_that_is_none_is_refused(sides: Sides, backend: Backend, name: str) -> None:
    """It is shown in the refusal; nothing is asked for, started or recorded."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"image": world.image, "env": {"TOKEN": "?"}})
        world.answers.append("canary-4711")
        outcome, _ = try_to_start(world, launcher, name)
        return {
            "outcome": outcome.happened,
            "mentions": name in outcome.text,
            "asked": len(world.asked),
            "commands": [str(call) for call in world.commands.calls],
            "recorded": sorted(world.state.iterdir()) if world.state.is_dir() else [],
        }

    expected = {"outcome": "refused", "mentions": True, "asked": 0, "commands": [], "recorded": []}
    sides.check_side(backend, f"manifest/name-{name!r}", body, expected=expected)


#: Letters in a name: too many for the file of a manifest, and for any path.
_TOO_LONG: Final = (256, 5_000)


@pytest.mark.simulated("its files are really there")
@pytest.mark.parametrize("who", ["asked-for", "a-parent"])
@pytest.mark.parametrize("letters", _TOO_LONG)
def test_a_name_that_no_file_can_have_is_refused(
    there: Sides, backend: Backend, letters: int, who: str
) -> None:
    """There is no such bottle; the refusal shows the name, and for a parent who asks for it."""
    name = "x" * letters

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle("dev", {"extends": name, "env": {"TOKEN": "?"}})
        world.answers.append("canary-4711")
        outcome, _ = try_to_start(world, launcher, "dev" if who == "a-parent" else name)
        words = ("dev.md", "extends") if who == "a-parent" else ()
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions("x" * 200, *words),
            "asked": len(world.asked),
            "commands": [str(call) for call in world.commands.calls],
            "recorded": sorted(world.state.iterdir()) if world.state.is_dir() else [],
        }

    mentions = ["x" * 200, *(["dev.md", "extends"] if who == "a-parent" else [])]
    expected = {
        "outcome": "refused",
        "mentions": dict.fromkeys(mentions, True),
        "asked": 0,
        "commands": [],
        "recorded": [],
    }
    there.check_side(backend, f"manifest/{who}-of-{letters}-letters", body, expected=expected)


@pytest.mark.simulated("its files are really there")
def test_a_name_that_leaves_no_room_for_more_is_no_crash(there: Sides, backend: Backend) -> None:
    """Its manifest is there, and an identity may not fit: it runs, or that is refused and nothing is left."""
    name = "x" * 249

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        world.write_bottle(name, {"image": world.image, "env": {"GREETING": "hello"}})
        outcome, inside = try_to_start(world, launcher, name)
        return {
            "no crash": outcome.happened in ("done", "refused") or outcome.happened,
            "runs": (inside.get("GREETING") == "hello") == (outcome.happened == "done"),
            "names it": outcome.happened == "done" or "x" * 200 in outcome.text,
            "guests": sorted(world.guests()),
            "recorded": sorted(world.state.iterdir()) if world.state.is_dir() else [],
        }

    expected = {"no crash": True, "runs": True, "names it": True, "guests": [], "recorded": []}
    there.check_side(backend, "manifest/name-of-249-letters", body, expected=expected)
