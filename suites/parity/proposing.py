"""A bottle that is asked for another image: what is seen of it, and who is held against whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suites.parity.launcher import Backend, Bottle
from suites.parity.sides import Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment
from suites.parity.world import World

__all__ = [
    "by_kind",
    "check_kind",
    "images",
    "lives",
    "of_its_kind",
    "write_bottle",
]


def lives(bottle: Bottle) -> bool:
    """Whether the bottle answers, with its own environment."""
    return read_environment(bottle.exec(ENVIRONMENT).stdout).get("GREETING") == "hello"


def images(world: World) -> list[str]:
    """What the running guests are made of."""
    return sorted(guest.image for guest in world.guests().values() if guest.is_running)


def write_bottle(world: World) -> None:
    """A manifest with one literal, by which the bottle is known again."""
    world.write_bottle("dev", {"image": world.image, "env": {"GREETING": "hello"}})


def by_kind(backend: Backend, *, applies: Any, refuses: Any) -> Any:
    """What is expected of a backend that can apply proposals, or of one that cannot."""
    return applies if backend.applies_proposals else refuses


def of_its_kind(sides: Sides, backend: Backend, seen: Mapping[str, Any]) -> dict[str, Any]:
    """The sides that are expected to do as this one."""
    alike = {
        side.name for side in sides.backends if side.applies_proposals == backend.applies_proposals
    }
    return {name: each for name, each in seen.items() if name in alike}


def check_kind(
    sides: Sides,
    backend: Backend,
    scenario: str,
    body: Any,
    expected: Mapping[str, Any],
) -> None:
    """Judge a side against those that can do what it can."""
    seen = of_its_kind(sides, backend, sides.observe(scenario, body))
    sides.check_seen(backend, scenario, seen, expected=expected)
