"""What cannot run here is skipped with its reason, or fails where ``HARNESS_REQUIRE`` demands it."""

from __future__ import annotations

from typing import Final

import pytest

from harness_core.assurance import gates
from harness_core.front.skips import not_run

GATE_DEMANDED: Final = pytest.StashKey[bool]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where CI demands it, what cannot run here."""
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            check_gate(item, name)


def check_gate(item: pytest.Item, name: str) -> None:
    """End a test that runs now when a gate is closed: as not run, or failed where CI demands the gate."""
    reason = gates.closed_reason(name)
    if reason and name in gates.required():
        item.stash[GATE_DEMANDED] = True
        pytest.fail(f"gate {name!r} is demanded by HARNESS_REQUIRE: {reason}", pytrace=False)
    if reason:
        not_run("gate", reason, gate=name)
