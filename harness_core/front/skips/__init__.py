"""Tests that are not run: why, which of them CI accepts, and how the end of a run shows them.

- ``_cause.py``: :func:`not_run`, how a test or fixture says that it does not apply, and why.
- ``_rule.py``: which causes CI accepts, from ``suite.toml`` or the root's ``pyproject.toml``.
- ``_hooks.py``: the pytest hooks: refused in CI, counted, shown at the end of a run.

The third of three outcomes: neither the product nor the harness failed, but nothing was shown.
"""

from harness_core.front.skips._cause import Cause, NotRun, Why, not_run
from harness_core.front.skips._hooks import SkipHooks
from harness_core.front.skips._rule import SkipRule

__all__ = ["Cause", "NotRun", "SkipHooks", "SkipRule", "Why", "not_run"]
