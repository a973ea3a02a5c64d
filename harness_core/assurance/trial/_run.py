"""Run the tests that show capabilities, on the product, in a pytest of their own.

The first of them starts the product: where it does not pass, nothing else is learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.assurance.planted import Outcomes, PytestRuns, became
from harness_core.assurance.requirements import asked_capabilities
from harness_core.assurance.trial._judge import Tried, Verdict, judge
from harness_core.assurance.trial._plan import Together, plan_runs, untriable
from harness_core.base.errors import Unavailable
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.process import open_run
from harness_core.system.subject import Subject
from harness_core.system.suites import Suite

#: A run with a system of processes to boot, and one test of it: each bounds hanging alone.
_BOOT_S: Final = 300.0
_TEST_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one product can do of what its suite declares.

    Attributes:
        suite: which.
        subject: the product.
        tried: every capability of the suite, in the order of its file; none when it does not start.
        not_started: what became of the start, with its last lines; empty when it did start.
        evidence: where the logs are.
    """

    suite: Suite
    subject: Subject
    tried: tuple[Tried, ...] = ()
    not_started: str = ""
    evidence: Path

    @property
    def in_vain(self) -> bool:
        """The file claims something that is not there."""
        return bool(self.not_started) or any(each.verdict is Verdict.IN_VAIN for each in self.tried)


async def try_capabilities(
    suite: Suite,
    subject: Subject,
    *,
    root: Path,
    options: Sequence[str] = (),
    say: Callable[[str], None] = lambda _line: None,
) -> Trial:
    """Try each capability of a suite on a product, whether it is claimed or not.

    Logs and outcomes go to ``.evidence/trial/<suite>/`` below the root.

    Args:
        suite: declares the capabilities and the test that starts the product.
        subject: the product.
        root: where pytest starts.
        options: what pytest is given besides.
        say: called with a line of progress.

    Raises:
        Unavailable: the harness could not run that test.
    """
    evidence = open_evidence(root / ".evidence" / "trial" / suite.name, wipe=True)
    prefix = f"{suite.folder.relative_to(root).as_posix()}/"
    tried = {
        name: Tried(
            name=name,
            claimed=name in subject.capabilities,
            verdict=Verdict.UNTRIED,
            detail=why,
        )
        for name, why in untriable(suite, subject).items()
    }
    plan = plan_runs(suite, subject, asked=asked_capabilities(suite, root=root))
    async with open_run(evidence=evidence) as run:
        runner = _Runner(
            pytest=PytestRuns(run=run, root=root),
            suite=suite,
            prefix=prefix,
            options=(f"--subject={subject.path}", *options),
        )
        for number, together in enumerate(plan, start=1):
            names = ", ".join(each.name for each in together.capabilities) or "none"
            say(f"{suite.name}: [{number}/{len(plan)}] trying {names}")
            outcomes, unended = await runner.run(
                together, boot=number == 1, evidence=evidence.child(f"run-{number}")
            )
            if number == 1 and (text := _of_start(suite, prefix, outcomes, unended)):
                return Trial(suite=suite, subject=subject, not_started=text, evidence=evidence.path)
            for each in judge(
                together.capabilities,
                claimed=subject.capabilities,
                prefix=prefix,
                outcomes=outcomes,
                unended=unended,
            ):
                tried[each.name] = each
    return Trial(
        suite=suite,
        subject=subject,
        tried=tuple(tried[each.name] for each in suite.capabilities),
        evidence=evidence.path,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """Starts pytest for one product.

    Attributes:
        pytest: starts it.
        suite: whose tests.
        prefix: what stands before their ids.
        options: what each is given.
    """

    pytest: PytestRuns
    suite: Suite
    prefix: str
    options: Sequence[str]

    async def run(
        self, together: Together, *, boot: bool, evidence: Evidence
    ) -> tuple[Outcomes, str]:
        """Run the tests of some capabilities.

        Returns:
            What became of them, and why one of them has no outcome.
        """
        tests = dict.fromkeys(
            f"{self.prefix}{test}" for each in together.capabilities for test in each.shown_by
        )
        options = [*self.options, *(f"--try-capability={name}" for name in together.pretended)]
        if boot and self.suite.boots:
            starts = f"{self.prefix}{self.suite.boots}"
            tests = {starts: None} | tests
            options.append(f"--harness-boot={starts}")
        limit_s = _BOOT_S + _TEST_S * len(tests)
        outcomes, timed_out = await self.pytest.selected(
            list(tests),
            # A gate that is closed is an answer here, also in CI.
            env={**os.environ, "CI": "", "HARNESS_REQUIRE": ""},
            limit_s=limit_s,
            evidence=evidence,
            options=options,
        )
        ended = f"no end within {limit_s:g} s" if timed_out else "it did not run to its end"
        return outcomes, f"{ended}; see {evidence.path}"


def _of_start(suite: Suite, prefix: str, outcomes: Outcomes, unended: str) -> str:
    """Why the product does not start; empty when it does.

    Raises:
        Unavailable: that is not known, since the harness could not run the test.
    """
    if not suite.boots:
        return ""
    action = f"start the product by {suite.boots}"
    nodeids = outcomes.selected.get(f"{prefix}{suite.boots}", ())
    if not nodeids:
        raise Unavailable(action, observed=f"the test was not collected; {unended}")
    for nodeid in nodeids:
        outcome = outcomes.tests.get(nodeid)
        if outcome is None:
            raise Unavailable(action, observed=unended)
        if outcome.outcome == "failed" and not outcome.harness:
            # Below its words pytest repeats the expression that was false.
            words = outcome.text.removeprefix("AssertionError: ").partition("\nassert ")[0]
            return words or became(outcome)
        if outcome.outcome != "passed":
            raise Unavailable(action, observed=f"{outcome.outcome}: {outcome.text}")
    return ""
