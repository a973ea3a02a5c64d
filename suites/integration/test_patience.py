"""By how much the timeouts of a stack grow with the load: no stack is booted."""

from typing import Final

import pytest

from suites.integration.patience import factor_of

#: Threads that want each core, and what a stack that is booted then multiplies its timeouts by.
_LOADS: Final = ((1.0, 1), (2.0, 1), (2.9, 1), (3.0, 2), (5.0, 3), (8.0, 4))


@pytest.mark.integration_p0
@pytest.mark.aside("tests a helper of the suite")
@pytest.mark.parametrize(("load", "factor"), _LOADS)
def test_the_workers_of_a_run_lengthen_no_outage(load: float, factor: int) -> None:
    """Two threads for each core are a run of three workers by itself; more of them count by half."""
    found = factor_of(load)

    assert factor == found, f"at {load} threads a core expected {factor}, found {found}"
