"""How inputs are generated: the same ones in each run, however slow the daemon or the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ["generated"]


def generated(examples: int) -> settings:
    """So many examples for one test; a failure shows one, and what repeats it."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
