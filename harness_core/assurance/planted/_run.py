"""Run pytest without faults, then once per fault.

Each run is a supervised child: a product that hangs under a fault ends with its time limit, and
whatever it started ends with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from harness_core.assurance.planted._choice import Choice, choose_faults
from harness_core.assurance.planted._judge import FaultResult, judge, judge_control
from harness_core.assurance.planted._outcomes import Outcomes
from harness_core.assurance.planted._plan import Fault
from harness_core.assurance.planted._pytest import PytestRuns
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.process import open_run
from harness_core.system.suites import Suite

_ALL: Final = Choice()


async def run_faults(
    suite: Suite,
    *,
    root: Path,
    choice: Choice = _ALL,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _line: None,
    count: Callable[[int, int], None] = lambda _done, _of: None,
) -> tuple[FaultResult, ...]:
    """Plant the faults of a suite, each in a run of its own.

    Logs and outcomes go to ``.evidence/faults/<suite>/`` below the root.

    Args:
        suite: the suite whose reference system is given the faults.
        root: where pytest starts.
        choice: which of its faults to plant; all of them when left out.
        jobs: how many runs may be under way at once, after the control run.
        say: called with a line of progress.
        count: called with how many faults are done, and of how many.

    Raises:
        BadInput: the suite has no faults, its file is malformed, or the choice names an unknown one.
    """
    faults = choose_faults(suite, choice)
    if choice.sample is not None or choice.shard is not None:
        ids = [fault.id for fault in faults]
        # What is in a shard depends on durations that were measured elsewhere: it is named in full.
        again = choice if choice.shard is None else Choice(only=ids)
        say(f"{suite.name}: {len(faults)} fault(s) {choice.chosen_by}: {', '.join(ids)}")
        say(f"{suite.name}: the same again: {again.rerun(suite.name)}")
    evidence = open_evidence(root / ".evidence" / "faults" / suite.name, wipe=True)
    prefix = suite.folder.relative_to(root).as_posix()
    wanted = {fault.id: [f"{prefix}/{test}" for test in fault.tests] for fault in faults}
    every_id = sorted({name for names in wanted.values() for name in names})
    results: dict[str, FaultResult] = {}
    at_once = trio.CapacityLimiter(jobs)
    async with open_run(evidence=evidence) as run:
        runner = _Runner(
            pytest=PytestRuns(run=run, root=root), env=_without_faults(os.environ, faults)
        )
        say(f"{suite.name}: control run of {len(every_id)} test ids without a fault")
        control = await runner.control(
            every_id, limit_s=sum(fault.limit_s for fault in faults), evidence=evidence
        )

        async def plant(fault: Fault) -> None:
            result = await runner.plant(fault, wanted[fault.id], control=control, evidence=evidence)
            at_once.release_on_behalf_of(fault.id)
            results[fault.id] = result
            count(len(results), len(faults))
            place = f"{suite.name}: [{len(results)}/{len(faults)}]"
            say(f"{place} {fault.id}: {result.verdict} ({result.duration_s:.1f} s)")

        async with trio.open_nursery() as nursery:
            for fault in faults:
                # Before its task is there: tasks do not begin in the order of the file.
                await at_once.acquire_on_behalf_of(fault.id)
                nursery.start_soon(plant, fault)
    return tuple(results[fault.id] for fault in faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """Starts pytest for one suite.

    Attributes:
        pytest: starts it.
        env: the environment without faults.
    """

    pytest: PytestRuns
    env: Mapping[str, str]

    async def control(
        self, wanted: Sequence[str], *, limit_s: float, evidence: Evidence
    ) -> Outcomes:
        """Run the tests of all faults on the product as it is."""
        outcomes, _ = await self.pytest.selected(
            wanted, env=self.env, limit_s=limit_s, evidence=evidence.child("control")
        )
        return outcomes

    async def plant(
        self, fault: Fault, wanted: Sequence[str], *, control: Outcomes, evidence: Evidence
    ) -> FaultResult:
        """Switch one fault on, unless the control run shows that it could prove nothing."""
        if hopeless := judge_control(wanted, control=control):
            return FaultResult(fault=fault, tests=hopeless, duration_s=0.0)
        began_s = trio.current_time()
        outcomes, timed_out = await self.pytest.selected(
            wanted,
            env={**self.env, **fault.env},
            limit_s=fault.limit_s,
            evidence=evidence.child(fault.id),
        )
        nodeids = dict.fromkeys(nodeid for name in wanted for nodeid in control.selected[name])
        tests = judge(fault, nodeids=tuple(nodeids), outcomes=outcomes, timed_out=timed_out)
        return FaultResult(fault=fault, tests=tests, duration_s=trio.current_time() - began_s)


def _without_faults(env: Mapping[str, str], faults: Sequence[Fault]) -> dict[str, str]:
    """The environment of the control run: no fault of this suite is switched on by accident."""
    switches = {name for fault in faults for name in fault.env}
    return {name: value for name, value in env.items() if name not in switches}
