"""Bottles over their lives: any order of starts, ends, resumes, proposals, crashes and cleanups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from suites.parity.lives import Lives, check_lives
from suites.parity.sides import Sides

if TYPE_CHECKING:
    from harness_core.assertions.exploring import Explore

pytestmark = [
    pytest.mark.covers("PARITY-RESUME", "PARITY-CLEANUP", "PARITY-REMEDIATION", "PARITY-BOTTLE"),
    pytest.mark.simulated("hundreds of guests, and launchers that die"),
]

#: What every run does; `nox -s explore -- parity` looks further, and for the fewest steps.
_ALWAYS: Final = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


#: Each step of a program takes as long as a hundred of a library.
_OF_A_PROGRAM: Final = settings(_ALWAYS, max_examples=2, stateful_step_count=12)


def test_bottles_keep_their_lives_apart(sides: Sides) -> None:
    """Whatever is done to bottles in one home, each is what it was said to be, and no other."""
    is_library = all(backend.in_process for backend in sides.backends)
    check_lives(sides, _ALWAYS if is_library else _OF_A_PROGRAM)


@pytest.mark.explore
def test_lives_are_explored(explore: Explore, sides: Sides) -> None:
    """The same for as long as there is time, with more steps and other seeds."""
    explore.run(lambda: Lives(sides), steps=60)
