"""Proposals that wait: which are taken, what is kept of them, and what happens to those that fit no more."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from suites.parity.bottles import AROUND
from suites.parity.launcher import Backend, Launcher
from suites.parity.proposing import by_kind, check_kind, images, lives, write_bottle
from suites.parity.sides import Sides
from suites.parity.world import OTHER_IMAGE, World

pytestmark = pytest.mark.covers("PARITY-REMEDIATION")


def test_an_unknown_proposal_is_refused(sides: Sides, backend: Backend) -> None:
    """An unknown id, or one that is a path, touches nothing."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            calls, outcomes = len(world.commands.calls), []
            for proposal in ("none", "../metadata", ""):
                with world.may_refuse(launcher.errors) as outcome:
                    launcher.approve(proposal)
                outcomes.append(outcome.happened)
            return {
                "outcomes": outcomes,
                "commands run": len(world.commands.calls) - calls,
                "bottle lives": lives(bottle),
            }

    expected = {"outcomes": ["refused"] * 3, "commands run": 0, "bottle lives": True}
    sides.check_side(backend, "remediation/unknown-proposal", body, expected=expected)


@pytest.mark.parametrize(
    ("image", "justification"),
    [("", "gcc"), ("   ", "gcc"), (OTHER_IMAGE, ""), (OTHER_IMAGE, " \n")],
)
def test_a_proposal_needs_an_image_and_a_justification(
    sides: Sides, backend: Backend, image: str, justification: str
) -> None:
    """Without one of them nothing is queued."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            with world.may_refuse(launcher.errors) as outcome:
                launcher.propose(bottle.identity, image=image, justification=justification)
            return {
                "outcome": outcome.happened,
                "pending": launcher.pending(),
                "lives": lives(bottle),
            }

    expected = {"outcome": "refused", "pending": [], "lives": True}
    name = f"remediation/empty-{image!r}-{justification!r}"
    sides.check_side(backend, name, body, expected=expected)


def strings_kept(world: World) -> set[str]:
    """Texts that are kept in the home: of files as they are, and each string of those that are JSON."""
    found: set[str] = set()

    def take(value: Any) -> None:
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, list | dict):
            for each in value.values() if isinstance(value, dict) else value:
                take(each)

    for path in (world.home / ".bot-bottle").rglob("*"):
        if path.is_file():
            take(path.read_bytes().decode(errors="surrogateescape"))
            with contextlib.suppress(ValueError):
                take(json.loads(path.read_bytes()))
    return found


def test_a_justification_is_kept_as_it_is(sides: Sides, backend: Backend) -> None:
    """Who approves reads what was written: no blank and no end of a line is folded or trimmed."""
    texts = {
        shape: f"{before}it  needs\n\n gcc{behind}" for shape, (before, behind) in AROUND.items()
    }

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            made = [
                launcher.propose(bottle.identity, image=world.other_image, justification=text)
                for text in texts.values()
            ]
            waiting = sides.open(world).pending()
            kept = strings_kept(world)
        return {
            "all wait": sorted(waiting) == sorted(made),
            "changed": [
                shape for shape, text in texts.items() if not any(text in each for each in kept)
            ],
        }

    expected = {"all wait": True, "changed": []}
    sides.check_side(backend, "remediation/justifications", body, expected=expected)


@pytest.mark.parametrize("identity", ["nothing-here", "../dev", ""])
def test_a_proposal_for_no_bottle_is_refused(sides: Sides, backend: Backend, identity: str) -> None:
    """It names what was asked for, and nothing is queued."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        with world.may_refuse(launcher.errors) as outcome:
            launcher.propose(identity, image=world.other_image, justification="gcc")
        return {
            "outcome": outcome.happened,
            "mentions": identity in outcome.text,
            "pending": launcher.pending(),
        }

    expected = {"outcome": "refused", "mentions": True, "pending": []}
    sides.check_side(backend, f"remediation/no-bottle-{identity!r}", body, expected=expected)


