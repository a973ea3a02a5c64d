"""An ecosystem to be broken: small, with short deadlines, used by no other test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.process import Run
from harness_core.system.staging import Options
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import link_butlers, open_ecosystem
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.observe.witness import place_witness
from suites.e2e.worlds.chaos import Chaos

#: A message after something broke: its sessions, a deadline or two on the way, on loaded cores.
PATIENCE_S: Final = 90.0

#: Who may be broken: the switchboard, two targets of one message, and the one it falls back to.
BUTLERS: Final = ("switchboard", "general", "health", "relationship")

#: Deadlines that a test may wait for and that only a broken part runs into.
SETTINGS: Final = {
    "switchboard": {"heartbeat_s": 1},
    "general": {"heartbeat_s": 1},
    "health": {"heartbeat_s": 1, "shutdown_s": 1},
    "relationship": {"heartbeat_s": 1, "queue_depth": 1},
}

#: Deadlines of the switchboard that healthy butlers must keep, on a machine with nothing else to do.
LEASE_S: Final = 6.0
CONNECT_S: Final = 5.0


@pytest.fixture(scope="package")
def lease_s() -> float:
    """The switchboard's lease: a butler that waits long for a core must not lose it."""
    return patience(LEASE_S)


@pytest.fixture(scope="package")
def fragile_ecosystem(
    lease_s: float,
    harness_loop: Loop,
    harness_run: Run,
    run_evidence: Evidence,
    subject: Subject,
    progress: Callable[[str], None],
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ecosystem]:
    """A second ecosystem, whose database, processes and model may be taken away at any time."""
    roster = tmp_path_factory.mktemp("fragile") / "roster"
    link_butlers(subject, roster, BUTLERS)
    environment = turned(
        subject, "switchboard", lease_s=lease_s, connect_deadline_s=patience(CONNECT_S)
    )
    for name, settings in SETTINGS.items():
        environment |= turned(subject, name, **settings)
    services = pytestconfig.getoption("--services")
    manager = open_ecosystem(
        harness_run,
        subject,
        evidence=run_evidence.child("fragile"),
        roster=roster,
        # An external server is not ours to break.
        options=Options(services="local" if services == "external" else services),
        environment=environment,
        say=progress,
    )
    progress("booting an ecosystem to be broken")
    with harness_loop.hold(manager) as ecosystem:
        harness_loop.run(partial(place_witness, ecosystem))
        ecosystem.patience_s = max(ecosystem.patience_s, PATIENCE_S)
        yield ecosystem


@pytest.fixture
def fragile(fragile_ecosystem: Ecosystem, evidence: Evidence) -> Ecosystem:
    """The ecosystem to be broken, whole.

    Raises:
        HarnessError: an earlier test broke it for good.
    """
    fragile_ecosystem.check_usable()
    fragile_ecosystem.evidence = evidence
    return fragile_ecosystem


@pytest.fixture
def chaos(fragile: Ecosystem, harness_loop: Loop) -> Iterator[Chaos]:
    """Breaks what a test wants broken; everything is given back afterwards, proved."""
    breaking = Chaos(fragile)
    harness_loop.run(breaking.begin)
    yield breaking
    harness_loop.run(breaking.restore)
