"""One mutant: its tests in one pytest process, in which the product is that mutant.

Run as a program, it takes a job as a line of JSON on its standard input and prints the result; it
ends when its standard input does, so that it does not outlive a worker of a cluster.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import trio
from msgspec import structs

from harness_core.assurance.agent import (
    VARIABLE,
    ask_for_damage,
    find_environment,
    read_messages,
)
from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._product import Product, find_product
from harness_core.assurance.mutation._verdict import Result, Verdict, judge_mutant
from harness_core.assurance.planted import Outcomes, PytestRuns
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.process import Run, open_run
from harness_core.system.suites import load_suite

#: A worker of a cluster has its checkout here, unless it has it where whoever plans has it.
ROOT_VARIABLE: Final = "HARNESS_MUTATE_ROOT"

#: A test that fails by the mutant takes about what it takes without; on a machine that others use,
#: or that waits for what never comes, more.
_TIMES: Final = 3.0
_ALLOWED_S: Final = 2.0

TESTS_PLUGIN: Final = "harness_core.assurance.agent._tests_plugin"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all jobs of a campaign have in common.

    Attributes:
        root: the tree.
        suite: name of the suite.
        subject: a subject file instead of the suite's own, relative to the tree; empty for that.
        sources: folders of the product's code; empty for those of its distribution.
        python: the product's interpreter; empty when it is found.
        here: the agent may be put into the environment of the harness.
    """

    root: str
    suite: str
    subject: str = ""
    sources: tuple[str, ...] = ()
    python: str = ""
    here: bool = False

    def product(self) -> Product:
        """The product, on this machine.

        Raises:
            HarnessError: there is none.
        """
        root = Path(self.root)
        return find_product(
            load_suite(root / "suites" / self.suite),
            root=root,
            subject=root / self.subject if self.subject else None,
            sources=[root / source for source in self.sources],
            python=Path(self.python) if self.python else None,
        )


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant and its tests.

    Attributes:
        setting: of the campaign.
        mutant: the change.
        tests: ids of the tests to run, in this order.
        covering: how many tests execute it.
        limit_s: seconds that the run may take.
        seconds: what each of the tests takes without the mutant.
        shaky: those of them that have failed without it.
        starting: tests whose body starts the product, for a mutant with which fixtures cannot.
    """

    setting: Setting
    mutant: Mutant
    tests: tuple[str, ...]
    covering: int
    limit_s: float
    seconds: tuple[float, ...] = ()
    shaky: tuple[str, ...] = ()
    starting: tuple[str, ...] = ()


async def run_job(job: Job, product: Product, pytest: PytestRuns, evidence: Evidence) -> Result:
    """Run the tests of a mutant; a harness that cannot gives no verdict."""
    began_s = trio.current_time()
    if product.environment is None or _is_same(product):
        try:
            compile(_damaged(job, product), job.mutant.file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return _unrun(job, Verdict.STILLBORN, f"it does not compile: {error}")
    try:
        result, outcomes = await _judged(job, job.tests, product, pytest, evidence)
        if result.verdict is Verdict.KILLED_BADLY and job.starting and _broken_start(outcomes):
            started, _ = await _judged(
                job, job.starting, product, pytest, evidence.child("starting")
            )
            if started.verdict is Verdict.KILLED:
                result = started
        if result.verdict is Verdict.KILLED and _is_doubtful(job, result, outcomes):
            again, _ = await _judged(job, [result.test], product, pytest, evidence.child("again"))
            if again.verdict is not Verdict.KILLED:
                detail = f"{result.test} killed it, and not when it was run again"
                result = _unrun(job, Verdict.NO_VERDICT, f"{detail}: {again.detail}")
    except HarnessError as error:
        result = _unrun(job, Verdict.NO_VERDICT, str(error))
    return structs.replace(result, duration_s=round(trio.current_time() - began_s, 3))


async def _judged(
    job: Job, tests: Sequence[str], product: Product, pytest: PytestRuns, evidence: Evidence
) -> tuple[Result, Outcomes]:
    """Run some tests on the mutant, and judge it by them alone."""
    began_s = trio.current_time()
    folder = agent_folder()
    try:
        request = ask_for_damage(folder, job.mutant.damage(product), own=product.in_tests)
        outcomes, timed_out = await pytest.selected(
            tests,
            env={**os.environ, VARIABLE: str(request)},
            limit_s=job.limit_s,
            evidence=evidence,
            options=[
                *pytest_options(job.setting),
                "--harness-first-kill",
                *(["-n0"] if has_xdist() else []),
            ],
        )
        result = judge_mutant(
            job.mutant.id,
            tests=tests,
            covering=job.covering,
            outcomes=outcomes,
            messages=read_messages(folder),
            limit_s=job.limit_s if timed_out else None,
            duration_s=trio.current_time() - began_s,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result, outcomes


def _broken_start(outcomes: Outcomes) -> bool:
    """Whether no test came to its body: what it is that the product cannot do is not shown."""
    return all(outcome.phase != "call" for outcome in outcomes.tests.values())


def _is_doubtful(job: Job, result: Result, outcomes: Outcomes) -> bool:
    """Whether the killing test fails without the mutant too, or took so long that load may be it."""
    if result.test in job.shaky:
        return True
    seconds = dict(zip(job.tests, job.seconds, strict=False)).get(result.test)
    took_s = outcomes.seconds.get(result.test, 0.0)
    return seconds is not None and took_s > _TIMES * seconds + _ALLOWED_S


def pytest_options(setting: Setting) -> list[str]:
    """What every pytest of a campaign is given: the same tests in the same order, on this subject."""
    options = ["-p", TESTS_PLUGIN, "-p", "no:randomly"]
    return [*options, "--subject", setting.subject] if setting.subject else options


@cache
def has_xdist() -> bool:
    """Whether pytest knows ``-n``."""
    from importlib.util import find_spec

    return find_spec("xdist") is not None


def agent_folder() -> Path:
    """A folder for one run; its path is short, since a socket is in it."""
    return Path(tempfile.mkdtemp(prefix="harness-agent-", dir="/tmp"))


def _is_same(product: Product) -> bool:
    """Whether the product's Python has the grammar of this one."""
    return product.environment is not None and (
        product.environment.tag == sys.implementation.cache_tag
    )


