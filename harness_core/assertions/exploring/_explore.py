"""Rounds of examples until a test's share of the time is over, or one fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

import hypothesis

from harness_core.assertions.exploring._examples import Examples, Failed, Make
from harness_core.assertions.exploring._story import story
from harness_core.base.bridge import blocking

#: However little the share is, a failure is worth so much looking for fewer steps.
_SHRINK_S = 10.0


class Explore:
    """Explores the product from one test; the fixture ``explore``.

    Round 0 has the seed, each later one the next number. The first round is never cut short, so
    whatever a later one found is found again by starting with its seed.

    Args:
        seconds: this test's share.
        seed: of the first round.
        repeat: the command that runs this test alone, from a seed on.
        done: is given a line about what was tried.
    """

    def __init__(
        self,
        *,
        seconds: float,
        seed: int,
        repeat: Callable[[int], str],
        done: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._seconds = seconds
        self._seed = seed
        self._repeat = repeat
        self._done = done

    async def __call__(self, make: Make, *, steps: int = 30) -> None:
        """Run machines in a thread, so that their rules can wait for this loop.

        Args:
            make: makes a machine, once for each example; each starts from nothing, e.g. with names
                that no other one has.
            steps: most rules that one example runs.

        Raises:
            HarnessError: in a rule, as it is.
            Exception: what the smallest failing example raised; its note has the steps, the seed
                and the command.
        """
        __tracebackhide__ = True
        failed = await blocking(self._rounds, make, steps)
        if failed is not None:
            raise self._error(failed)

    def run(self, make: Make, *, steps: int = 30) -> None:
        """The same for a test without a loop: its machines wait for nothing."""
        __tracebackhide__ = True
        failed = self._rounds(make, steps)
        if failed is not None:
            raise self._error(failed)

    def _rounds(self, make: Make, steps: int) -> Failed | None:
        began = time.monotonic()
        ends = began + self._seconds
        tried = steps_tried = number = 0
        failed = None
        while failed is None and (number == 0 or time.monotonic() < ends):
            examples = Examples(
                make,
                ends=ends if number else None,
                shrink_s=max(self._seconds, _SHRINK_S),
            )
            failed = examples.run(steps=steps, seed=self._seed + number)
            tried += examples.count
            steps_tried += examples.steps
            number += 1
        took_s = time.monotonic() - began
        seeds = f"{self._seed} to {self._seed + number - 1}"
        self._done(f"{tried} examples, {steps_tried} steps, seeds {seeds}, {took_s:.1f} s")
        return failed

    def _error(self, failed: Failed) -> BaseException:
        error = failed.error
        error.__notes__ = [
            # Hypothesis adds what it would print; the story says the same of this very example.
            *(note for note in getattr(error, "__notes__", ()) if "state = " not in note),
            story(failed, repeat=self._repeat(failed.seed)),
        ]
        return error.with_traceback(_own_part(error.__traceback__))


def _own_part(traceback: TracebackType | None) -> TracebackType | None:
    """The frames from the rule on: those before it are Hypothesis'."""
    folder = hypothesis.__file__.rpartition("/")[0]
    own = traceback
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(folder):
            own = traceback.tb_next
        traceback = traceback.tb_next
    return own
