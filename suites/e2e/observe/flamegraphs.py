"""``--profile``: where each butler and the gateway spend their time during a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from harness_core.base.evidence import Evidence
from harness_core.front.pytest_plugin import add_summary
from harness_core.process import Run
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.profiling import Profiles, open_profiles

__all__ = ["pids_of", "profiled"]


def pids_of(ecosystem: Ecosystem) -> dict[str, int]:
    """Name → process id, each process once: one that runs several butlers has the first one's."""
    found = {"gateway": ecosystem.parts["gateway"].place.pid or 0}
    for name, butler in ecosystem.butlers.items():
        if butler.pid not in found.values():
            found[name] = butler.pid
    return found


@asynccontextmanager
async def profiled(
    config: pytest.Config, run: Run, ecosystem: Ecosystem, *, evidence: Evidence
) -> AsyncIterator[None]:
    """Profile the ecosystem during the block when ``--profile`` is given.

    A butler that a test restarts is watched until its first end only.
    """
    if not config.getoption("--profile"):
        yield
        return
    folder = evidence.child("profiles")
    async with open_profiles(run, pids_of(ecosystem), evidence=folder) as profiles:
        yield
    add_summary(config, "profiles", text_of(profiles))


def text_of(profiles: Profiles) -> str:
    """Which files there are, and what is missing and why."""
    lines = []
    for name, paths in profiles.files.items():
        files = ", ".join(path.name for path in paths) or "no profile"
        reason = profiles.problems.get(name)
        lines.append(f"{name}: {files}, {reason}" if reason else f"{name}: {files}")
    lines.append(f"in {profiles.folder}; *.speedscope.json opens in https://www.speedscope.app")
    return "\n".join(lines)
