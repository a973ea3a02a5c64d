"""The examples of one round: the steps that each took, how it failed, and when no more are wanted.

Hypothesis decides what to try. This watches: it makes each machine, sees its end, and ends a round
from within where the time is over or the harness could not go on. A round ends so by a
``BaseException``, which Hypothesis takes for no failure and lets through.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import getattr_static
from typing import Final

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import HypothesisException, StopTest
from hypothesis.reporting import with_reporter
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from harness_core.base.bridge import check_cancelled
from harness_core.base.errors import HarnessError
from harness_core.base.groups import unwrap
from harness_core.base.machine import is_disk_full

#: So few that a round which is never cut short costs seconds, and each has a seed of its own.
EXAMPLES_OF_A_ROUND: Final = 5

#: How Hypothesis writes a step and what a rule drew in it; at this verbosity it writes much else.
_STEP: Final = re.compile(r"(?:\(?\w+,?\)?(?:, \w+)* = )*state\.(?P<name>\w+)\(")
_DRAWN: Final = re.compile(r"Draw \d+(?: \(.*?\))?: (?P<value>.*)", re.DOTALL)

#: What Hypothesis marks an invariant by, in all its versions of six.
_INVARIANT: Final = "hypothesis_stateful_invariant"

Make = Callable[[], RuleBasedStateMachine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An example that failed.

    Attributes:
        error: what a rule, an invariant or the teardown raised.
        made: how the machine is made.
        steps: as Hypothesis writes them, the last one failed, or what is ``broken`` did after it.
        broken: the invariant that did not hold; empty for a rule or the teardown.
        first_steps: how many there were before anything was left out.
        seed: of the round.
        stopped: whether the time was over before Hypothesis had found nothing smaller.
        flaky: whether the same steps did not fail when they were taken again.
    """

    error: BaseException
    made: str
    steps: tuple[str, ...]
    broken: str
    first_steps: int
    seed: int
    stopped: bool
    flaky: bool


@dataclass(slots=True)
class _Example:
    """What has been written of one example."""

    made: str
    invariants: frozenset[str]
    steps: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    broken: str = ""
    written: bool = False
    error: BaseException | None = None

    def write(self, line: str) -> None:
        """Take a line of Hypothesis'."""
        self.written = True
        if drawn := _DRAWN.match(line):
            self.drawn.append(drawn["value"])
        step = _STEP.match(line)
        if step is None or step["name"] == "teardown":
            return
        if step["name"] in self.invariants:
            self.broken = step["name"]
            return
        self.steps.append(f"{line}  # {', '.join(self.drawn)}" if self.drawn else line)
        self.drawn.clear()
        self.broken = ""

    @property
    def size(self) -> tuple[int, int]:
        """How many steps, and how long."""
        return len(self.steps), sum(map(len, self.steps))


class _Stop(BaseException):
    """No more examples are wanted."""


class Examples:
    """One round.

    Args:
        make: makes a machine, once for each example.
        ends: when no further example may begin (``time.monotonic()``); ``None`` for never.
        shrink_s: how long Hypothesis may look for fewer steps.
    """

    def __init__(self, make: Make, *, ends: float | None, shrink_s: float) -> None:
        self._make = make
        self._ends = ends
        self._shrink_s = shrink_s
        self._now: _Example | None = None
        self._failures: list[_Example] = []
        self._ending: BaseException | None = None
        self.count = 0
        self.steps = 0

    def run(self, *, steps: int, seed: int) -> Failed | None:
        """Run the round; return its smallest failure.

        Raises:
            HarnessError: in a rule; nothing is left out of such an example.
            Exception: the machine itself is malformed.
        """

        def make() -> RuleBasedStateMachine:
            return self._begin()

        flaky = False
        try:
            with with_reporter(self._note_line):
                run_state_machine_as_test(
                    hypothesis.seed(seed)(make),  # type: ignore[arg-type]  # it may be any callable
                    settings=_settings(max_steps=steps),
                )
        except BaseException as error:
            if self._ending is not None:  # Hypothesis may have put an error of its own in its place
                if not isinstance(self._ending, _Stop):
                    raise self._ending from None
            elif not isinstance(error, Exception) or not self._failures:
                raise  # the machine is malformed, or it is no matter of examples
            else:
                flaky = isinstance(error, (HypothesisException, BaseExceptionGroup))
        if not self._failures:
            return None
        # Of several with as few steps the last one is what Hypothesis preferred.
        least = min(reversed(self._failures), key=lambda example: example.size)
        assert least.error is not None, "it failed"
        return Failed(
            error=least.error,
            made=least.made,
            steps=tuple(least.steps),
            broken=least.broken,
            first_steps=len(self._failures[0].steps),
            seed=seed,
            stopped=self._ending is not None,
            flaky=flaky,
        )

    def _begin(self) -> RuleBasedStateMachine:
        """Make the machine of the next example, unless no more are wanted."""
        self._now = None
        try:
            check_cancelled()
        except BaseException as cancelled:
            self._ending = cancelled
            raise
        if self._ends is not None and time.monotonic() > self._ends:
            self._ending = _Stop()
            raise self._ending
        outside = sys.exception()
        try:
            machine = self._make()
        except BaseException as error:
            self._now = _Example(made="it cannot be made", invariants=frozenset(), written=True)
            self._note_end(self._now, error)
            raise
        # An invariant is written as a step is; only the one that does not hold is worth a line.
        example = _Example(
            made=f"state = {type(machine).__name__}()",
            invariants=frozenset(
                name
                for name in dir(type(machine))
                if hasattr(getattr_static(machine, name), _INVARIANT)
            ),
        )
        self._now = example
        teardown = machine.teardown

        def end() -> None:
            """What Hypothesis calls at the end of an example, while its error is on the way."""
            error = sys.exception()
            if error is outside:
                error = None
                example.broken = ""  # it held
            try:
                teardown()
            except BaseException as last:
                if error is None or not isinstance(last, Exception):
                    self._note_end(example, last)
                    raise
                error.add_note(f"and then its teardown raised {last!r}")
            self._note_end(example, error)

        machine.teardown = end  # type: ignore[method-assign]
        return machine

    def _note_end(self, example: _Example, error: BaseException | None) -> None:
        """An example is over: it passed, it failed, or no more can be tried."""
        if isinstance(error, (StopTest, HypothesisException)):  # it was given up, not judged
            return
        self.count += 1
        self.steps += len(example.steps)
        if error is None:
            return
        error = unwrap(error)
        judged = isinstance(error, (Exception, pytest.fail.Exception))
        if not judged or isinstance(error, HarnessError) or is_disk_full(error):
            self._ending = error
            raise _Stop
        if not example.written:  # Hypothesis repeats the smallest one, and writes it elsewhere
            return
        example.error = error
        self._failures.append(example)
        if len(self._failures) == 1:
            self._ends = time.monotonic() + self._shrink_s

    def _note_line(self, text: object) -> None:
        if self._now is not None:
            self._now.write(str(text))


def _settings(*, max_steps: int) -> hypothesis.settings:
    """What does not depend on the profile that a suite or a machine has."""
    return hypothesis.settings(
        max_examples=EXAMPLES_OF_A_ROUND,
        stateful_step_count=max_steps,
        phases=(Phase.generate, Phase.shrink),
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.debug,  # it writes the steps of each example, not of the last alone
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
