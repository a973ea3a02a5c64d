"""What an operator filters by: the level of a line."""

from __future__ import annotations

import pytest

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.levels import plain, says_level


@pytest.mark.covers("E2E-LOGS")
@pytest.mark.capability("log-levels")
async def test_a_log_says_its_levels(ecosystem: Ecosystem) -> None:
    """Each butler's log has lines that say their level: what wakes an operator can be told from the rest."""
    for log in ecosystem.butler_logs():
        lines = [line for line in plain(log.read_text(encoding="utf-8")).splitlines() if line]

        assert not lines or any(map(says_level, lines)), (
            f"a log says the level of its lines: expected one that does in {log.name}, found "
            f"{lines[:5]}"
        )
