"""A preserved bottle comes back on the backend it was recorded with, or not at all (PRD 0042, 0040)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.launcher import Backend, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-RESUME")

#: What the metadata of a bottle must hold (contract "bottle", State and remediation).
_KEYS: Final = {
    "identity",
    "agent_name",
    "cwd",
    "copy_cwd",
    "started_at",
    "compose_project",
    "backend",
}


def preserved(world: World, launcher: Launcher) -> str:
    """Start a bottle, write into its transcript, preserve it, end it; its identity."""
    manifest = {"image": world.image, "agent_provider": "claude", "env": {"GREETING": "hello"}}
    world.write_bottle("dev", manifest)
    with launcher.start("dev", backend=world.backend) as bottle:
        identity = bottle.identity
        transcript = world.state / identity / "transcript"
        transcript.mkdir(exist_ok=True)
        (transcript / "turns.jsonl").write_text('{"turn": 1}\n')
        launcher.preserve(identity)
    return identity


def tools_since(world: World, number: int) -> list[str]:
    """The commands run after the first ``number`` calls."""
    return sorted({call.tool for call in world.commands.calls[number:]})


def test_a_preserved_bottle_comes_back(sides: Sides, backend: Backend) -> None:
    """Same identity, same record, same transcript, same environment, and its own backend's tool."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        before, calls = world.metadata(identity), len(world.commands.calls)
        gone = not any(guest.is_running for guest in world.guests().values())
        with launcher.resume(identity) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
            after = world.metadata(identity)
            turns = (world.state / identity / "transcript" / "turns.jsonl").read_text()
            same = bottle.identity == identity
        return {
            "guest removed in between": gone,
            "same identity": same,
            "keys": sorted(_KEYS & before.keys()),
            "recorded with its own backend": before["backend"] == world.backend,
            "record kept": {key: before[key] == after.get(key) for key in sorted(_KEYS)},
            "transcript": turns,
            "env": {"GREETING": inside.get("GREETING")},
            "own tool alone": tools_since(world, calls) == tools_since(world, 0),
            "tools": len(tools_since(world, calls)),
        }

    expected = {
        "guest removed in between": True,
        "same identity": True,
        "keys": sorted(_KEYS),
        "recorded with its own backend": True,
        "record kept": dict.fromkeys(sorted(_KEYS), True),
        "transcript": '{"turn": 1}\n',
        "env": {"GREETING": "hello"},
        "own tool alone": True,
        "tools": 1,
    }
    sides.check_side(backend, "resume/round-trip", body, expected=expected)


def test_a_record_names_its_bottle(sides: Sides, backend: Backend) -> None:
    """By the name of the manifest, whoever provides the agent: a resume looks for it by that name.

    Where it was started is a folder, also where none was named.
    """

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        record = world.metadata(preserved(world, launcher))
        return {"agent_name": record["agent_name"], "cwd is there": Path(record["cwd"]).is_dir()}

    expected = {"agent_name": "dev", "cwd is there": True}
    sides.check_side(backend, "resume/names", body, expected=expected)


def test_cleanup_leaves_what_is_preserved(sides: Sides, backend: Backend) -> None:
    """A preserved bottle is kept on purpose: after a cleanup it comes back as it was."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        before = world.tree()
        launcher.cleanup()
        untouched = bool(before) and before.items() <= world.tree().items()
        same = False
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity) as bottle:
            same = bottle.identity == identity
        return {
            "resume": outcome.happened,
            "state untouched": untouched,
            "comes back": same,
        }

    expected = {
        "resume": "done",
        "state untouched": True,
        "comes back": True,
    }
    sides.check_side(backend, "resume/after-cleanup", body, expected=expected)


@pytest.mark.parametrize("other", ["docker", "smolmachines", "krypton"])
def test_the_recorded_backend_is_stronger_than_the_chosen_one(
    sides: Sides, backend: Backend, other: str
) -> None:
    """What the environment asks for decides about new bottles, never about recorded ones.

    Nor does it matter whether there is such a backend.
    """

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        tools, calls = world.tools_used(), len(world.commands.calls)
        world.environ["BOT_BOTTLE_BACKEND"] = other
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        return {
            "outcome": outcome.happened,
            "tools as before": tools_since(world, calls) == tools,
        }

    expected = {"outcome": "done", "tools as before": True}
    sides.check_side(backend, f"resume/chosen-{other}", body, expected=expected)


@pytest.mark.simulated("docker need not be there")
@pytest.mark.parametrize("how", ["empty", "left-out"])
def test_old_metadata_means_docker(sides: Sides, backend: Backend, how: str) -> None:
    """A record without a backend is from before there were several: it is docker's."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        record = world.metadata(identity)
        record["backend"] = ""
        if how == "left-out":
            del record["backend"]
        (world.state / identity / "metadata.json").write_text(json.dumps(record))
        calls = len(world.commands.calls)
        with launcher.resume(identity) as bottle:
            same = bottle.identity == identity
        return {"tools": tools_since(world, calls), "same identity": same}

    expected = {"tools": ["docker"], "same identity": True}
    sides.check_side(backend, f"resume/old-metadata-{how}", body, expected=expected)


