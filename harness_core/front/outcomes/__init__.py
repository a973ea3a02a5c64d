"""What became of each test, written while a run goes on: also a run that is killed has a report.

- ``_rows.py``: the rows of ``reports/SESSION.jsonl``, and the file read back.
- ``_hooks.py``: :class:`OutcomeHooks`, which write them beside the JUnit file of a session.
- ``_place.py``: :func:`folder_of_test`, where a test leaves its evidence.
- ``_during.py``: what logs and ledgers gained while a test ran, kept among the evidence of one that failed.

Source: ``docs/how-to/report.md``.
"""

from harness_core.front.outcomes._during import DURING, keep_during, keep_story
from harness_core.front.outcomes._hooks import EndingHooks, OutcomeHooks
from harness_core.front.outcomes._place import folder_of_test
from harness_core.front.outcomes._rows import (
    Began,
    Cost,
    Ended,
    Finished,
    Row,
    Spent,
    Started,
    Word,
    read_rows,
)

__all__ = [
    "DURING",
    "Began",
    "Cost",
    "Ended",
    "EndingHooks",
    "Finished",
    "OutcomeHooks",
    "Row",
    "Spent",
    "Started",
    "Word",
    "folder_of_test",
    "keep_during",
    "keep_story",
    "read_rows",
]
