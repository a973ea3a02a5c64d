"""What a workflow asks of the harness: which jobs to start, and what to show of those that ended.

- ``_plan.py``: from ``nox -l --json`` and measured durations to jobs that fit their time limits.
- ``_junit.py``: the JUnit report of a session, read back.
- ``_annotations.py``: workflow commands (``::error file=…::``) and the step summary.

Source: ``docs/ci.md``.
"""

from harness_core.ci._annotations import annotate, summarize
from harness_core.ci._junit import Failure, Report, read_faults, read_report
from harness_core.ci._plan import Job, plan_jobs, read_sessions

__all__ = [
    "Failure",
    "Job",
    "Report",
    "annotate",
    "plan_jobs",
    "read_faults",
    "read_report",
    "read_sessions",
    "summarize",
]