#: Records that another version may have written → how they are made of the contract's fields.
FORMS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "the-contracts-fields": json.dumps,
    "in-another-order": lambda record: json.dumps(
        dict(reversed(record.items())), ensure_ascii=False, separators=(",", ":")
    ),
    "with-lines-of-dos": lambda record: json.dumps(record, indent=4).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_record_of_the_contracts_fields_is_enough(
    sides: Sides, backend: Backend, form: str
) -> None:
    """What a launcher keeps beyond them may be missing, as in a record of before: all goes on as ever."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        record = {key: world.metadata(identity)[key] for key in _KEYS}
        (world.state / identity / "metadata.json").write_text(
            FORMS[form](record), encoding="utf-8", newline=""
        )
        outcomes = []
        inside: dict[str, str] = {}
        for _ in range(2):
            launcher = sides.open(world)
            launcher.cleanup()
            with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity) as bottle:
                inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
                launcher.propose(identity, image=world.other_image, justification="gcc")
            outcomes.append(f"{outcome.happened} {outcome.text}".strip())
        after = world.metadata(identity)
        return {
            "resumes": outcomes,
            "GREETING": inside.get("GREETING"),
            "record kept": {key: after.get(key) == record[key] for key in sorted(_KEYS)},
        }

    expected = {
        "resumes": ["done", "done"],
        "GREETING": "hello",
        "record kept": dict.fromkeys(sorted(_KEYS), True),
    }
    sides.check_side(backend, f"resume/record-{form}", body, expected=expected)


def test_a_field_of_a_later_version_is_no_crash(sides: Sides, backend: Backend) -> None:
    """It is passed over, or the record is refused; nothing is lost."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        record = {**world.metadata(identity), "colour": "blue", "": None, "self": []}
        (world.state / identity / "metadata.json").write_text(json.dumps(record))
        before = world.tree()
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        with world.may_refuse(launcher.errors) as cleaning:
            launcher.cleanup()
        return {
            "no traceback": outcome.happened in ("done", "refused"),
            "cleanup": cleaning.happened,
            "state there": sorted(before) == sorted(world.tree()),
        }

    expected = {"no traceback": True, "cleanup": "done", "state there": True}
    sides.check_side(backend, "resume/a-later-field", body, expected=expected)


def damage(change: Callable[[dict[str, Any]], Any]) -> Callable[[World, str], None]:
    """Change the record of a bottle; what comes back is written instead of it."""

    def apply(world: World, identity: str) -> None:
        file = world.state / identity / "metadata.json"
        changed = change(json.loads(file.read_text()))
        text = changed if isinstance(changed, str) else json.dumps(changed)
        file.write_bytes(text.encode(errors="surrogateescape"))

    return apply


def remove_metadata(world: World, identity: str) -> None:
    """The record is gone, the rest of the state is there."""
    (world.state / identity / "metadata.json").unlink()


