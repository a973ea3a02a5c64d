"""A pytest plugin that runs exactly the named tests and writes what became of each.

Loaded with ``-p harness_core.assurance.planted._outcomes_plugin`` by runners of tests alone. It imports
nothing of harness_core, so that a harness that is itself broken still gets an honest record.

The record is JSON lines: ``{"wanted": id, "nodeids": [...]}`` for each id asked for, then
``{"nodeid", "phase", "outcome", "assertion", "text", "duration_s", "starts", "harness", "capabilities"}`` for each
phase of each test. It is written line by line: what a killed run had got to is there.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

#: A product that does not start makes each test wait for it: so many show that.
_MOST_ERRORS = 3

_RECORDER = pytest.StashKey["_Recorder"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write, a JSON list of the test ids to run, and whether the first kill ends the run."""
    group = parser.getgroup("harness faults")
    group.addoption("--harness-outcomes", metavar="PATH", help="write a JSON line per test phase")
    group.addoption("--harness-select", metavar="PATH", help="JSON list of test ids to run")
    group.addoption(
        "--harness-first-kill",
        action="store_true",
        help="run the tests in the order of the list; end at the first that fails by assertion, or "
        f"after {_MOST_ERRORS} that fail otherwise",
    )
    group.addoption(
        "--harness-boot",
        metavar="ID",
        help="run this test first; when it does not pass, none of the others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start recording, in the process that sees every report (under xdist: the controller)."""
    path = config.getoption("--harness-outcomes")
    if path and not hasattr(config, "workerinput"):
        recorder = _Recorder(Path(path))
        config.stash[_RECORDER] = recorder
        config.pluginmanager.register(recorder)
        if config.getoption("--harness-first-kill"):
            config.pluginmanager.register(_FirstKill())
        if boot := config.getoption("--harness-boot"):
            config.pluginmanager.register(_Boot(boot))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the selected tests and note which ids stand for which tests."""
    path = config.getoption("--harness-select")
    if not path:
        return
    chosen: dict[str, None] = {}
    for wanted in json.loads(Path(path).read_text(encoding="utf-8")):
        nodeids = [item.nodeid for item in items if _stands_for(wanted, item.nodeid)]
        chosen.update(dict.fromkeys(nodeids))
        if (recorder := config.stash.get(_RECORDER, None)) is not None:
            recorder.write({"wanted": wanted, "nodeids": nodeids})
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]
    if config.getoption("--harness-first-kill") or config.getoption("--harness-boot"):
        places = {nodeid: place for place, nodeid in enumerate(chosen)}
        items.sort(key=lambda item: places[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report whether an assertion failed, and the texts of the exceptions."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    leaves = list(_leaves(error)) if error is not None else []
    # Plain attributes travel from an xdist worker to the controller with the report.
    vars(report).update(
        harness_assertion=bool(leaves) and all(map(_is_assertion, leaves)),
        harness_text="\n".join(_text(leaf) for leaf in leaves),
        harness_own=bool(leaves) and all(map(_is_of_harness, leaves)),
        harness_capabilities=[
            str(name) for mark in item.iter_markers("capability") for name in mark.args
        ],
    )
    return report


class _Recorder:
    """Writes one line per phase of each test."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, row: dict[str, object]) -> None:
        """Append one line; the file is complete up to it whatever happens next."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over."""
        self.write(
            {
                "nodeid": report.nodeid,
                "phase": report.when,
                "outcome": report.outcome,
                "assertion": getattr(report, "harness_assertion", False),
                "text": getattr(report, "harness_text", ""),
                "duration_s": report.duration,
                "starts": "starts_product" in report.keywords,
                "harness": getattr(report, "harness_own", False),
                "capabilities": getattr(report, "harness_capabilities", []),
            }
        )


class _FirstKill:
    """Ends the session when nothing more can be learnt."""

    def __init__(self) -> None:
        self._session: pytest.Session | None = None
        self._failed: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep what is to be stopped."""
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop at a kill; an error is no kill, but a few of them are all that follows."""
        if not report.failed or self._session is None:
            return
        self._failed.add(report.nodeid)
        if report.when == "call" and getattr(report, "harness_assertion", False):
            self._session.shouldstop = f"killed by {report.nodeid}"
        elif len(self._failed) >= _MOST_ERRORS:
            self._session.shouldstop = f"{_MOST_ERRORS} tests failed, none by assertion"


class _Boot:
    """Ends the session when the test that starts the product does not pass."""

    def __init__(self, test: str) -> None:
        self._test = test
        self._session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep what is to be stopped."""
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop at an end of that test that is no pass."""
        if (
            not report.passed
            and self._session is not None
            and _stands_for(self._test, report.nodeid)
        ):
            self._session.shouldstop = f"{self._test} did not pass"


def _stands_for(wanted: str, nodeid: str) -> bool:
    """Whether an id names this test, or all rows of it, or its class, file or folder."""
    return nodeid == wanted or nodeid.startswith((f"{wanted}[", f"{wanted}::", f"{wanted}/"))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that were raised; nurseries wrap them in groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _is_assertion(error: BaseException) -> bool:
    """An ``assert`` that failed, or ``pytest.raises`` that saw nothing raised.

    ``pytest.fail`` alone is no assertion: timeouts end in it too.
    """
    did_not = isinstance(error, pytest.fail.Exception) and str(error).startswith("DID NOT ")
    return isinstance(error, AssertionError) or did_not


def _is_of_harness(error: BaseException) -> bool:
    """By name: nothing of the harness is imported here."""
    return any(kind.__name__ == "HarnessError" for kind in type(error).__mro__)


def _text(error: BaseException) -> str:
    """Type and message: the words of the failure, without the source code around it."""
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{notes}"
