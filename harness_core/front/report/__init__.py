"""Something to look at: a page of a run, or of many, from the evidence that they left.

- ``_sessions.py``: what became of each test, by the reports of sessions, workers and machines.
- ``_witnesses.py``: files that say when something happened; ``_stamps.py``: the times in them.
- ``_timeline.py``: what happened while one test ran, over all processes, on one clock.
- ``_ledgers.py``: requirement x tests x planted faults. ``_said.py``: expected beside found.
- ``_files.py``: pictures, videos, profiles, all of it as one archive.
- ``_build.py``: :func:`build_report`, all of it as data. ``_schema.py``: the shape of ``report.json``.
- ``page``: one page of HTML that needs nothing else.
- ``_exchange.py``: CTRF and JUnit, for those who read those.

Source: ``docs/how-to/report.md``.
"""

from harness_core.front.report._build import build_report
from harness_core.front.report._exchange import to_ctrf, to_junit
from harness_core.front.report._schema import SCHEMA, Report
from harness_core.front.report._witnesses import Witness, log_witnesses, row_witnesses

__all__ = [
    "SCHEMA",
    "Report",
    "Witness",
    "build_report",
    "log_witnesses",
    "row_witnesses",
    "to_ctrf",
    "to_junit",
]
