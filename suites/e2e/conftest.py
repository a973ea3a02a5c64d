"""Fixtures of the suite: one ecosystem per run, the roster, the cost of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_core.bridge import Loop
from harness_core.db import POSTGRES_URL_VARIABLE
from harness_core.errors import BudgetExceeded
from harness_core.evidence import Evidence
from harness_core.llm import Gateway, cost_summary
from harness_core.process import Run
from harness_core.pytest_plugin import add_summary
from harness_core.subject import Subject, load_subject
from suites.e2e.connected import Connected, open_connected
from suites.e2e.ecosystem import REFERENCE_SUBJECT, Ecosystem, open_ecosystem

#: The reference system has tests of its own, which its own environment runs.
collect_ignore = ["reference-system"]


@pytest.fixture(scope="session")
def subject(subject_file: Path | None) -> Subject:
    """What is tested: the reference system, or the file given with ``--subject``."""
    return load_subject(subject_file or REFERENCE_SUBJECT)


@pytest.fixture(autouse=True)
def capable(request: pytest.FixtureRequest, subject: Subject) -> None:
    """Skip, by name, what the subject does not claim to do."""
    for marker in request.node.iter_markers("capability"):
        for name in marker.args:
            if name not in subject.capabilities:
                pytest.skip(f"{subject.name} lists no capability {name!r} in {subject.path.name}")


@pytest.fixture(scope="session")
def butler_ecosystem(
    harness_loop: Loop,
    harness_run: Run,
    run_evidence: Evidence,
    subject: Subject,
    progress: Callable[[str], None],
    pytestconfig: pytest.Config,
) -> Iterator[Ecosystem]:
    """The running ecosystem: a handle per butler of the roster (seed 000, "Dimension 1")."""
    given = pytestconfig.getoption("--llm-cassette")
    cassette = Path(given) if given else None
    manager = open_ecosystem(
        harness_run,
        subject,
        evidence=run_evidence,
        services=pytestconfig.getoption("--services"),
        services_url=os.environ.get(POSTGRES_URL_VARIABLE),
        llm=pytestconfig.getoption("--llm"),
        llm_upstream=pytestconfig.getoption("--llm-upstream"),
        llm_cassette=cassette.absolute() if cassette else None,
        budget_usd=pytestconfig.getoption("--llm-budget-usd"),
        loop=harness_loop,
        say=progress,
    )
    progress(f"booting {subject.name}")
    with harness_loop.hold(manager) as ecosystem:
        progress(f"ecosystem up after {ecosystem.boot_s:.1f} s")
        yield ecosystem
        _report(pytestconfig, harness_loop, ecosystem, run_evidence)


def _report(config: pytest.Config, loop: Loop, ecosystem: Ecosystem, evidence: Evidence) -> None:
    totals = loop.run(ecosystem.gateway.client.totals)
    evidence.write_json("cost.json", totals)
    add_summary(
        config,
        "cost of the model",
        f"{cost_summary(totals)}\nbooted in {ecosystem.boot_s:.1f} s; evidence: {evidence.path}",
    )


@pytest.fixture(scope="session")
def connected(
    harness_loop: Loop,
    harness_run: Run,
    run_evidence: Evidence,
    subject: Subject,
    progress: Callable[[str], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Connected]:
    """A second, small ecosystem whose modules have credentials, and the services they speak to."""
    manager = open_connected(
        harness_run,
        subject,
        evidence=run_evidence.child("connected"),
        roster=tmp_path_factory.mktemp("connected") / "roster",
        loop=harness_loop,
        say=progress,
    )
    with harness_loop.hold(manager) as connected:
        yield connected


@pytest.fixture(scope="module")
def beating(connected: Connected, harness_loop: Loop) -> Iterator[Connected]:
    """The same with its heartbeat running, for the tests of one file."""
    heartbeat = connected.butlers["heartbeat"]
    harness_loop.run(heartbeat.start_here)
    yield connected
    harness_loop.run(heartbeat.stop_here)


@pytest.fixture(scope="session")
def travel_log(pytestconfig: pytest.Config) -> Iterator[list[str]]:
    """Where each scenario's message went and what it left, printed at the end of the run."""
    lines: list[str] = []
    yield lines
    if lines:
        add_summary(pytestconfig, "where each message went, and what it left", "\n".join(lines))


@pytest.fixture(scope="session")
def cost_tracker(butler_ecosystem: Ecosystem) -> Gateway:
    """The gateway, whose ledger counts every model call of the run (seed 000, design goal 3)."""
    return butler_ecosystem.gateway


@pytest.fixture
async def ecosystem(
    butler_ecosystem: Ecosystem, request: pytest.FixtureRequest, evidence: Evidence
) -> Ecosystem:
    """The ecosystem, with model calls booked on this test and its evidence directory attached.

    Raises:
        BudgetExceeded: an earlier test spent what the run may spend; the run stops here.
        HarnessError: an earlier test left the ecosystem broken.
    """
    butler_ecosystem.check_usable()
    try:
        await butler_ecosystem.check_budget()
    except BudgetExceeded as spent:
        request.session.shouldstop = str(spent)
        raise
    await butler_ecosystem.gateway.client.set_scope(request.node.nodeid)
    butler_ecosystem.evidence = evidence
    return butler_ecosystem
