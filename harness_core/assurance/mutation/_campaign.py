"""A campaign: the chosen mutants of a suite's product, each judged by the tests that execute it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Final

import trio

from harness_core.assurance.mutation._choice import Choice, choose_mutants
from harness_core.assurance.mutation._equivalents import (
    FILE,
    load_equivalents,
    stale_equivalents,
)
from harness_core.assurance.mutation._index import Mutant, load_index
from harness_core.assurance.mutation._job import Job, Setting, enter_environment, run_job
from harness_core.assurance.mutation._map import CoverageMap
from harness_core.assurance.mutation._measure import choose_sessions, measured_map
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._store import Store
from harness_core.assurance.mutation._unheard import words_about
from harness_core.assurance.mutation._verdict import Result, Verdict
from harness_core.assurance.mutation._written import load_written
from harness_core.assurance.planted import PytestRuns
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.base.slowness import patience
from harness_core.process import open_run
from harness_core.system.suites import Suite

#: What the tests of one mutant may take without it, unless the command line says otherwise.
BUDGET_S: Final = 120.0

#: A run may take so many times what its tests take without the mutant, besides its start.
_TIMES: Final = 4.0
_START_S: Final = 60.0

Say = Callable[[str], None]
Count = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a campaign does.

    Attributes:
        setting: the suite and its product.
        choice: which mutants.
        sessions: whose tests; those that bare nox runs when none is named.
        budget_s: seconds that the tests of one mutant may take without it; those that fit are run.
        jobs: how many mutants at once on this machine.
        scheduler: the address of a Dask scheduler whose workers run them instead.
        resume: keep the verdicts that are there.
        written: a file of mutants of one's own, instead of those that operators make.
    """

    setting: Setting
    choice: Choice = field(default_factory=Choice)
    sessions: Sequence[str] = ()
    budget_s: float = BUDGET_S
    jobs: int = 1
    scheduler: str = ""
    resume: bool = False
    written: Path | None = None

    def mutants(
        self, product: Product, *, say: Callable[[str], None] = lambda _line: None
    ) -> Sequence[Mutant]:
        """Those that it chooses from.

        Raises:
            BadInput: the product or the file cannot be read.
        """
        if self.written is not None:
            return load_written(self.written, product)
        index = folder_of(Path(self.setting.root), self.setting.suite) / "index.json"
        return load_index(product, index, say=say)


def folder_of(root: Path, suite: str) -> Path:
    """Where a suite's index, map and results are."""
    return root / ".evidence" / "mutation" / suite


def results_of(root: Path, plan: Plan) -> Path:
    """The file of a campaign's results; a shard has its own, and so has a file of mutants."""
    shard = plan.choice.shard
    name = f"results-{plan.written.stem}" if plan.written is not None else "results"
    name = f"{name}.{shard.number}-of-{shard.count}.sqlite" if shard else f"{name}.sqlite"
    return folder_of(root, plan.setting.suite) / name


async def run_campaign(
    suite: Suite,
    plan: Plan,
    *,
    say: Say = lambda _line: None,
    count: Count = lambda _done, _of: None,
) -> Store:
    """Run the chosen mutants; the caller closes the store.

    Raises:
        HarnessError: the suite cannot be run, or the choice names what there is not.
    """
    root = Path(plan.setting.root)
    product = plan.setting.product()
    evidence = open_evidence(folder_of(root, suite.name))
    sessions = choose_sessions(suite, plan.sessions)
    # What is asked for wrongly is told before the suite runs twice for its map.
    mutants = plan.mutants(product, say=say)
    chosen = choose_mutants(mutants, plan.choice, where=suite.folder)
    async with open_run(evidence=evidence) as run:
        with ExitStack() as stack:
            enter_environment(product, plan.setting, stack, run)
            pytest = PytestRuns(run=run, root=root)
            covered = await measured_map(
                suite,
                setting=plan.setting,
                product=product,
                sessions=sessions,
                pytest=pytest,
                evidence=evidence,
                say=say,
            )
            stack.callback(covered.close)
            store = Store(results_of(root, plan))
            store.begin(
                _meta(plan, covered, of=len(mutants), chosen=len(chosen)), resume=plan.resume
            )
            campaign = _Campaign(plan, suite, product, covered, store, pytest, evidence, say, count)
            await campaign.run(mutants, chosen)
    return store


def _meta(plan: Plan, covered: CoverageMap, *, of: int, chosen: int) -> dict[str, str]:
    return {
        "suite": plan.setting.suite,
        "fingerprint": covered.fingerprint,
        "chosen": f"{plan.choice.words} of {plan.written}" if plan.written else plan.choice.words,
        "shard": str(plan.choice.shard or ""),
        "mutants": str(of),
        "runs": str(chosen),
        "red": str(len(covered.red)),
        "without_agent": "\n".join(words_about(covered.unheard)),
    }


