"""An operator's quarantine: no tool does it, so the column is written that the contract names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from suites.e2e.ecosystem.handle import Ecosystem

__all__ = ["quarantined"]


@asynccontextmanager
async def quarantined(ecosystem: Ecosystem, name: str) -> AsyncIterator[None]:
    """A butler is in quarantine for the block."""
    await _put(ecosystem, name, "quarantined")
    try:
        yield
    finally:
        await _put(ecosystem, name, "active")


async def _put(ecosystem: Ecosystem, name: str, state: str) -> None:
    await ecosystem.switchboard.database.execute(  # lint: allow writes-rows: an operator's act
        "UPDATE butler_registry SET eligibility_state = %s WHERE name = %s", (state, name)
    )
