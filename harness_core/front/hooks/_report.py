"""``--report``: the page of a run, made at its end by the process that saw all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_core.base.errors import HarnessError
from harness_core.base.machine import lack_of
from harness_core.front.hooks._end import is_worker


def check_report(config: pytest.Config) -> None:
    """Refuse at the beginning what could not be done at the end.

    Raises:
        pytest.UsageError: the libraries of the extra are not there.
    """
    if config.getoption("harness_report") and (lack := lack_of("report")):
        message = f"--report: {lack}"
        raise pytest.UsageError(message)


def outcomes_file(config: pytest.Config) -> Path | None:
    """Where the rows of this run go: beside its JUnit file; ``None`` for a run that leaves neither."""
    if config.option.collectonly:
        return None
    if junit := getattr(config.option, "xmlpath", None):
        return Path(junit).absolute().with_suffix(".jsonl")
    if not config.getoption("harness_report"):
        return None
    given = config.getoption("--evidence")
    root = Path(given).absolute() if given else config.rootpath / ".evidence"
    return root / "reports" / "pytest.jsonl"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Make the page of what has just been written, and say where it lies."""
    path = outcomes_file(config)
    if is_worker(config) or not config.getoption("harness_report") or path is None:
        return
    from harness_core.front.report import build_report
    from harness_core.front.report.page import render_page

    page = path.with_suffix(".html")
    terminalreporter.ensure_newline()
    try:
        report = build_report([path], root=config.rootpath)
        page.write_text(render_page(report, at=page), encoding="utf-8", errors="replace")
    except (HarnessError, OSError) as error:
        terminalreporter.write_line(f"no report: {error}", red=True)
        return
    terminalreporter.write_line(f"report: {page}")