@dataclass(frozen=True, slots=True)
class _Campaign:
    plan: Plan
    suite: Suite
    product: Product
    covered: CoverageMap
    store: Store
    pytest: PytestRuns
    evidence: Evidence
    say: Say
    count: Count

    async def run(self, mutants: Sequence[Mutant], chosen: Sequence[Mutant]) -> None:
        equivalents = {} if self.plan.written else load_equivalents(self.suite.folder)
        stale = stale_equivalents(equivalents, mutants)
        for id_, why in stale.items():
            self.say(
                f"{self.suite.folder.name}/{FILE}: {id_} is stale, and counts for nothing: {why}"
            )
        known = {
            id_
            for id_, result in self.store.results().items()
            if result.verdict is not Verdict.NO_VERDICT
        }
        jobs, done = [], len(known.intersection(mutant.id for mutant in chosen))
        waiting: list[Mutant] = []
        for mutant in chosen:
            if mutant.id in known:
                continue
            row = equivalents.get(mutant.id)
            if row is not None and mutant.id not in stale:
                self._keep(mutant, _plain(mutant, Verdict.EQUIVALENT, row.reason))
                done += 1
            elif job := self._job(mutant):
                jobs.append(job)
                waiting.append(mutant)
            else:
                detail = "no test that is green without a mutant executes it"
                self._keep(mutant, _plain(mutant, Verdict.NOT_COVERED, detail))
                done += 1
        self.say(
            f"{self.suite.name}: {len(jobs)} mutants to run, {done} known already or not covered"
        )
        progress = _Progress(self, {mutant.id: mutant for mutant in waiting}, done, len(chosen))
        if self.plan.scheduler:
            from harness_core.assurance.mutation._dask import run_on_dask

            async for result in run_on_dask(self.plan.scheduler, jobs):
                progress.ended(result)
        else:
            await self._run_here(jobs, progress)

    async def _run_here(self, jobs: Sequence[Job], progress: _Progress) -> None:
        at_once = trio.CapacityLimiter(self.plan.jobs)

        async def one(job: Job) -> None:
            async with at_once:
                folder = open_evidence(self.evidence.path / "mutants" / job.mutant.id, wipe=True)
                progress.ended(await run_job(job, self.product, self.pytest, folder))

        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(one, job)

    def _job(self, mutant: Mutant) -> Job | None:
        """The tests that fit the budget, at least one; ``None`` when nothing executes it."""
        covering = self.covered.covering(mutant)
        if not covering.tests:
            return None
        known = self.covered.seconds
        seconds = [known[test] for test in covering.tests]
        fitting = sum(total <= self.plan.budget_s for total in accumulate(seconds))
        kept = max(1, fitting)
        tests = covering.tests[:kept]
        return Job(
            setting=self.plan.setting,
            mutant=mutant,
            tests=tests,
            seconds=tuple(seconds[:kept]),
            shaky=tuple(self.covered.shaky.intersection(tests)),
            starting=self.covered.starting,
            covering=len(covering.tests),
            limit_s=patience(_START_S + _TIMES * sum(seconds[:kept])),
        )

    def _keep(self, mutant: Mutant, result: Result) -> None:
        self.store.add(mutant, mutant.diff(self.product), result)


@dataclass(slots=True)
class _Progress:
    campaign: _Campaign
    mutants: dict[str, Mutant]
    done: int
    of: int

    def ended(self, result: Result) -> None:
        """Keep a result, and say so."""
        mutant = self.mutants[result.mutant]
        self.campaign._keep(mutant, result)  # noqa: SLF001 - of this module
        self.done += 1
        self.campaign.count(self.done, self.of)
        place = f"{mutant.file}:{mutant.line}"
        by = f" by {result.test}" if result.test else ""
        self.campaign.say(
            f"[{self.done}/{self.of}] {mutant.id} {result.verdict}{by} ({result.duration_s:.1f} s)"
            f" {place} {mutant.what}"
        )


def _plain(mutant: Mutant, verdict: Verdict, detail: str) -> Result:
    return Result(mutant=mutant.id, verdict=verdict, detail=detail)


def each_result(store: Store) -> Iterator[tuple[dict[str, str | int], Result]]:
    """Every mutant of a store with its result, by file and line."""
    results = store.results()
    for id_, mutant in store.mutants().items():
        if id_ in results:
            yield mutant, results[id_]