#: What is wrong → how it is made so, and what the refusal must mention.
DAMAGE: Final = {
    "not-json": (damage(lambda _: "{ damaged"), "metadata.json"),
    "empty-file": (damage(lambda _: ""), "metadata.json"),
    "a-list": (damage(lambda _: []), "metadata.json"),
    "unknown-backend": (damage(lambda record: {**record, "backend": "krypton"}), "krypton"),
    "backend-is-a-number": (damage(lambda record: {**record, "backend": 7}), "backend"),
    "no-agent-name": (
        damage(lambda record: {k: v for k, v in record.items() if k != "agent_name"}),
        "agent_name",
    ),
    "missing": (remove_metadata, "metadata.json"),
    "cut": (damage(lambda record: json.dumps(record)[:-9]), "metadata.json"),
    "null": (damage(lambda _: "null"), "metadata.json"),
    "a-string": (damage(lambda _: '"docker"'), "metadata.json"),
    "nuls": (damage(lambda _: "\0" * 300), "metadata.json"),
    "twice": (damage(lambda record: json.dumps(record) * 2), "metadata.json"),
    "no-utf-8": (damage(lambda record: json.dumps(record).replace("dev", "d\udcffv", 1)), "metadata.json"),
    "another-identity": (
        damage(lambda record: {**record, "identity": record["identity"] + "0"}),
        "metadata.json",
    ),
    "agent-name-is-a-list": (damage(lambda record: {**record, "agent_name": ["dev"]}), "agent_name"),
    "backend-is-a-list": (damage(lambda record: {**record, "backend": ["docker"]}), "backend"),
    "backend-in-capitals": (damage(lambda record: {**record, "backend": "DOCKER"}), "DOCKER"),
    "backend-and-a-space": (damage(lambda record: {**record, "backend": "docker "}), "docker "),
    "backend-cut": (damage(lambda record: {**record, "backend": "smol"}), "smol"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_metadata_is_refused(sides: Sides, backend: Backend, what: str) -> None:
    """The error says what is wrong and where; nothing is started, and nothing is deleted."""
    make_wrong, mention = DAMAGE[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        make_wrong(world, identity)
        before, calls = world.tree(), len(world.commands.calls)
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        return {
            "outcome": outcome.happened,
            "mentions": outcome.mentions(mention, identity)
            == dict.fromkeys((mention, identity), True),
            "state untouched": before.items() <= world.tree().items(),
            "commands run": len(world.commands.calls) - calls,
        }

    expected = {
        "outcome": "refused",
        "mentions": True,
        "state untouched": True,
        "commands run": 0,
    }
    sides.check_side(backend, f"resume/{what}", body, expected=expected)


@pytest.mark.parametrize("identity", ["nothing-here", "../dev", "/etc", "", ".", "a/../b"])
def test_an_identity_that_is_none_is_refused(sides: Sides, backend: Backend, identity: str) -> None:
    """Unknown names and paths in disguise are refused, and nothing outside the state is touched."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        preserved(world, launcher)
        outside = world.state.parent / "dev"
        outside.mkdir(exist_ok=True)
        (outside / "metadata.json").write_text("{}")
        before, calls = world.tree(), len(world.commands.calls)
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        return {
            "outcome": outcome.happened,
            "state untouched": before == world.tree(),
            "outside untouched": sorted(path.name for path in outside.iterdir()),
            "commands run": len(world.commands.calls) - calls,
        }

    expected = {
        "outcome": "refused",
        "state untouched": True,
        "outside untouched": ["metadata.json"],
        "commands run": 0,
    }
    sides.check_side(backend, f"resume/identity-{identity!r}", body, expected=expected)


@pytest.mark.covers("PARITY-RESUME", "PARITY-REMEDIATION")
@pytest.mark.simulated("its files are really there")
@pytest.mark.parametrize("letters", [256, 5_000])
def test_an_identity_that_no_file_can_have_is_refused(
    there: Sides, backend: Backend, letters: int
) -> None:
    """Whatever is asked of it: nothing is recorded of such a bottle, and that is said."""
    identity = "x" * letters

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        preserved(world, launcher)
        before, calls = world.tree(), len(world.commands.calls)
        outcomes = {}
        with world.may_refuse(launcher.errors) as outcomes["resume"], launcher.resume(identity):
            pass
        with world.may_refuse(launcher.errors) as outcomes["preserve"]:
            launcher.preserve(identity)
        with world.may_refuse(launcher.errors) as outcomes["propose"]:
            launcher.propose(identity, image=world.other_image, justification="gcc")
        with world.may_refuse(launcher.errors) as outcomes["approve"]:
            launcher.approve(identity)
        return {
            "outcomes": {what: outcome.happened for what, outcome in outcomes.items()},
            "it is shown": all("x" * 200 in outcome.text for outcome in outcomes.values()),
            "state untouched": before == world.tree(),
            "commands run": len(world.commands.calls) - calls,
        }

    expected = {
        "outcomes": dict.fromkeys(("resume", "preserve", "propose", "approve"), "refused"),
        "it is shown": True,
        "state untouched": True,
        "commands run": 0,
    }
    there.check_side(backend, f"resume/identity-of-{letters}-letters", body, expected=expected)


def test_a_missing_transcript_is_alike(sides: Sides, backend: Backend) -> None:
    """Without its transcript a bottle comes back, or is refused, on every backend alike."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        (world.state / identity / "transcript" / "turns.jsonl").unlink()
        (world.state / identity / "transcript").rmdir()
        record = world.metadata(identity)
        with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
            pass
        return {"outcome": outcome.happened, "record kept": world.metadata(identity) == record}

    expected = {"record kept": True}
    sides.check_side(backend, "resume/no-transcript", body, expected=expected)


def test_two_resumes_at_once_are_one(sides: Sides, backend: Backend) -> None:
    """While a bottle runs, a second resume of it is refused and the first goes on."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        with launcher.resume(identity) as bottle:
            with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
                pass
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        with launcher.resume(identity):
            again = True
        return {
            "second": outcome.happened,
            "mentions": outcome.mentions(identity) == {identity: True},
            "first goes on": inside.get("GREETING"),
            "later": again,
        }

    expected = {"second": "refused", "mentions": True, "first goes on": "hello", "later": True}
    sides.check_side(backend, "resume/two-at-once", body, expected=expected)


def test_no_backend_takes_anothers_bottle_for_its_own(sides: Sides, backend: Backend) -> None:
    """A running bottle is listed by its own backend and by no other."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        names = [each.name for each in sides.backends]
        world.write_bottle("dev", {"image": world.image})
        with launcher.start("dev", backend=world.backend) as bottle:
            listed = {name: bottle.identity in launcher.active(name) for name in names}
        return {
            "listed by its own": listed.pop(world.backend),
            "listed by others": sorted(name for name, is_listed in listed.items() if is_listed),
            "listed afterwards": launcher.active(world.backend),
        }

    expected = {"listed by its own": True, "listed by others": [], "listed afterwards": []}
    sides.check_side(backend, "resume/foreign-state", body, expected=expected)


@pytest.mark.simulated("tools that need not be there are listed")
@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_metadata_is_in_nobodys_way(sides: Sides, backend: Backend, what: str) -> None:
    """Other bottles start, run and are listed; a cleanup leaves what is preserved; nothing breaks.

    What a launcher left that died is removed beside it.
    """
    make_wrong, _ = DAMAGE[what]

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        identity = preserved(world, launcher)
        make_wrong(world, identity)
        before = world.tree()
        with world.may_refuse(launcher.errors) as proposing:
            proposal = launcher.propose(identity, image=world.other_image, justification="gcc")
            with world.may_refuse(launcher.errors):
                launcher.approve(proposal)
        with (
            world.may_refuse(launcher.errors) as starting,
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            other = bottle.identity
            listed = launcher.active(world.backend) == [other]
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout).get("GREETING")
            launcher.preserve(other)
        with (
            world.may_refuse(launcher.errors),
            launcher.start("dev", backend=world.backend) as bottle,
        ):
            dying = bottle.identity
            world.stub.crash_at(1)
        world.stub.revive()
        with world.may_refuse(launcher.errors) as cleaning:
            launcher.cleanup()
        left = [name for name in world.guests() if dying in name]
        with world.may_refuse(launcher.errors) as resuming, launcher.resume(other):
            pass
        return {
            "a proposal": proposing.happened in ("done", "refused"),
            "start": starting.happened,
            "listed": listed,
            "GREETING": inside,
            "cleanup": cleaning.happened in ("done", "refused"),
            "guests that a dead launcher left": left,
            "record of a dead launcher's bottle": (world.state / dying).exists(),
            "state untouched": before.items() <= world.tree().items(),
            "resume of the other": resuming.happened,
        }

    expected = {
        "a proposal": True,
        "start": "done",
        "listed": True,
        "GREETING": "hello",
        "cleanup": True,
        "guests that a dead launcher left": [],
        "record of a dead launcher's bottle": False,
        "state untouched": True,
        "resume of the other": "done",
    }
    sides.check_side(backend, f"resume/in-the-way-{what}", body, expected=expected)


@pytest.mark.parametrize("missing", ["manifest", "variable", "answer"])
def test_a_resume_that_is_refused_can_be_made_again(
    sides: Sides, backend: Backend, missing: str
) -> None:
    """What is missing is named, nothing is started or lost; once it is there the bottle comes back."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {"GREETING": "hello", "GIVEN": "${H_GIVEN}", "TYPED": "?"}
        path = world.write_bottle("dev", {"image": world.image, "env": env})
        text = path.read_text()
        world.environ["H_GIVEN"] = "canary-given"
        world.answers.append("canary-typed")
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            launcher.preserve(identity)
        before = world.tree()
        if missing == "manifest":
            path.unlink()
        if missing == "variable":
            del world.environ["H_GIVEN"]
        if missing != "answer":
            world.answers.append("canary-typed")
        outcomes = []
        for _ in range(2):
            with world.may_refuse(launcher.errors) as outcome, launcher.resume(identity):
                pass
            outcomes.append(outcome.happened)
        untouched = before.items() <= world.tree().items()
        path.write_text(text)
        world.environ["H_GIVEN"] = "canary-later"
        world.answers[:] = ["canary-typed-later"]
        with launcher.resume(identity) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
        named = {"manifest": "dev", "variable": "H_GIVEN", "answer": "TYPED"}[missing]
        return {
            "outcomes": outcomes,
            "mentions": outcome.mentions(named),
            "state untouched": untouched,
            "guests that are left": sorted(world.guests()),
            "env": {name: inside.get(name) for name in env},
        }

    named = {"manifest": "dev", "variable": "H_GIVEN", "answer": "TYPED"}[missing]
    expected = {
        "outcomes": ["refused", "refused"],
        "mentions": {named: True},
        "state untouched": True,
        "guests that are left": [],
        "env": {"GREETING": "hello", "GIVEN": "canary-later", "TYPED": "canary-typed-later"},
    }
    sides.check_side(backend, f"resume/refused-{missing}", body, expected=expected)
