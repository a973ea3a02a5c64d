"""What installing the harness adds to pytest: options, gates, fixtures, evidence, honest outcomes.

Options: ``--subject``, ``--services``, ``--llm``, ``--llm-budget-usd``, ``--llm-upstream``,
``--llm-cassette``, ``--profile``, ``--evidence``, ``--shard``, ``--durations-file``.
Marker: ``requires("docker")``. Fixtures: ``harness_loop`` (a trio loop in a thread, for resources
that outlive a test), ``harness_run`` (warden, ledger, directories), ``run_evidence``, ``evidence``
(one directory per test), ``progress``, ``token`` (an unguessable word), ``subject_file``.

A test that ends in a :class:`HarnessError` is reported as ``HARNESS ERROR``, never as a failure of
the product (style 20), and never as an expected failure. A run in which nothing else went wrong
exits with ``HARNESS_ERROR_EXIT`` instead of 1.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assertions import new_token
from harness_core.assurance import gates, shards
from harness_core.assurance.leaks import Audit, open_audit
from harness_core.assurance.requirements import open_session
from harness_core.base import limits
from harness_core.base.bridge import Loop, Mutex, open_loop
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.evidence import (
    Evidence,
    Redactor,
    failure_text,
    open_evidence,
    writing_evidence,
)
from harness_core.base.groups import unwrap
from harness_core.base.machine import disk_full, is_disk_full
from harness_core.base.unclosed import Unclosed, unclosed_error, watch_unclosed
from harness_core.front.budget import CostHooks
from harness_core.front.skips import SkipHooks, SkipRule, not_run
from harness_core.front.suite_fixtures import check_subjects, give_fixtures
from harness_core.process import Run, open_run
from harness_core.system.suites import suite_folder

__all__ = [
    "HARNESS_ERROR_EXIT",
    "SUMMARY",
    "add_kept",
    "add_summary",
    "explain_failures",
    "fail_run",
    "has_failed",
    "open_run_evidence",
    "progress_of",
]

#: Exit status of a run that found nothing wrong with the product but could not test all of it;
#: pytest itself uses 0 to 5.
HARNESS_ERROR_EXIT: Final = 6

SUMMARY: Final = pytest.StashKey[list[tuple[str, str]]]()
_EVIDENCE: Final = pytest.StashKey[Evidence]()
_FAILED: Final = pytest.StashKey[bool]()
_KEPT: Final = pytest.StashKey[list[str]]()
_ROOT_EVIDENCE: Final = pytest.StashKey[Evidence]()
_GATE_DEMANDED: Final = pytest.StashKey[bool]()
_AUDIT: Final = pytest.StashKey[ExitStack]()
_AUDITED: Final = pytest.StashKey[Audit]()
_LEAKS: Final = pytest.StashKey[list[str]]()
_SKIP_RULE: Final = pytest.StashKey[SkipRule]()
_REFUSED: Final = pytest.StashKey[dict[str, None]]()
_COUNTER: Final = pytest.StashKey["_Counter"]()
_UNCLOSED: Final = pytest.StashKey[Unclosed]()
_BEGAN: Final = pytest.StashKey[dt.datetime]()

#: What may be said of a failed test that began then; empty for nothing.
Explain = Callable[[pytest.Item, dt.datetime], str]
_EXPLAIN: Final = pytest.StashKey[list[Explain]]()

#: How a test ends that has not failed.
_NO_FAILURES: Final = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)

#: Options that change what is tested, so a rerun needs them too.
_RERUN_OPTIONS: Final = ("--subject", "--services", "--llm", "--llm-cassette")
#: Folders that say nothing about a test but where all tests are.
_FOLDERS_LEFT_OUT: Final = frozenset({"tests", "harness_core", "suites", "."})
#: Where the controller of an xdist run tells its workers to write, and they it what to print.
_XDIST_EVIDENCE: Final = "harness_evidence"
_XDIST_SUMMARY: Final = "harness_summary"
_XDIST_LEAKS: Final = "harness_leaks"
_XDIST_REFUSED: Final = "harness_refused"


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
        choices=("rehearsed", "live", "record", "replay"),
        default="rehearsed",
        help="how the model gateway answers (default: rehearsed, no key, no network)",
    )
    group.addoption(
        "--llm-budget-usd",
        type=float,
        metavar="USD",
        help="hard limit of what the models of a suite may cost in this run (default: budget_usd of "
        f"its suite.toml, else {limits.LLM_BUDGET_USD:.2f})",
    )
    group.addoption(
        "--llm-upstream",
        metavar="URL",
        help="base URL of the provider for --llm live and record (default: the provider's own)",
    )
    group.addoption(
        "--llm-cassette",
        "--cassettes",
        dest="llm_cassette",
        metavar="DIR",
        help="the recorded model calls that --llm record writes and --llm replay reads",
    )
    group.addoption(
        "--profile",
        action="store_true",
        help="profile the processes of the system under test: flame graphs among the evidence",
    )
    group.addoption(
        "--evidence",
        metavar="DIR",
        help="where evidence is written (default: .evidence in the root directory)",
    )
    shards.add_options(group)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check what the environment demands, before anything runs."""
    config.addinivalue_line(
        "markers",
        "requires(gate, ...): skip with a reason where a gate is closed; fail where "
        "HARNESS_REQUIRE names it",
    )
    config.addinivalue_line(
        "markers",
        "capability(name, ...): skip where the subject file does not list the capability "
        "(the suite's conftest knows the subject)",
    )
    config.addinivalue_line(
        "markers", "covers(id, ...): in a suite with a ledger, the requirements that a test proves"
    )
    config.addinivalue_line(
        "markers", "aside(reason): in a suite with a ledger, a test that covers no requirement"
    )
    config.stash[SUMMARY] = []
    config.stash[_COUNTER] = _Counter()
    config.stash[_LEAKS] = []
    config.stash[_REFUSED] = {}
    config.stash[_AUDIT] = ExitStack()
    config.add_cleanup(config.stash[_AUDIT].close)
    config.stash[_AUDITED] = config.stash[_AUDIT].enter_context(open_audit())
    config.pluginmanager.register(config.stash[_COUNTER])
    rule = SkipRule(config.rootpath, foreign=bool(config.getoption("--subject")))
    config.stash[_SKIP_RULE] = rule
    config.pluginmanager.register(SkipHooks(rule))
    config.pluginmanager.register(CostHooks(config), CostHooks.NAME)
    budget_usd = config.getoption("--llm-budget-usd")
    if budget_usd is not None and not 0 <= budget_usd < math.inf:
        message = f"--llm-budget-usd: found {budget_usd:g}, expected USD of zero or more"
        raise pytest.UsageError(message)
    cassette, mode = config.getoption("--llm-cassette"), config.getoption("--llm")
    if bool(cassette) != (mode in {"record", "replay"}):
        message = (
            f"--llm-cassette: found {cassette!r} with --llm {mode}, expected a directory with"
            " --llm record or replay, and only with those"
        )
        raise pytest.UsageError(message)
    try:
        gates.required()
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error
    open_session(config)
    shards.configure(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch what tests leave to the garbage collector; later than pytest's own watch, which it joins."""
    config = session.config
    config.stash[_UNCLOSED] = config.stash[_AUDIT].enter_context(watch_unclosed())


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Give a suite the fixtures that its suite.toml names."""
    give_fixtures(collector)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Say what a test left to the garbage collector, in that very test.

    Raises:
        HarnessError: a connection or file was left open, or a coroutine was never awaited.
    """
    yield
    if has_failed(item):
        # What a failed test left is a consequence of the failure, and its traceback holds it.
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
    left = item.config.stash[_UNCLOSED].collect()
    if left and not has_failed(item):
        raise unclosed_error(left, where=item.nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Refuse to run with a mistake in a marker or a file, also one that a suite's conftest finds."""
    collected = list(items)
    try:
        yield
        _check_collection(config, collected)
    except HarnessError as error:
        refusal = str(error)
    else:
        return
    workeroutput = getattr(config, "workeroutput", None)
    if workeroutput is None:
        raise pytest.UsageError(refusal)
    # An error here would be an INTERNALERROR of xdist: the controller tells it.
    workeroutput[_XDIST_REFUSED] = refusal
    items.clear()


def _check_collection(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Markers and files that name no gate, now that every conftest has registered its own.

    Raises:
        BadInput: the first one.
    """
    config.stash[_SKIP_RULE].check(item.path for item in items)
    check_subjects(config, {folder for item in items if (folder := suite_folder(item.path))})
    for item in items:
        for marker in item.iter_markers("requires"):
            gates.check_names(marker.args, where=f"{item.nodeid}: requires")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a module finds wrong with a file, a row of scenarios for one, is told in one sentence."""
    report = yield
    call: pytest.CallInfo[Any] | None = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None:
        error = unwrap(call.excinfo.value)
        if isinstance(error, HarnessError):
            report.longrepr = str(error)
            report.harness_error = True  # type: ignore[attr-defined]
    return report


class _Counter:
    """Counts failed reports of the harness, on the controller, which sees all reports."""

    def __init__(self) -> None:
        self.harness_errors = 0
        self._blamed: set[str] = set()
        self.told: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over; the JUnit report of the last one says whose error it was."""
        if report.failed and getattr(report, "harness_error", False):
            self.harness_errors += 1
            self._blamed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._blamed:
            report.user_properties.append(("harness_error", "true"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """One module has been collected."""
        if report.failed and getattr(report, "harness_error", False):
            self.harness_errors += 1
            self.told.add(report.longreprtext)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where CI demands it, what cannot run here."""
    item.stash[_BEGAN] = dt.datetime.now(dt.UTC)
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            reason = gates.closed_reason(name)
            if reason and name in gates.required():
                item.stash[_GATE_DEMANDED] = True
                pytest.fail(
                    f"gate {name!r} is demanded by HARNESS_REQUIRE: {reason}", pytrace=False
                )
            if reason:
                not_run("gate", reason, gate=name)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Show what an async test raised, not the nursery it was raised in.

    pytest-trio runs the test inside a nursery, which wraps its error in a group of one; a failed
    assertion must look, and be counted, like one.
    """
    try:
        return (yield)
    except pytest.skip.Exception as skipped:
        # pytest-trio skips once more, without the reason.
        reason = unwrap(skipped.__context__) if skipped.__context__ is not None else skipped
        if not skipped.msg and isinstance(reason, pytest.skip.Exception):
            raise reason from None
        raise
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if error is group:
            raise
        raise error from error.__cause__


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell harness errors from failures; say where the evidence of a failed test lies."""
    if call.excinfo is not None and call.when != "teardown":
        _explain(item, call.excinfo.value)
    report = yield
    if call.excinfo is None:
        return report
    harness_error = _is_harness_error(call.excinfo.value) or item.stash.get(_GATE_DEMANDED, False)
    if harness_error and hasattr(report, "wasxfail"):
        # A known failure of the product was not seen, for the harness could not look.
        report.outcome = "failed"
        del report.wasxfail
    if report.failed:
        item.stash[_FAILED] = True
        report.harness_error = harness_error  # type: ignore[attr-defined]
        if (evidence := item.stash.get(_EVIDENCE, None)) is not None:
            kept: list[str] = item.stash.setdefault(_KEPT, [])
            text = failure_text(evidence=evidence.path, rerun=_rerun(item), kept=kept)
            report.sections.append(("where to look", text))
    return report


def _explain(item: pytest.Item, error: BaseException) -> None:
    """Add to a failure what is known of its cause; it stands in its text."""
    if isinstance(error, _NO_FAILURES):
        return
    for explain in item.config.stash.get(_EXPLAIN, []):
        try:
            said = explain(item, item.stash.get(_BEGAN, dt.datetime.now(dt.UTC)))
        except HarnessError as unexplained:
            said = f"nothing more is known: {unexplained}"
        # One error of a fixture fails every test that uses it.
        if said and said not in getattr(error, "__notes__", ()):
            error.add_note(said)


def explain_failures(config: pytest.Config, explain: Explain) -> None:
    """Ask ``explain`` about every test that fails, in its setup or its call.

    Args:
        config: of the run.
        explain: what may be said of the failure of a test, given when it began; it becomes part of
            the failure's text. Empty for nothing.
    """
    config.stash.setdefault(_EXPLAIN, []).append(explain)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A test that ended in a HarnessError is an error, not a failure of the product."""
    if report.failed and getattr(report, "harness_error", False):
        return "error", "E", "HARNESS ERROR"
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Give a run that only the harness spoilt an exit status of its own; hand over summaries.

    The status is set last: other plugins join theirs to it bit by bit.
    """
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_XDIST_SUMMARY] = session.config.stash[SUMMARY]
    yield
    harness_errors = session.config.stash[_COUNTER].harness_errors
    only_harness = 0 < harness_errors == session.testsfailed
    if only_harness and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = HARNESS_ERROR_EXIT
    if session.config.stash[_REFUSED]:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


@pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
def pytest_audit_leaks(session: pytest.Session) -> None:
    """Fail a run that left something behind, when everything of it should be gone."""
    leaks = session.config.stash[_LEAKS]
    leaks.extend(leak.text() for leak in session.config.stash[_AUDITED].close())
    leaks.extend(str(thing) for thing in session.config.stash[_UNCLOSED].collect(last=True))
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_XDIST_LEAKS] = leaks
    elif leaks:
        told = "\n".join(leaks)
        fail_run(
            session,
            "leaks",
            f"{len(leaks)} thing(s) outlived the run; they were ended or removed:\n{told}",
        )


@pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
def pytest_survive_full_disk(session: pytest.Session) -> Generator[None, None, None]:
    """Print the end of a run also where its report finds no room, which fails the run."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        path = Path(getattr(session.config.option, "xmlpath", None) or session.config.rootpath)
        lack = disk_full(path, what="the report of the run", elsewhere="--junitxml=FILE")
        fail_run(session, "disk", str(lack))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where this run writes its evidence; end the run where it cannot."""
    try:
        node.workerinput[_XDIST_EVIDENCE] = str(_root_evidence(node.config).path)
    except Unavailable as error:
        pytest.exit(str(error), returncode=HARNESS_ERROR_EXIT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what an xdist worker left for the end of the run."""
    for title, text in getattr(node, "workeroutput", {}).get(_XDIST_SUMMARY, ()):
        add_summary(node.config, title, text)
    node.config.stash[_LEAKS].extend(getattr(node, "workeroutput", {}).get(_XDIST_LEAKS, ()))
    if refusal := getattr(node, "workeroutput", {}).get(_XDIST_REFUSED):
        node.config.stash[_REFUSED][refusal] = None  # every worker refuses the same


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what fixtures left for the end of the run: cost, where the report is."""
    for title, text in config.stash.get(SUMMARY, []):
        terminalreporter.ensure_newline()
        terminalreporter.section(title)
        terminalreporter.write_line(text)
    for refusal in config.stash.get(_REFUSED, {}):
        if refusal not in config.stash[_COUNTER].told:
            terminalreporter.ensure_newline()
            terminalreporter.write_line(f"ERROR: {refusal}", red=True)


def add_summary(config: pytest.Config, title: str, text: str) -> None:
    """Leave a section for the end of the terminal output."""
    config.stash[SUMMARY].append((title, text))


def fail_run(session: pytest.Session, title: str, text: str) -> None:
    """Fail a run for what no test can be blamed for: the text at its end, and its exit status."""
    add_summary(session.config, title, text)
    if session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        session.exitstatus = HARNESS_ERROR_EXIT


def add_kept(item: pytest.Item, text: str) -> None:
    """Tell the reader of a failure what was kept, e.g. a database URL with its password out.

    It stands below the failure; what is kept when the test is torn down, after its failure was
    reported, stands at the end of the run.
    """
    if has_failed(item):
        add_summary(item.config, "kept for you", f"{item.nodeid}: {text}")
    else:
        item.stash.setdefault(_KEPT, []).append(text)


def has_failed(item: pytest.Item) -> bool:
    """Whether the test has failed so far; known to what tears a fixture down."""
    return item.stash.get(_FAILED, False)


@pytest.fixture(scope="session")
def run_evidence(pytestconfig: pytest.Config) -> Evidence:
    """The evidence directory of the whole run (logs of servers and children), emptied first."""
    return open_run_evidence(pytestconfig)


def open_run_evidence(config: pytest.Config) -> Evidence:
    """The directory of :func:`run_evidence`, for what a run holds outside of its fixtures."""
    root = _root_evidence(config)
    name = f"_run{os.environ.get('PYTEST_XDIST_WORKER', '')}"
    return open_evidence(root.path / name, redactor=root.redactor, wipe=True)


@pytest.fixture(scope="session")
def progress(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Say at once, past pytest's capture, what a long step is doing; from any thread."""
    return progress_of(pytestconfig)


def progress_of(config: pytest.Config) -> Callable[[str], None]:
    """What :func:`progress` says, for what a run holds outside of its fixtures."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    began = time.monotonic()
    one_at_a_time = Mutex()

    def say(text: str) -> None:
        if reporter is None:  # an xdist worker has no terminal
            return
        with one_at_a_time, capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.write_line(f"[{time.monotonic() - began:5.2f} s] {text}")
            reporter.flush()

    return say


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """This test's own evidence directory, emptied before it starts."""
    item: pytest.Item = request.node
    path, _, name = item.location
    parts = Path(path).with_suffix("").parts
    suite = parts[1] if parts[0] == "suites" and len(parts) > 2 else "core"  # noqa: PLR2004
    folders = [part for part in parts if part not in _FOLDERS_LEFT_OUT and part != suite]
    root = _root_evidence(request.config)
    named = root.child(suite).child(".".join([*folders, name]))
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
        workerinput = getattr(config, "workerinput", None)
        if workerinput is not None:
            path = Path(workerinput[_XDIST_EVIDENCE])
        else:
            given = config.getoption("--evidence")
            path = _own_directory(
                Path(given).absolute() if given else config.rootpath / ".evidence", config
            )
        config.stash[_ROOT_EVIDENCE] = open_evidence(path, redactor=Redactor())
    return config.stash[_ROOT_EVIDENCE]


def _own_directory(path: Path, config: pytest.Config) -> Path:
    """``path``, or a directory in it while another run is at work there: no run wipes another's."""
    candidate, number = path, 2
    while True:
        with writing_evidence(candidate):
            candidate.mkdir(parents=True, exist_ok=True)
            lock = (candidate / ".lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            candidate, number = path / f"concurrent-{number}", number + 1
        else:
            config.add_cleanup(lock.close)
            return candidate


def _is_harness_error(error: BaseException) -> bool:
    """Whether the harness is to blame; one failed assertion in a group blames the product."""
    error = unwrap(error)
    if isinstance(error, BaseExceptionGroup):
        harness, _ = error.split(HarnessError)
        failures, _ = error.split(AssertionError)
        return harness is not None and failures is None
    # A disk without room says nothing of the product, whoever met it.
    return isinstance(error, HarnessError) or is_disk_full(error)


def _rerun(item: pytest.Item) -> str:
    words = [item.nodeid]
    for option in _RERUN_OPTIONS:
        value = item.config.getoption(option)
        if value and value not in {"local", "rehearsed"}:
            words.append(f"{option}={value}")
    session = os.environ.get("HARNESS_SESSION")
    start = ["nox", "-s", session, "--"] if session else ["pytest"]
    return shlex.join([*start, *words])
