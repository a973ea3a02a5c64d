"""What installing the harness adds to pytest: options, gates, fixtures, evidence, honest outcomes.

Options: ``--subject``, ``--services``, ``--llm``, ``--llm-budget-usd``, ``--evidence``.
Marker: ``requires("docker")``. Fixtures: ``harness_loop`` (a trio loop in a thread, for resources
that outlive a test), ``harness_run`` (warden, ledger, directories), ``run_evidence``, ``evidence``
(one directory per test), ``progress``, ``token`` (an unguessable word), ``subject_file``.

A test that ends in a :class:`HarnessError` is reported as ``HARNESS ERROR``, never as a failure of
the product (style 20).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core import gates, limits
from harness_core.bridge import Loop, open_loop
from harness_core.errors import BadInput, HarnessError
from harness_core.evidence import Evidence, Redactor, failure_text, open_evidence
from harness_core.process import Run, open_run
from harness_core.scenario import new_token

__all__ = ["SUMMARY", "add_kept", "add_summary"]

SUMMARY: Final = pytest.StashKey[list[tuple[str, str]]]()
_EVIDENCE: Final = pytest.StashKey[Evidence]()
_KEPT: Final = pytest.StashKey[list[str]]()
_ROOT_EVIDENCE: Final = pytest.StashKey[Evidence]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options every suite understands."""
    group = parser.getgroup("staging harness")
    group.addoption(
        "--subject",
        metavar="FILE",
        help="subject file (TOML) of the system to test; default: the suite's reference system",
    )
    group.addoption(
        "--services",
        choices=("local", "container", "external"),
        default="local",
        help="where servers come from (default: local)",
    )
    group.addoption(
        "--llm",
        choices=("offline", "scripted", "live"),
        default="offline",
        help="how the model gateway answers (default: offline, no key, no network)",
    )
    group.addoption(
        "--llm-budget-usd",
        type=float,
        default=limits.LLM_BUDGET_USD,
        metavar="USD",
        help=f"hard limit of a run's model cost (default: {limits.LLM_BUDGET_USD:.2f})",
    )
    group.addoption(
        "--evidence",
        metavar="DIR",
        help="where evidence is written (default: .evidence in the root directory)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check what the environment demands, before anything runs."""
    config.addinivalue_line(
        "markers",
        "requires(gate, ...): skip with a reason where a gate is closed; fail where "
        "HARNESS_REQUIRE names it",
    )
    config.stash[SUMMARY] = []
    if config.getoption("--llm-budget-usd") < 0:
        message = "--llm-budget-usd: expected USD of zero or more"
        raise pytest.UsageError(message)
    try:
        gates.required()
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where CI demands it, what cannot run here."""
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            reason = gates.closed_reason(name)
            if reason and name in gates.required():
                pytest.fail(f"gate {name!r} is demanded by HARNESS_REQUIRE: {reason}", pytrace=False)
            if reason:
                pytest.skip(f"gate {name!r}: {reason}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Tell harness errors from failures; say where the evidence of a failed test lies."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    if not report.failed or call.excinfo is None:
        return
    if isinstance(call.excinfo.value, HarnessError):
        report.harness_error = True  # type: ignore[attr-defined]
    evidence = item.stash.get(_EVIDENCE, None)
    if evidence is not None:
        text = failure_text(
            evidence=evidence.path, rerun=_rerun(item), kept=item.stash.get(_KEPT, [])
        )
        report.sections.append(("where to look", text))


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A test body that ended in a HarnessError is an error, not a failure of the product."""
    if report.when == "call" and getattr(report, "harness_error", False):
        return "error", "E", "HARNESS ERROR"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what fixtures left for the end of the run: cost, where the report is."""
    for title, text in config.stash.get(SUMMARY, []):
        terminalreporter.section(title)
        terminalreporter.write_line(text)


def add_summary(config: pytest.Config, title: str, text: str) -> None:
    """Leave a section for the end of the terminal output."""
    config.stash[SUMMARY].append((title, text))


def add_kept(item: pytest.Item, text: str) -> None:
    """Tell the reader of a failure what was kept, e.g. a database URL with its password out."""
    item.stash.setdefault(_KEPT, []).append(text)


@pytest.fixture(scope="session")
def run_evidence(pytestconfig: pytest.Config) -> Evidence:
    """The evidence directory of the whole run (logs of servers and children), emptied first."""
    root = _root_evidence(pytestconfig)
    name = f"_run{os.environ.get('PYTEST_XDIST_WORKER', '')}"
    return open_evidence(root.path / name, redactor=root.redactor, wipe=True)


@pytest.fixture(scope="session")
def progress(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Say at once, past pytest's capture, what a long step is doing."""
    reporter = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    began = time.monotonic()

    def say(text: str) -> None:
        if reporter is not None:
            reporter.write_line(f"[{time.monotonic() - began:5.2f} s] {text}")

    return say


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """This test's own evidence directory, emptied before it starts."""
    item: pytest.Item = request.node
    path = Path(item.location[0])
    parts = path.parts
    suite = parts[1] if parts[0] == "suites" and len(parts) > 1 else "core"
    root = _root_evidence(request.config)
    named = root.child(suite).child(f"{path.stem}.{item.name}")
    item.stash[_EVIDENCE] = open_evidence(named.path, redactor=root.redactor, wipe=True)
    return item.stash[_EVIDENCE]


@pytest.fixture(scope="session")
def harness_loop() -> Iterator[Loop]:
    """A trio loop in a thread: holds the resources of the whole run."""
    with open_loop() as loop:
        yield loop


@pytest.fixture(scope="session")
def harness_run(harness_loop: Loop, run_evidence: Evidence) -> Iterator[Run]:
    """The run: its warden, its ledger, its directories; leaves nothing behind."""
    with harness_loop.hold(open_run(evidence=run_evidence)) as run:
        yield run


@pytest.fixture
def token() -> str:
    """An unguessable word: an effect that carries it was caused by this very test."""
    return new_token()


@pytest.fixture(scope="session")
def subject_file(pytestconfig: pytest.Config) -> Path | None:
    """The file given with ``--subject``; ``None`` means the suite's reference system."""
    given = pytestconfig.getoption("--subject")
    return Path(given).absolute() if given else None


def _root_evidence(config: pytest.Config) -> Evidence:
    if _ROOT_EVIDENCE not in config.stash:
        given = config.getoption("--evidence")
        path = Path(given).absolute() if given else config.rootpath / ".evidence"
        path.mkdir(parents=True, exist_ok=True)
        if "PYTEST_XDIST_WORKER" not in os.environ and not _lock_evidence(path, config):
            path /= f"concurrent-{os.getpid()}"
        config.stash[_ROOT_EVIDENCE] = open_evidence(path, redactor=Redactor())
    return config.stash[_ROOT_EVIDENCE]


def _lock_evidence(path: Path, config: pytest.Config) -> bool:
    """Whether this run has the directory to itself; a second run at the same time must not wipe it."""
    lock = (path / ".lock").open("wb")
    config.add_cleanup(lock.close)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rerun(item: pytest.Item) -> str:
    session = os.environ.get("HARNESS_SESSION")
    return f"nox -s {session} -- '{item.nodeid}'" if session else f"pytest '{item.nodeid}'"
