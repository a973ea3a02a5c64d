"""A suite's sessions without a mutant: once as they are, once with the product's coverage measured."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness_core.assurance.agent import VARIABLE, ask_for_coverage, read_messages
from harness_core.assurance.mutation._job import (
    Setting,
    agent_folder,
    environment_of_jobs,
    pytest_options,
)
from harness_core.assurance.mutation._map import CoverageMap, Measured, open_map, write_map
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._unheard import watch
from harness_core.assurance.planted import Outcomes, PytestRuns
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import Evidence
from harness_core.system.suites import Suite, SuiteSession

#: A session of a suite that is run twice: the slowest takes ten minutes on a 2-core machine.
_SESSION_S: Final = 3600.0

#: Of the map: one of another form is measured anew.
_FORM: Final = 3

#: Files that decide what tests do.
_TEST_FILES: Final = (".py", ".toml", ".yaml", ".json")


def choose_sessions(suite: Suite, names: Sequence[str]) -> tuple[SuiteSession, ...]:
    """The sessions whose tests may notice a mutant: those named, else those that bare nox runs.

    Raises:
        BadInput: there is no such session.
    """
    # The reference system's own tests run inside it; a mutant is for those from outside.
    known = {session.name: session for session in suite.sessions if not session.own_tests}
    for name in names:
        if name not in known:
            raise BadInput(
                suite.folder / "suite.toml",
                key="--session",
                found=name,
                expected=f"one of {', '.join(known)}",
            )
    chosen = [known[name] for name in names]
    return tuple(chosen or [each for each in known.values() if each.default] or known.values())


def fingerprint_of(
    product: Product, suite: Suite, sessions: Sequence[SuiteSession], *, setting: Setting
) -> str:
    """What a map was measured with, in one word: the product's code, the tests, what was watched."""
    total = hashlib.sha256(product.fingerprint.encode())
    total.update(f"{_FORM} {setting.subject} {setting.here} ".encode())
    total.update(",".join(session.name for session in sessions).encode())
    inside = [source for source in product.sources if suite.folder in source.parents]
    for path in sorted(suite.folder.rglob("*")):
        aside = any(source == path or source in path.parents for source in inside)
        if path.suffix in _TEST_FILES and path.name != "mutants.toml" and not aside:
            total.update(path.relative_to(suite.folder).as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()


async def measured_map(  # noqa: PLR0913 - what a run of pytest needs
    suite: Suite,
    *,
    setting: Setting,
    product: Product,
    sessions: Sequence[SuiteSession],
    pytest: PytestRuns,
    evidence: Evidence,
    say: Callable[[str], None] = lambda _line: None,
) -> CoverageMap:
    """The map of a suite: the one that is there, or one that is measured now.

    Raises:
        HarnessError: no test is green, or nothing of the product was executed.
    """
    path = evidence.path / "coverage.sqlite"
    fingerprint = fingerprint_of(product, suite, sessions, setting=setting)
    found = open_map(path, fingerprint=fingerprint)
    if found is not None:
        return found
    say(f"{suite.name}: control run of {', '.join(session.name for session in sessions)}")
    environment = environment_of_jobs(os.environ)
    runner = _Sessions(suite, setting, pytest, evidence)
    control = [await runner.run(each, "control", environment) for each in sessions]
    tests = {
        test: Measured(
            seconds=outcomes.seconds[test],
            green=outcome.outcome == "passed",
            starts=outcome.starts,
        )
        for outcomes in control
        for test, outcome in outcomes.tests.items()
    }
    green = sum(test.green for test in tests.values())
    if not green:
        raise HarnessError(
            f"mutate the product of {suite.name}",
            observed=f"none of {len(tests)} tests passes without a mutant",
            next_step=f"What they wrote: {_folders(evidence, sessions)}",
        )
    say(f"{suite.name}: {green} of {len(tests)} tests are green; what each executes is measured")
    folder = agent_folder()
    try:
        cache = Path(setting.root) / ".evidence" / "mutation" / ".libraries"
        libraries = (
            product.environment.libraries(cache)
            if product.environment is not None
            else own_libraries()
        )
        request = ask_for_coverage(
            folder, sources=product.sources, libraries=libraries, own=product.in_tests
        )
        environment = {**environment, VARIABLE: str(request)}
        async with watch(product) as watched:
            for session in sessions:
                outcomes = await runner.run(session, "coverage", environment)
                for test, outcome in outcomes.tests.items():
                    if test in tests and tests[test].green and outcome.outcome == "failed":
                        tests[test] = replace(tests[test], shaky=True)
        found = write_map(
            path,
            product=product,
            fingerprint=fingerprint,
            messages=read_messages(folder),
            tests=tests,
            unheard=watched.unheard(read_messages(folder)),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not found.arcs_of():
        found.close()
        path.unlink()
        raise HarnessError(
            f"measure what the tests of {suite.name} execute",
            observed=f"nothing of {', '.join(map(str, product.sources))} was executed",
            next_step="Name the product's code and its Python: --source DIR --python PATH",
        )
    return found


def _folders(evidence: Evidence, sessions: Sequence[SuiteSession]) -> str:
    return ", ".join(str(evidence.path / f"control-{session.name}") for session in sessions)


def own_libraries() -> tuple[Path, ...]:
    """Where the agent lies, for a product that runs in the environment of the harness alone."""
    from harness_core.assurance import agent

    return (Path(agent.__file__).parent,)


class _Sessions:
    """Runs whole sessions."""

    def __init__(
        self, suite: Suite, setting: Setting, pytest: PytestRuns, evidence: Evidence
    ) -> None:
        self._suite = suite
        self._setting = setting
        self._pytest = pytest
        self._evidence = evidence

    async def run(self, session: SuiteSession, what: str, env: dict[str, str]) -> Outcomes:
        """Run one session; what became of its tests.

        Raises:
            HarnessError: it did not end in an hour.
        """
        prefix = self._suite.folder.relative_to(self._pytest.root).as_posix()
        evidence = self._evidence.child(f"{what}-{session.name}")
        (evidence.path / "outcomes.jsonl").unlink(missing_ok=True)
        words = [
            *(f"{prefix}/{path}" for path in session.paths),
            *(["-m", session.markers] if session.markers else []),
            *session.options,
            *pytest_options(self._setting),
        ]
        outcomes, timed_out = await self._pytest.collected(
            words, env=env, limit_s=_SESSION_S, evidence=evidence
        )
        if timed_out:
            raise HarnessError(
                f"run session {session.name}",
                observed=f"no end within {_SESSION_S:.0f} s",
                next_step=f"Name a shorter one: --session NAME; what it wrote: {evidence.path}",
            )
        return outcomes
