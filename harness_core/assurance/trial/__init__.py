"""What a product can do of what its suite declares, tried on the product itself.

- ``_plan.py``: which capabilities are tried together, and which cannot be.
- ``_judge.py``: from what became of tests to a :class:`Verdict` for each capability.
- ``_run.py``: :func:`try_capabilities`, one pytest after the other.
- ``_report.py``: the table for people and the JSON for machines.
"""

from harness_core.assurance.trial._judge import Tried, Verdict
from harness_core.assurance.trial._report import render_trial, to_json
from harness_core.assurance.trial._run import Trial, try_capabilities

__all__ = ["Trial", "Tried", "Verdict", "render_trial", "to_json", "try_capabilities"]