def _damaged(job: Job, product: Product) -> bytes:
    return job.mutant.apply(product.files[job.mutant.file].read_bytes())


def _unrun(job: Job, verdict: Verdict, detail: str) -> Result:
    return Result(mutant=job.mutant.id, verdict=verdict, detail=detail, tests_covering=job.covering)


def main() -> None:
    """Run the job of the first line of standard input; print its result."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    root = os.environ.get(ROOT_VARIABLE)
    if root:
        job = structs.replace(job, setting=structs.replace(job.setting, root=root))
    result = trio.run(_while_input_lasts, job)
    if result is not None:
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")


async def _while_input_lasts(job: Job) -> Result | None:
    """The result; ``None`` when whoever wants it is gone."""
    result = None
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            # Nothing more is said: what can be read is the end.
            await trio.lowlevel.wait_readable(sys.stdin.fileno())
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        result = await _alone(job)
        nursery.cancel_scope.cancel()
    return result


async def _alone(job: Job) -> Result:
    try:
        product = job.setting.product()
        root = Path(job.setting.root)
        folder = root / ".evidence" / "mutation" / job.setting.suite / "mutants" / job.mutant.id
        evidence = open_evidence(folder, wipe=True)
        async with open_run(evidence=evidence) as run:
            with ExitStack() as stack:
                enter_environment(product, job.setting, stack, run)
                return await run_job(job, product, PytestRuns(run=run, root=root), evidence)
    except HarnessError as error:
        return _unrun(job, Verdict.NO_VERDICT, str(error))


def enter_environment(product: Product, setting: Setting, stack: ExitStack, run: Run) -> None:
    """Have the agent in the product's environment until the stack ends.

    Raises:
        BadInput: that is the environment of the harness, and no one said that it may be put there.
    """
    environment = product.environment
    if environment is None and setting.here:
        environment = find_environment(Path(sys.executable))
    if environment is None:
        return
    if environment.own and not setting.here:
        raise BadInput(
            "harness mutate",
            key="--python",
            found=str(environment.python),
            expected="an environment of the product's own",
            next_step="With --here the agent is put into this one for the time of the campaign",
        )
    stack.enter_context(environment.with_agent(run))


def environment_of_jobs(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without a request of somebody else's."""
    return {name: value for name, value in env.items() if name != VARIABLE}


if __name__ == "__main__":
    main()
