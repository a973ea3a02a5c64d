"""Fixtures of the suite: an ecosystem for each worker, the small ones beside it, the cost.

Every worker of pytest-xdist boots its own, when its first test asks. Tests share it one after the
other; those marked ``disturbs`` take parts of it away, and leave it as they found it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from harness_core.assurance import gates
from harness_core.base.bridge import Loop
from harness_core.base.errors import BudgetExceeded, HarnessError, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.doubles.model import (
    Gateway,
    LedgerEntry,
    expect_rehearsed,
    refused_keys,
)
from harness_core.front.budget import report_costs
from harness_core.front.pytest_plugin import add_summary, explain_failures
from harness_core.front.skips import not_run
from harness_core.front.suite_fixtures import suite_subject
from harness_core.infrastructure.databases import UNDEFINED
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import roster_directory
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.subject_file import OWN_PROCESS, tables_of
from suites.e2e.observe.flamegraphs import profiled
from suites.e2e.observe.logs import ErrorLine, blamed, error_lines, leaked_lines, mark_logs
from suites.e2e.observe.profiling import cannot_profile
from suites.e2e.observe.witness import broken_promises, place_witness
from suites.e2e.worlds.credentialed import MODULES, Connected, open_connected, variables_of

gates.register(
    gates.Gate(
        name="profiling", summary="profiles of running processes (py-spy)", probe=cannot_profile
    )
)

#: The reference system has tests of its own, which session e2e_reference runs.
collect_ignore = ["reference-system"]

FOLDER: Final = Path(__file__).parent

#: Fixtures that boot an ecosystem besides the worker's own; their tests run in a row.
SMALL: Final = ("connected", "fragile_ecosystem")

#: Of what rows went through; the rest is of the same kind.
SHOWN_PROMISES: Final = 5


def pytest_configure(config: pytest.Config) -> None:
    """A test that fails while the gateway refuses the butlers' key says so."""
    explain_failures(config, _refused_keys)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What breaks something, or needs an ecosystem of its own, is slow: it waits for restarts."""
    if item.get_closest_marker("disturbs") or _small(item):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In whatever order tests run, those that share a small ecosystem run in a row.

    One row stands first and one in the middle, where the second of two workers begins.

    Raises:
        BadInput: a mistake in the subject file, or in a butler's: nothing is run.
    """
    read_roster(roster_directory(suite_subject(config, FOLDER)))
    rows = {name: [item for item in items if _small(item) == name] for name in ("", *SMALL)}
    half = max(0, len(items) // 2 - len(rows[SMALL[0]]))
    others = rows[""]
    items[:] = [*rows[SMALL[0]], *others[:half], *rows[SMALL[1]], *others[half:]]


def _small(item: pytest.Item) -> str:
    """The fixture of the small ecosystem that a test uses; empty for none."""
    names = getattr(item, "fixturenames", ())
    return next((name for name in SMALL if name in names), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test during which a butler logs an error that the test does not provoke has failed.

    So has one during which a row went through what no row may (``observe/witness.py``).

    Raises:
        AssertionError: shows the lines; a test that failed for another reason keeps that one.
        HarnessError: it failed, and the model had no turn for a call of it: that may be why.
    """
    failed = True
    try:
        result = yield
        failed = False
    except AssertionError:
        expect_rehearsed(_calls(item))
        raise
    except UNDEFINED as error:
        place = "where the product keeps it elsewhere, [tables] of its subject file says where"
        raise AssertionError(
            f"expected a table of the contract, found: {error}; {place}"
        ) from error
    finally:
        blame = [
            f"{line.log}: {line.text}"
            for ecosystem in _ecosystems(item)
            for line in _errors_of(item, ecosystem)
        ]
        broken = _broken(item)
        if blame and failed:
            item.add_report_section("call", "errors in the butlers' logs", "\n".join(blame))
        if broken and failed:
            item.add_report_section("call", "what rows went through", "\n".join(broken))
    lines = "\n".join(blame)

    assert not broken, "\n".join(broken[:SHOWN_PROMISES])
    assert not blame, f"unexpected errors in the butlers' logs:\n{lines}"
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


def _broken(item: pytest.Item) -> tuple[str, ...]:
    """What rows of the ecosystems that a test uses went through, and none may."""
    given = getattr(item, "funcargs", {})
    loop: Loop | None = given.get("harness_loop")
    found: list[str] = []
    for ecosystem in _used(item) if loop else ():
        if ecosystem.witnessed:
            found += loop.run(partial(broken_promises, ecosystem))
    return tuple(found)


def _used(item: pytest.Item) -> list[Ecosystem]:
    """The ecosystems that a test uses, the connected one too."""
    given = getattr(item, "funcargs", {})
    connected = next((given[name] for name in ("connected", "beating") if name in given), None)
    return [*_ecosystems(item), *([connected.butlers] if connected else ())]


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
    subject: Subject | None = given.get("subject")
    variables = subject.env.items() if subject else ()
    held_in = [name for name, value in variables if "{gateway_key}" in value]
    gateways = {ecosystem.gateway.url: ecosystem.gateway.client for ecosystem in _used(item)}
    notes = [
        refused_keys(trio.run(client.ledger), test=item.nodeid, since=began, held_in=held_in)
        for client in gateways.values()
    ]
    return "\n".join(filter(None, notes))


def _errors_of(item: pytest.Item, ecosystem: Ecosystem) -> tuple[ErrorLine, ...]:
    """The error lines since the last test that this one must answer for."""
    logs = ecosystem.butler_logs()
    since, ecosystem.watched = ecosystem.watched, mark_logs(logs)
    others = frozenset(ecosystem.sent_ids[: ecosystem.watched_ids])
    own = frozenset(ecosystem.sent_ids[ecosystem.watched_ids :])
    ecosystem.watched_ids = len(ecosystem.sent_ids)
    until = ecosystem.watched
    pattern = tables_of(ecosystem.subject).log.error
    errors = error_lines(logs, since, until=until, pattern=pattern)
    if not pattern and "log-levels" not in ecosystem.subject.capabilities:
        errors = tuple(line for line in errors if line.traceback)
    found = (*errors, *leaked_lines(logs, since, until=until))
    ecosystem.late_errors.extend(line for line in found if line.ids & others and not line.ids & own)
    return blamed(
        found,
        own=own,
        others=others,
        expected=[str(arg) for mark in item.iter_markers("expects_errors") for arg in mark.args],
        disturbs=item.get_closest_marker("disturbs") is not None,
    )


@pytest.fixture(scope="session")
def butler_ecosystem(
    environment: Ecosystem,
    harness_loop: Loop,
    harness_run: Run,
    run_evidence: Evidence,
    pytestconfig: pytest.Config,
) -> Iterator[Ecosystem]:
    """The running ecosystem: a handle per butler of the roster (E2E-PROVISIONING)."""
    harness_loop.run(partial(place_witness, environment))
    profiling = profiled(pytestconfig, harness_run, environment, evidence=run_evidence)
    with harness_loop.hold(profiling):
        yield environment
    totals = harness_loop.run(environment.gateway.client.totals)
    run_evidence.write_json("cost.json", totals)
    booted = f"booted in {environment.boot_s:.1f} s; evidence: {run_evidence.path}"
    report_costs(pytestconfig, FOLDER, totals, note=booted)
    late = "\n".join(f"{line.log}: {line.text}" for line in environment.late_errors)

    assert not late, f"errors about messages of tests that had ended:\n{late}"


@pytest.fixture(autouse=True)
def booked(request: pytest.FixtureRequest, capable: None) -> Iterator[None]:
    """What a test does to the worker's ecosystem is booked on it, and put right after it.

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
    name = request.node.nodeid
    left: Sequence[str] = ()
    loop.run(lambda: ecosystem.begin(name, evidence=evidence))
    try:
        yield
    finally:
        loop.run(ecosystem.end)
        left = loop.run(ecosystem.mend)
    if left and request.node.get_closest_marker("disturbs"):
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
    if not all(variables_of(subject, module) for module in MODULES):
        not_run("subject", f"{subject.path.name} has no [modules] that give credentials")
    manager = open_connected(
        harness_run,
        subject,
        evidence=run_evidence.child("connected"),
        roster=tmp_path_factory.mktemp("connected") / "roster",
        say=progress,
    )
    with harness_loop.hold(manager) as connected:
        harness_loop.run(partial(place_witness, connected.butlers))
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
    """The gateway, whose ledger counts every model call of the run (E2E-COST)."""
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
