"""Failures of one run by their cause: one sentence, and the tests below it.

- ``_interval.py``: what the product's processes did while a failed test ran: log lines, deaths.
- ``_sentence.py``: what a failed test says, without the code around it.
- ``_shape.py``: what two sentences have in common when ids, numbers and quoted values are left out.
- ``_group.py``: failures that have a cause in common, strongest evidence first.
- ``_hooks.py``: the pytest hooks: each failure's sentence when it happens, the causes at the end.
"""

from harness_core.front.causes._group import Cause, Failure, causes_of
from harness_core.front.causes._hooks import CauseHooks
from harness_core.front.causes._interval import OBSERVED, IntervalHooks
from harness_core.front.causes._sentence import first_line, said, without_kind
from harness_core.front.causes._shape import shape_of

__all__ = [
    "OBSERVED",
    "Cause",
    "CauseHooks",
    "Failure",
    "IntervalHooks",
    "causes_of",
    "first_line",
    "said",
    "shape_of",
    "without_kind",
]
