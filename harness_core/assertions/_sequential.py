"""Is something that succeeds only mostly good enough? Decided trial by trial, stopped as soon as known.

Wald's sequential probability ratio test between two success rates. Each trial moves the logarithm
of the likelihood ratio of "bad" against "good"; the test ends when it leaves the band between
``log(missed / (1 - false_alarm))`` (good) and ``log((1 - missed) / false_alarm)`` (bad).

Source: A. Wald, "Sequential Tests of Statistical Hypotheses", Annals of Mathematical Statistics
16(2), 1945, sections 3 and 5. The bounds are Wald's approximation: the two error rates together
never exceed ``false_alarm + missed``. Decision 0040 says why this is not a library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from harness_core.base.errors import BadInput

#: How often something good may be called bad, and something bad good.
FALSE_ALARM: Final = 0.1
MISSED: Final = 0.1

#: Trials after which the better fitting of the two rates is taken; for a rate of 0.9, fewer than one
#: run in a hundred gets there.
MOST_TRIALS: Final = 30

#: A rate this much below the one that is asked for is bad.
_MARGIN: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialPlan:
    """The two rates that are distinguished; built by :meth:`for_rate`.

    Attributes:
        good: success rate that is good enough.
        bad: success rate that is not; what lies between may be decided either way.
    """

    good: float
    bad: float

    @classmethod
    def for_rate(cls, rate: float) -> SequentialPlan:
        """The plan for a declared pass rate: bad is a rate clearly below it.

        Raises:
            BadInput: the rate leaves no room below it, or is no rate.
        """
        if not _MARGIN < rate < 1:
            raise BadInput("pass_rate", found=rate, expected=f"above {_MARGIN} and below 1")
        return cls(good=rate, bad=rate - _MARGIN)


class SequentialTest:
    """One run of a plan.

    Attributes:
        passed: trials that succeeded so far.
        failed: trials that did not.
    """

    def __init__(self, plan: SequentialPlan) -> None:
        self._plan = plan
        self.passed = 0
        self.failed = 0

    def record(self, *, success: bool) -> None:
        """Count one trial.

        Raises:
            BadInput: the test has ended; a trial more would bend its error rates.
        """
        if self.decision is not None:
            raise BadInput("SequentialTest", found=self.text(), expected="a test that goes on")
        if success:
            self.passed += 1
        else:
            self.failed += 1

    @property
    def evidence(self) -> float:
        """Logarithm of the likelihood ratio: above zero speaks for bad, below for good."""
        plan = self._plan
        return self.passed * math.log(plan.bad / plan.good) + self.failed * math.log(
            (1 - plan.bad) / (1 - plan.good)
        )

    @property
    def decision(self) -> bool | None:
        """``True``: good enough; ``False``: not; ``None``: another trial is needed."""
        if self.evidence >= math.log((1 - MISSED) / FALSE_ALARM):
            return False
        if self.evidence <= math.log(MISSED / (1 - FALSE_ALARM)):
            return True
        if self.passed + self.failed >= MOST_TRIALS:
            return self.evidence < 0
        return None

    def text(self) -> str:
        """How it stands, for people."""
        verdict = {True: "good enough", False: "not good enough", None: "undecided"}[self.decision]
        return (
            f"{self.passed} of {self.passed + self.failed} trials passed: {verdict} for a rate of "
            f"{self._plan.good:g} (against {self._plan.bad:g})"
        )
