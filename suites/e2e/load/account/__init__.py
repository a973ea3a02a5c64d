"""What a load test must be able to say: how long things took, and what became of each of them.

- ``_percentiles.py``: :func:`percentile`, :class:`Timings`, by nearest rank, from every sample.
- ``_knee.py``: :class:`Step`, :func:`knee`, where more load brings no more work done.
- ``_account.py``: :func:`settle`, each accepted message held against what was found of it.
"""

from suites.e2e.load.account._account import Account, Found, Sending, settle
from suites.e2e.load.account._knee import Step, knee, steps_table
from suites.e2e.load.account._percentiles import Timings, percentile, timings_table

__all__ = [
    "Account",
    "Found",
    "Sending",
    "Step",
    "Timings",
    "knee",
    "percentile",
    "settle",
    "steps_table",
    "timings_table",
]
