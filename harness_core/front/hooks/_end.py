"""What a run leaves for its end, and what workers of xdist hand over to their controller for it.

Rows are plain lists, dicts and texts, by what they are: sections of the summary, leaks, refusals,
costs. A worker's are its controller's once the worker is down.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

#: Exit status of a run that found nothing wrong with the product but could not test all of it;
#: pytest itself uses 0 to 5.
HARNESS_ERROR_EXIT: Final = 6

_ROWS: Final = pytest.StashKey[dict[str, list[Any]]]()

#: Of what a worker tells its controller.
_XDIST_ROWS: Final = "harness_rows"


def rows_for_the_end(config: pytest.Config, kind: str) -> list[Any]:
    """The rows of one kind, to be read and added to; in a worker, of that worker."""
    return config.stash.setdefault(_ROWS, {}).setdefault(kind, [])


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that xdist has started."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what there is, and what comes: xdist sends it after all hooks."""
    if is_worker(session.config):
        output: Any = getattr(session.config, "workeroutput")  # noqa: B009 - xdist's
        output[_XDIST_ROWS] = session.config.stash.setdefault(_ROWS, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left."""
    for kind, rows in getattr(node, "workeroutput", {}).get(_XDIST_ROWS, {}).items():
        rows_for_the_end(node.config, kind).extend(rows)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the sections: where the report is, what was left."""
    for title, text in rows_for_the_end(config, "summary"):
        terminalreporter.ensure_newline()
        terminalreporter.section(title)
        terminalreporter.write_line(text)


def add_summary(config: pytest.Config, title: str, text: str) -> None:
    """Leave a section for the end of the terminal output."""
    rows_for_the_end(config, "summary").append((title, text))


def fail_run(session: pytest.Session, title: str, text: str) -> None:
    """Fail a run for what no test can be blamed for: the text at its end, and its exit status."""
    add_summary(session.config, title, text)
    if session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        session.exitstatus = HARNESS_ERROR_EXIT
