"""What a workflow asks of the harness: which jobs to start, and what to show of those that ended.

- ``_plan.py``: from ``nox -l --json`` and measured durations to jobs that fit their time limits.
- ``_reports.py``: what a session, or a run of planted faults, came to.
- ``_table.py``: the table at the end of ``.ci/run``, and what keeps such a run from passing.
- ``_annotations.py``: workflow commands (``::error file=…::``) and the step summary.

Source: ``docs/project/ci.md``.
"""

from harness_core.front.ci._annotations import annotate, summarize
from harness_core.front.ci._plan import Job, Session, plan_jobs, read_sessions
from harness_core.front.ci._reports import Failure, Report, read_faults, read_report, read_reports
from harness_core.front.ci._table import missing_sessions, problems_of, render_reports

__all__ = [
    "Failure",
    "Job",
    "Report",
    "Session",
    "annotate",
    "missing_sessions",
    "plan_jobs",
    "problems_of",
    "read_faults",
    "read_report",
    "read_reports",
    "read_sessions",
    "render_reports",
    "summarize",
]
