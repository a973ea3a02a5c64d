"""What people see of a job: annotations beside the code, and the summary page of the run.

Source: "Workflow commands for GitHub Actions" (escapes of ``::error::``, ``GITHUB_STEP_SUMMARY``).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.front.ci._reports import Failure, Report

#: GitHub shows ten errors of a step and drops the rest.
ANNOTATIONS: Final = 10

#: Rows of a table: a run in which everything fails must not exceed the size of a summary (1 MiB).
ROWS: Final = 50


def annotate(reports: Iterable[Report]) -> list[str]:
    """Workflow commands, one for each failure; the last says how many are not shown."""
    failures = [(report, failure) for report in reports for failure in report.failures]
    shown = failures if len(failures) <= ANNOTATIONS else failures[: ANNOTATIONS - 1]
    lines = [_command(report, failure) for report, failure in shown]
    if rest := len(failures) - len(shown):
        lines.append(f"::error title=and {rest} more::They are in the summary of this run.")
    return lines


def summarize(reports: Sequence[Report], *, title: str) -> str:
    """Markdown: one line for each session, then what failed and why, then what was skipped."""
    lines = [f"### {_text(title)}", ""]
    if not reports:
        return "\n".join(
            [*lines, "No report of tests: it has none, or it ended before the first.", ""]
        )
    lines += ["| session | passed | failed | skipped | seconds |", "|---|--:|--:|--:|--:|"]
    lines += [
        f"| {_text(report.session)} | {report.passed} | {len(report.failures)}"
        f" | {sum(report.skips.values())} | {report.seconds:.0f} |"
        for report in reports
    ]
    failures = [failure for report in reports for failure in report.failures]
    if failures:
        lines += ["", "| what | first lines of the cause, and how to run it again |", "|---|---|"]
        lines += [_row(failure) for failure in failures[:ROWS]]
    if len(failures) > ROWS:
        lines += ["", f"and {len(failures) - ROWS} more: see the evidence of this job."]
    skips = [(count, reason) for report in reports for reason, count in report.skips.items()]
    if skips:
        lines += ["", "| skipped | why |", "|--:|---|"]
        lines += [f"| {count} | {_text(reason)} |" for count, reason in sorted(skips)[::-1][:ROWS]]
    return "\n".join([*lines, ""])


def _command(report: Report, failure: Failure) -> str:
    place = f"file={_property(failure.file)}," if failure.file else ""
    place += f"line={failure.line}," if failure.line else ""
    title = _property(f"{report.session}: {failure.kind}: {failure.name}")
    text = _data("\n".join([*failure.cause, failure.rerun]))
    return f"::error {place}title={title}::{text}"


def _row(failure: Failure) -> str:
    cause = "<br>".join(_text(line) for line in failure.cause)
    return f"| {_text(failure.kind)}: {_text(failure.name)} | {cause}<br>{_text(failure.rerun)} |"


def _data(text: str) -> str:
    """Escaped as the text of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaped as a property of one."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _text(text: str) -> str:
    """Escaped as a cell of a table: no markup, no new column, no new row."""
    escaped = html.escape(text, quote=False).replace("\r", " ").replace("\n", " ")
    for mark in "\\`*_{}[]|~":
        escaped = escaped.replace(mark, f"&#{ord(mark)};")
    return escaped
