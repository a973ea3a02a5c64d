"""Runs a scenario on every backend, and judges the side a test is about.

A test is parameterised over backends, so that its id names one. The scenario runs once on each
side; the observations of all sides are compared, and the test of a backend fails when that backend
is to blame.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import tell
from harness_core.front.skips import not_run
from suites.parity.compare import (
    Allowance,
    SimulatedCrash,
    UnknownInvocation,
    check_parity,
    sides_of,
)
from suites.parity.launcher import Backend, Launcher
from suites.parity.overheard import overheard
from suites.parity.world import World

__all__ = ["BROKE_OFF", "Body", "Observation", "Sides"]

#: The field of a side whose scenario did not come to its end: what ended it.
BROKE_OFF: Final = "broke off"

Observation = Mapping[str, Any]

#: A scenario: what it does with a launcher in a world, and what it saw.
Body = Callable[[World, Launcher], Observation]


@dataclass(slots=True, kw_only=True)
class Sides:
    """The backends of one launcher, and how a world is made for each of them.

    Attributes:
        backends: all of them.
        make_world: a world in a home directory.
        homes: where home directories go; each gets a number.
        scratch: folders where every user of a host can write, where they are the test's own.
        seen: what scenarios showed; shared between tests, so that each runs once.
        numbers: of home directories.
    """

    backends: Sequence[Backend]
    make_world: Callable[[str, Path], World]
    homes: Path
    scratch: tuple[str, ...] = ()
    seen: dict[str, dict[str, Observation]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def observe(self, scenario: str, body: Body) -> dict[str, Observation]:
        """What every backend does with a scenario: name of the backend → observation."""
        if scenario not in self.seen:
            self.seen[scenario] = self.run(body)
        return self.seen[scenario]

    def run(self, body: Body) -> dict[str, Observation]:
        """The same for a scenario without a name, which is not remembered."""
        return {backend.name: self._one(backend, body) for backend in self.backends}

    def check_side(
        self, backend: Backend | None, scenario: str, body: Body, *, expected: Observation
    ) -> None:
        """Fail when the backend, or any when it is ``None``, is not as expected or as the others.

        Raises:
            ParityError: the first line names who regressed, in which field, and both values.
        """
        self.check_seen(backend, scenario, self.observe(scenario, body), expected=expected)

    def check_seen(
        self,
        backend: Backend | None,
        scenario: str,
        seen: Mapping[str, Observation],
        *,
        expected: Observation,
    ) -> None:
        """Judge observations that were made already; see :meth:`check_side`."""
        allowances = [each for side in self.backends for each in side.allowances]
        tell(lambda: [sides_of(scenario, seen, expected=expected, allowances=allowances)])
        self._judge(backend, scenario, seen, expected=expected, allowances=allowances)

    def _judge(
        self,
        backend: Backend | None,
        scenario: str,
        seen: Mapping[str, Observation],
        *,
        expected: Observation,
        allowances: Sequence[Allowance],
    ) -> None:
        broken = {name: each for name, each in seen.items() if BROKE_OFF in each}
        if broken and (backend is None or backend.name in broken):
            ends = {name: {BROKE_OFF: each.get(BROKE_OFF, "")} for name, each in seen.items()}
            judged = None if backend is None else backend.name
            check_parity(scenario, ends, expected={BROKE_OFF: ""}, judged=judged)
        seen = {name: each for name, each in seen.items() if name not in broken}
        if broken and not expected and len(seen) == 1:
            return
        if not expected and len(seen) == 1:
            not_run("options", "one backend alone is there, and the scenario compares them")
        check_parity(
            scenario,
            seen,
            expected=expected,
            allowances=allowances,
            judged=None if backend is None else backend.name,
        )

    def open(self, world: World) -> Launcher:
        """Another launcher in a world, as a second process of the same user has one."""
        return next(side for side in self.backends if side.name == world.backend).open(world)

    def another_world(self, world: World, where: str) -> World:
        """The home of another user, on the same tools: ``beside``, ``below`` or ``of its name``."""
        another = f"{next(self.numbers):05}-of another {world.backend} user"
        homes = {
            "beside": self.homes / another,
            "below": world.home / another,
            "of its name": self.homes / another / world.home.name,
        }
        return world.beside(homes[where])

    def _one(self, backend: Backend, body: Body) -> Observation:
        # A path as people have them: with a space, a quote and a letter beyond ASCII.
        home = self.homes / f"{next(self.numbers):05}-{backend.name} d'été"
        world = self.make_world(backend.name, home)
        world.share([Path(folder) for folder in self.scratch])
        try:
            with overheard(world):
                observation = body(world, backend.open(world))
            world.check()
        except UnknownInvocation as error:
            return {BROKE_OFF: f"{type(error).__name__}: {error}"}
        except (AssertionError, HarnessError):
            raise
        except (Exception, SimulatedCrash) as error:  # noqa: BLE001 - judged as a field
            return {BROKE_OFF: f"{type(error).__name__}: {error}"}
        return observation
