"""How workflows try again."""

from __future__ import annotations

from datetime import timedelta

from temporalio.common import RetryPolicy

#: What the rest of a workflow cannot do without.
KEEP_TRYING = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=2)
)
