"""Run pytest without faults, then once per fault.

Each run is a supervised child: a product that hangs under a fault ends with its time limit, and
whatever it started ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from harness_core.assurance.planted._choice import Choice, choose_faults
from harness_core.assurance.planted._judge import (
    FaultResult,
    judge,
    judge_beside,
    judge_control,
    judge_right,
)
from harness_core.assurance.planted._outcomes import Outcomes, merged
from harness_core.assurance.planted._plan import Fault
from harness_core.assurance.planted._product import Product, load_product
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
    """Plant the faults of a product, each in a run of its own.

    Logs and outcomes go to ``.evidence/faults/<product>/`` below the root.

    Args:
        suite: the suite whose tests must notice.
        root: where pytest starts.
        choice: of which product which faults; all of the reference system's when left out.
        jobs: how many runs may be under way at once; the control run is divided among as many.
        say: called with a line of progress.
        count: called with how many faults are done, and of how many.

    Raises:
        BadInput: the product has no faults, their file is malformed, or the choice names an unknown
            one.
    """
    product = load_product(suite, choice.subject)
    faults = choose_faults(product, choice)
    if choice.sample is not None or choice.shard is not None:
        ids = [fault.id for fault in faults]
        # What is in a shard depends on durations that were measured elsewhere: it is named in full.
        again = choice if choice.shard is None else Choice(subject=choice.subject, only=ids)
        say(f"{product.name}: {len(faults)} fault(s) {choice.chosen_by}: {', '.join(ids)}")
        say(f"{product.name}: the same again: {again.rerun(suite.name)}")
    evidence = open_evidence(evidence_of(product, root=root), wipe=True)
    results: dict[str, FaultResult] = {}
    at_once = trio.CapacityLimiter(jobs)
    async with open_run(evidence=evidence) as run:
        runner = _Runner(pytest=PytestRuns(run=run, root=root), product=product)
        wanted = sorted({name for fault in faults for name in product.tests(fault)})
        say(f"{product.name}: control run of {len(wanted)} test ids without a fault")
        limit_s = sum(fault.limit_s for fault in faults)
        control = await runner.control(
            wanted, runs=jobs, limit_s=limit_s, evidence=evidence, say=say
        )

        async def plant(fault: Fault) -> None:
            result = await runner.plant(fault, control=control, evidence=evidence)
            at_once.release_on_behalf_of(fault.id)
            results[fault.id] = result
            count(len(results), len(faults))
            place = f"{product.name}: [{len(results)}/{len(faults)}]"
            say(f"{place} {fault.id}: {result.verdict} ({result.duration_s:.1f} s)")

        async with trio.open_nursery() as nursery:
            for fault in faults:
                # Before its task is there: tasks do not begin in the order of the file.
                await at_once.acquire_on_behalf_of(fault.id)
                nursery.start_soon(plant, fault)
    return tuple(results[fault.id] for fault in faults)


async def plant_fault(
    product: Product, fault: Fault, *, root: Path, evidence: Evidence
) -> FaultResult:
    """Plant one fault, where another run shows that its tests pass without it."""
    async with open_run(evidence=evidence) as run:
        runner = _Runner(pytest=PytestRuns(run=run, root=root), product=product)
        return await runner.plant(fault, control=None, evidence=evidence)


async def ask_right(product: Product, *, root: Path, evidence: Evidence) -> tuple[str, ...]:
    """What is wrong with how a product of another make is judged as it is, a line each."""
    named = product.ids([test for fault in product.faults for test in fault.tests])
    async with open_run(evidence=evidence) as run:
        runner = _Runner(pytest=PytestRuns(run=run, root=root), product=product)
        outcomes = await runner.without(
            [*product.right, *named],
            limit_s=sum(fault.limit_s for fault in product.faults),
            evidence=evidence.child("control"),
        )
    return judge_right(outcomes, named=named, least=product.asked.passes)


def evidence_of(product: Product, *, root: Path) -> Path:
    """Where the logs of a product's faults are kept."""
    of_another = f"-{product.name}" if product.subject is not None else ""
    return root / ".evidence" / "faults" / f"{product.suite.name}{of_another}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """Starts pytest for one product.

    Attributes:
        pytest: starts it.
        product: what its tests are about.
    """

    pytest: PytestRuns
    product: Product

    async def control(
        self,
        wanted: Sequence[str],
        *,
        runs: int,
        limit_s: float,
        evidence: Evidence,
        say: Callable[[str], None],
    ) -> Outcomes:
        """Run tests on the product as it is, divided among so many runs at once."""
        parts = _divided(wanted, runs)
        found: list[Outcomes] = []

        async def run_part(part: Sequence[str], name: str) -> None:
            kept, began = evidence.child(name), trio.current_time()
            found.append(await self.without(part, limit_s=limit_s, evidence=kept))
            took_s = trio.current_time() - began
            place = f"{self.product.name}: control run [{len(found)}/{len(parts)}]"
            say(f"{place} {len(part)} test ids ({took_s:.1f} s)")

        async with trio.open_nursery() as nursery:
            for number, part in enumerate(parts, start=1):
                name = "control" if len(parts) == 1 else f"control-{number}"
                nursery.start_soon(run_part, part, name)
        return merged(found)

    async def without(
        self, wanted: Sequence[str], *, limit_s: float, evidence: Evidence
    ) -> Outcomes:
        """Run tests on the product as it is."""
        outcomes, _ = await self.pytest.selected(
            wanted,
            env=self.product.environment,
            limit_s=limit_s,
            evidence=evidence,
            options=self.product.options,
        )
        return outcomes

    async def plant(
        self, fault: Fault, *, control: Outcomes | None, evidence: Evidence
    ) -> FaultResult:
        """Switch one fault on, unless the control run shows that it could prove nothing."""
        named = self.product.ids(fault.tests)
        if control and (hopeless := judge_control(named, control=control)):
            return FaultResult(fault=fault, tests=hopeless, duration_s=0.0)
        began_s = trio.current_time()
        outcomes, timed_out = await self.pytest.selected(
            self.product.tests(fault),
            env={**self.product.environment, **fault.env},
            limit_s=fault.limit_s,
            evidence=evidence.child(fault.id),
            options=self.product.options,
        )
        rows = (control or outcomes).selected
        nodeids = dict.fromkeys(nodeid for name in named for nodeid in rows.get(name) or [name])
        foreign = self.product.subject is not None
        tests = judge(
            fault, nodeids=tuple(nodeids), outcomes=outcomes, timed_out=timed_out, at_once=foreign
        )
        if foreign:
            tests += judge_beside(fault, named=nodeids, outcomes=outcomes, control=control)
        return FaultResult(fault=fault, tests=tests, duration_s=trio.current_time() - began_s)


def _divided(wanted: Sequence[str], runs: int) -> list[list[str]]:
    """Parts of about as many test ids, no file in two: what a file boots is booted once."""
    files: dict[str, list[str]] = {}
    for name in wanted:
        files.setdefault(name.partition("::")[0], []).append(name)
    parts: list[list[str]] = [[] for _ in range(min(runs, len(files)))]
    for names in sorted(files.values(), key=len, reverse=True):
        min(parts, key=len).extend(names)
    return parts