@pytest.mark.simulated("guests are counted by image")
@pytest.mark.parametrize("state", ["ended", "preserved", "unknown-backend"])
def test_a_proposal_outlives_what_it_is_for(sides: Sides, backend: Backend, state: str) -> None:
    """Approved when nothing runs, or nobody knows where: no crash, and no lie about what was applied."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            identity = bottle.identity
            proposal = launcher.propose(identity, image=world.other_image, justification="gcc")
            if state != "ended":
                launcher.preserve(identity)
        if state == "unknown-backend":
            file = world.state / identity / "metadata.json"
            file.write_text(json.dumps({**world.metadata(identity), "backend": "krypton"}))
        before = world.tree()
        with world.may_refuse(launcher.errors) as outcome:
            launcher.approve(proposal)
        seen: dict[str, Any] = {
            "no traceback": outcome.happened in ("done", "refused"),
            "waits unless applied": (launcher.pending() == []) == (outcome.happened == "done"),
            "guests": sorted(world.guests()),
        }
        if state == "unknown-backend":
            seen["refused"] = outcome.happened
            seen["mentions"] = outcome.mentions("krypton")
            seen["state untouched"] = before == world.tree()
        if state == "preserved":
            with launcher.resume(identity) as bottle:
                applied = images(world) == [world.other_image]
                seen["as it was said"] = applied == (outcome.happened == "done")
                seen["lives"] = lives(bottle)
        return seen

    expected: dict[str, Any] = {"no traceback": True, "waits unless applied": True, "guests": []}
    if state == "unknown-backend":
        expected |= {"refused": "refused", "mentions": {"krypton": True}, "state untouched": True}
    if state == "preserved":
        expected |= {"as it was said": True, "lives": True}
    sides.check_side(backend, f"remediation/outlives-{state}", body, expected=expected)


#: What is wrong with what is kept of a proposal → what it is made of, from what it was.
SPOILT: Final[Mapping[str, Callable[[str], str]]] = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "nuls": lambda text: "\0" * len(text),
    "no-utf-8": lambda text: text.replace("gcc", "g\udcffc"),
    "a-list": lambda text: f"[{text}]",
    "null": lambda _: "null",
    "a-string": lambda _: '"pending"',
    "twice": lambda text: text * 2,
    "numbers": lambda text: re.sub(r'(: *)"[^"]*"', r"\g<1>7", text),
    "lists": lambda text: re.sub(r'(: *)"[^"]*"', r"\g<1>[]", text),
    "no-values": lambda _: "{}",
    "another-name": lambda text: re.sub(r'("id" *: *)"[^"]*"', r'\g<1>"p-00000000"', text),
    "another-state": lambda text: text.replace("pending", "perhaps"),
}


def spoil(world: World, proposal: str, others: list[str], make: Callable[[str], str]) -> list[Path]:
    """Damage what is kept of this proposal alone; the files that were damaged.

    A way of damaging that changes nothing where proposals are kept in another form damages none.
    """
    spoilt = []
    for path in sorted((world.home / ".bot-bottle").rglob("*")):
        text = path.read_text(errors="surrogateescape") if path.is_file() else ""
        known = f"{path.name} {text}"
        damaged = make(text)
        if damaged == text:
            continue
        if proposal in known and not any(other in known for other in others):
            path.write_bytes(damaged.encode(errors="surrogateescape"))
            spoilt.append(path)
    return spoilt


@pytest.mark.parametrize("what", SPOILT)
def test_a_damaged_proposal_is_in_nobodys_way(sides: Sides, backend: Backend, what: str) -> None:
    """It is refused by its name and not deleted; the others wait, and are applied, as before."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        write_bottle(world)
        with launcher.start("dev", backend=world.backend) as bottle:
            made = [
                launcher.propose(bottle.identity, image=world.other_image, justification="gcc")
                for _ in range(3)
            ]
            # Wherever it stands in a list.
            damaged, first, *_ = made = sorted(made)
            others = made[1:]
            spoilt = spoil(world, damaged, others, SPOILT[what])
            before = [path.read_bytes() for path in spoilt]
            launcher = sides.open(world)
            with world.may_refuse(launcher.errors) as listing:
                waiting = sorted(launcher.pending())
            with world.may_refuse(launcher.errors) as approving:
                launcher.approve(damaged)
            with world.may_refuse(launcher.errors) as applying:
                launcher.approve(first)
            with world.may_refuse(launcher.errors) as cleaning:
                launcher.cleanup()
            alive = lives(bottle)
        return {
            "listing": listing.happened,
            "others wait": listing.happened == "done" and set(others) <= set(waiting),
            "approving it": "refused" if not spoilt else approving.happened,
            "named": not spoilt or damaged in approving.text,
            "approving another": applying.happened,
            "cleanup": cleaning.happened,
            "bottle lives": alive,
            "kept": [path.read_bytes() for path in spoilt if path.exists()] == before,
        }

    expected = {
        "listing": "done",
        "others wait": True,
        "approving it": "refused",
        "named": True,
        "approving another": by_kind(backend, applies="done", refuses="refused"),
        "cleanup": "done",
        "bottle lives": True,
        "kept": True,
    }
    check_kind(sides, backend, f"remediation/spoilt-{what}", body, expected)
