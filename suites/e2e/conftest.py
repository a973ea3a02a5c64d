"""Fixtures of the suite: one ecosystem per run, also under pytest-xdist; the roster; the cost.

Alone, pytest boots the ecosystem in its own process. Under ``-n`` the controller holds it for all
workers (``harness_core.hosting``): booted when the first of them asks, alive whatever becomes of
one of them, taken down when all are done. Tests share it; those marked ``disturbs`` have it to
themselves while they run.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from harness_core.bridge import Loop
from harness_core.budget import keep_costs, llm_budget_usd
from harness_core.db import POSTGRES_URL_VARIABLE
from harness_core.errors import BudgetExceeded, HarnessError, Unavailable
from harness_core.evidence import Evidence
from harness_core.hosting import HeldHost, Line, hold_host
from harness_core.llm import Gateway, LedgerEntry, cost_summary, expect_rehearsed, refused_keys
from harness_core.process import Run
from harness_core.pytest_plugin import (
    add_summary,
    explain_failures,
    fail_run,
    open_run_evidence,
    progress_of,
)
from harness_core.skips import not_run
from harness_core.subject import Subject
from suites.e2e.attached import attach
from suites.e2e.connected import MODULES, Connected, open_connected, wanted
from suites.e2e.ecosystem import TRACING, Ecosystem, open_ecosystem, roster_directory
from suites.e2e.held import holding
from suites.e2e.layout import OWN_PROCESS
from suites.e2e.logwatch import ErrorLine, blamed, error_lines, leaked_lines, mark_logs
from suites.e2e.profiles import profiled
from suites.e2e.roster import read_roster
from suites.e2e.subject_file import read_subject

#: The reference system has tests of its own, which session e2e_reference runs.
collect_ignore = ["reference-system"]

FOLDER: Final = Path(__file__).parent
HOST: Final = "e2e_host"

#: The ecosystems besides the one of the run, and the tests of each; test ids begin at the root.
#: Last, tests that have the one of the run to themselves: in a row, while others have their own.
TOGETHER: Final = {
    "fragile": ("suites/e2e/resilience/",),
    "connected": (
        "suites/e2e/test_cross_butler_flow.py",
        "suites/e2e/test_heartbeat_flow.py",
        "suites/e2e/test_messenger_flow.py",
        "suites/e2e/test_relationship_flow.py::test_an_appointment_reaches_the_calendar",
        "suites/e2e/contracts/test_module_degradation.py",
        "suites/e2e/security/test_secrets_of_modules.py",
    ),
    "alone": (
        "suites/e2e/test_handles.py",
        "suites/e2e/test_switchboard_flow.py::test_accepted_messages_survive_a_restart",
        "suites/e2e/test_switchboard_flow.py::test_a_duplicate_after_a_restart",
        "suites/e2e/contracts/test_concurrency.py::test_a_full_queue",
        "suites/e2e/contracts/test_schedules.py::test_a_restart_loses_no_task",
        "suites/e2e/observability/test_traces.py::test_spans_are_not_lost",
        "suites/e2e/observability/test_traces.py::test_a_collector_that_is_down",
    ),
}
_HELD: Final = pytest.StashKey[HeldHost]()
_OPEN: Final = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """A test that fails while the gateway refuses the butlers' key says so."""
    explain_failures(config, _refused_keys)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the ecosystem of this run is held."""
    config: pytest.Config = node.config
    if _HELD not in config.stash:
        config.stash[_OPEN] = ExitStack()
        config.add_cleanup(config.stash[_OPEN].close)
        evidence = open_run_evidence(config)
        say = progress_of(config)
        config.stash[_HELD] = config.stash[_OPEN].enter_context(
            hold_host(
                lambda run, loop: holding(opening(config, run, loop, evidence=evidence, say=say)),
                title="e2e",
                evidence=evidence,
                say=say,
            )
        )
    node.workerinput[HOST] = str(config.stash[_HELD].path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests with an ecosystem of their own share it: the worker that boots it runs them all."""
    # xdist is there when it asks.
    from harness_core.hosting.scheduling import TogetherScheduling

    return TogetherScheduling(config, log, together=TOGETHER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What breaks something, or needs an ecosystem of its own, is slow: it waits for restarts."""
    if item.get_closest_marker("disturbs") or _group_of(item) in TOGETHER:
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In whatever order tests run, those with an ecosystem of their own run in a row.

    Raises:
        BadInput: a mistake in the subject file, or in a butler's: nothing is run.
    """
    read_roster(roster_directory(read_subject(_given_subject(config))))
    first = {}
    for place, item in enumerate(items):
        first.setdefault(_group_of(item), place)
    items.sort(key=lambda item: first[_group_of(item)])


def _given_subject(config: pytest.Config) -> Path | None:
    given = config.getoption("--subject")
    return Path(given).absolute() if given else None


def _group_of(item: pytest.Item) -> str:
    for group, beginnings in TOGETHER.items():
        if item.nodeid.startswith(beginnings):
            return group
    return item.nodeid


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take down what the controller held, when all workers are done."""
    if _OPEN in session.config.stash:
        try:
            session.config.stash[_OPEN].close()
        except HarnessError as error:
            fail_run(session, "the ecosystem of the run", str(error))


@asynccontextmanager
async def opening(
    config: pytest.Config,
    run: Run,
    loop: Loop,
    *,
    evidence: Evidence,
    say: Callable[[str], None],
) -> AsyncIterator[Ecosystem]:
    """The ecosystem that the options of the command line ask for; reports its cost at the end."""
    subject = read_subject(_given_subject(config))
    say(f"booting {subject.name}")
    cassette = config.getoption("--llm-cassette")
    opened: AbstractAsyncContextManager[Ecosystem] = open_ecosystem(
        run,
        subject,
        evidence=evidence,
        services=config.getoption("--services"),
        services_url=os.environ.get(POSTGRES_URL_VARIABLE),
        llm=config.getoption("--llm"),
        llm_upstream=config.getoption("--llm-upstream"),
        llm_cassette=Path(cassette).absolute() if cassette else None,
        budget_usd=llm_budget_usd(config, FOLDER),
        loop=loop,
        say=say,
    )
    async with opened as ecosystem:
        say(f"ecosystem up after {ecosystem.boot_s:.1f} s")
        async with profiled(config, run, ecosystem, evidence=evidence):
            yield ecosystem
        totals = await ecosystem.gateway.client.totals()
        evidence.write_json("cost.json", totals)
        keep_costs(config, FOLDER, {test: group.usd for test, group in totals.by_test.items()})
        booted = f"booted in {ecosystem.boot_s:.1f} s; evidence: {evidence.path}"
        add_summary(config, "cost of the model", f"{cost_summary(totals)}\n{booted}")


@pytest.fixture(scope="session")
def subject(subject_file: Path | None) -> Subject:
    """What is tested: the reference system, or the file given with ``--subject``."""
    return read_subject(subject_file)


@pytest.fixture(autouse=True)
def capable(request: pytest.FixtureRequest, subject: Subject) -> None:
    """Skip, by name, what the subject does not claim to do."""
    for marker in request.node.iter_markers("capability"):
        for name in marker.args:
            if name not in subject.capabilities:
                not_run(
                    "subject", f"{subject.name} lists no capability {name!r} in {subject.path.name}"
                )


@pytest.fixture(scope="session")
def host_line(pytestconfig: pytest.Config) -> Iterator[Line | None]:
    """This worker's connection to the process that holds the ecosystem; none when it is our own."""
    path = getattr(pytestconfig, "workerinput", {}).get(HOST)
    if path is None:
        yield None
        return
    with Line(Path(path)) as line:
        yield line


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test during which a butler logs an error that the test does not provoke has failed.

    Raises:
        AssertionError: tells the lines; a test that failed for another reason keeps that one.
        HarnessError: it failed, and the model had no turn for a call of it: that may be why.
    """
    failed = True
    try:
        result = yield
        failed = False
    except AssertionError:
        expect_rehearsed(_calls(item))
        raise
    finally:
        blame = [
            f"{line.log}: {line.text}"
            for ecosystem in _ecosystems(item)
            for line in _errors_of(item, ecosystem)
        ]
        if blame and failed:
            item.add_report_section("call", "errors in the butlers' logs", "\n".join(blame))
    told = "\n".join(blame)

    assert not blame, f"unexpected errors in the butlers' logs:\n{told}"
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """What a test that disturbs logs while it is being undone is not the next test's."""
    result = yield
    if item.get_closest_marker("disturbs"):
        for ecosystem in _ecosystems(item):
            ecosystem.watched = mark_logs(ecosystem.butler_logs())
    return result


def _ecosystems(item: pytest.Item) -> list[Ecosystem]:
    given = getattr(item, "funcargs", {}).values()
    return list({id(value): value for value in given if isinstance(value, Ecosystem)}.values())


def _calls(item: pytest.Item) -> list[LedgerEntry]:
    """The model calls that are booked on a test."""
    gateways = {each.gateway.url: each.gateway.client for each in _ecosystems(item)}
    entries: list[LedgerEntry] = []
    for client in gateways.values():
        with suppress(Unavailable):  # a test may have taken it away; what failed stands
            entries += trio.run(client.ledger)
    return [entry for entry in entries if entry.test == item.nodeid]


def _refused_keys(item: pytest.Item, began: dt.datetime) -> str:
    given = getattr(item, "funcargs", {})
    used = [*_ecosystems(item), *([given["connected"].butlers] if "connected" in given else ())]
    subject: Subject | None = given.get("subject")
    variables = subject.env.items() if subject else ()
    held_in = [name for name, value in variables if "{gateway_key}" in value]
    gateways = {ecosystem.gateway.url: ecosystem.gateway.client for ecosystem in used}
    said = [
        refused_keys(trio.run(client.ledger), test=item.nodeid, since=began, held_in=held_in)
        for client in gateways.values()
    ]
    return "\n".join(filter(None, said))


def _errors_of(item: pytest.Item, ecosystem: Ecosystem) -> tuple[ErrorLine, ...]:
    """The error lines since the last look that this test must answer for."""
    logs = ecosystem.butler_logs()
    since, ecosystem.watched = ecosystem.watched, mark_logs(logs)
    others = frozenset(ecosystem.sent_ids[: ecosystem.watched_ids])
    own = frozenset(ecosystem.sent_ids[ecosystem.watched_ids :])
    ecosystem.watched_ids = len(ecosystem.sent_ids)
    until = ecosystem.watched
    found = (*error_lines(logs, since, until=until), *leaked_lines(logs, since, until=until))
    ecosystem.late_errors.extend(line for line in found if line.ids & others and not line.ids & own)
    return blamed(
        found,
        own=own,
        others=others,
        alone=not hasattr(item.config, "workerinput"),
        expected=[str(arg) for mark in item.iter_markers("expects_errors") for arg in mark.args],
        disturbs=item.get_closest_marker("disturbs") is not None,
    )


@pytest.fixture(scope="session")
def butler_ecosystem(
    request: pytest.FixtureRequest,
    harness_loop: Loop,
    host_line: Line | None,
    run_evidence: Evidence,
    subject: Subject,
    progress: Callable[[str], None],
    pytestconfig: pytest.Config,
) -> Iterator[Ecosystem]:
    """The running ecosystem: a handle per butler of the roster (seed 000, "Dimension 1")."""
    if host_line is not None:
        manager = attach(host_line.path, subject, evidence=run_evidence, line=host_line)
    else:
        run: Run = request.getfixturevalue("harness_run")
        manager = opening(pytestconfig, run, harness_loop, evidence=run_evidence, say=progress)
    with harness_loop.hold(manager) as ecosystem:
        yield ecosystem
        late = "\n".join(f"{line.log}: {line.text}" for line in ecosystem.late_errors)

        assert not late, f"errors about messages of tests that had ended:\n{late}"


@pytest.fixture(autouse=True)
def turn(
    request: pytest.FixtureRequest, capable: None, subject: Subject, host_line: Line | None
) -> Iterator[None]:
    """This test's turn at the ecosystem: shared with other workers' tests, or alone.

    Raises:
        HarnessError: a test that may disturb left something broken; it has been put right.
        AssertionError: a butler died during a test that did nothing to it.
    """
    if "butler_ecosystem" not in request.fixturenames:
        yield
        return
    ecosystem: Ecosystem = request.getfixturevalue("butler_ecosystem")
    loop: Loop = request.getfixturevalue("harness_loop")
    evidence: Evidence = request.getfixturevalue("evidence")
    disturbs = request.node.get_closest_marker("disturbs") is not None
    crowds = request.node.get_closest_marker("crowds") is not None
    # Without trace ids nobody could tell whose rows are whose.
    alone = disturbs or crowds or TRACING not in subject.capabilities
    marker = request.getfixturevalue("token") if "token" in request.fixturenames else ""
    name = request.node.nodeid
    if host_line is not None:
        host_line.ask("enter", alone=alone)
    left: Sequence[str] = ()
    try:
        only = host_line is None or alone
        loop.run(
            lambda: ecosystem.begin(
                name, alone=disturbs, only=only, evidence=evidence, marker=marker
            )
        )
        yield
    finally:
        loop.run(ecosystem.end)
        if host_line is None or alone:
            left = loop.run(ecosystem.mend)
        if host_line is not None:
            host_line.ask("leave")
    if left and disturbs:
        raise HarnessError(
            "go on with the ecosystem as it was",
            observed=f"{name} left it broken: {'; '.join(left)}",
            next_step="It was put right. Have the test restore what it takes away",
        )

    assert not left, f"during {name}: {'; '.join(left)} (it was put right)"


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
    if OWN_PROCESS not in subject.capabilities:
        not_run("subject", f"{subject.name}: one process serves every butler, none can be left out")
    if not all(wanted(subject, f"modules.{name}") for name in MODULES):
        not_run("subject", f"{subject.path.name} does not say how modules are given credentials")
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
    harness_loop.run(heartbeat.start)
    yield connected
    harness_loop.run(heartbeat.stop)


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
async def ecosystem(butler_ecosystem: Ecosystem, request: pytest.FixtureRequest) -> Ecosystem:
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
    return butler_ecosystem
