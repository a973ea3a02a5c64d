"""Requirements without a test, told in every run instead of left out of it."""

from typing import Any

import pytest

from harness_core.ledger import load_ledger
from harness_core.skips import not_run
from suites.integration.conftest import LEDGER


def deferred() -> list[Any]:
    """One parameter for each deferred row, with the mark of its priority."""
    ledger = load_ledger(LEDGER)
    return [
        pytest.param(row, id=row.id, marks=getattr(pytest.mark, ledger.priorities[row.priority]))
        for row in ledger.deferred
    ]


@pytest.mark.aside("tells what the ledger defers")
@pytest.mark.parametrize("row", deferred())
def test_deferred(row) -> None:  # lint: allow no-assertion: it tells, and proves nothing
    """A deferred requirement is skipped by name, with its reason."""
    not_run("deferred", f"{row.id} {row.title}: {row.reason}")
