"""The ecosystem that ``harness up e2e`` holds for a person (``suite.toml``, ``environment``)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from harness_core.db import POSTGRES_URL_VARIABLE
from harness_core.evidence import Evidence
from harness_core.parts import Parts
from harness_core.process import Run
from harness_core.staging import Options
from suites.e2e.boot import open_ecosystem
from suites.e2e.subject_file import read_subject

__all__ = ["open_environment"]


@asynccontextmanager
async def open_environment(
    run: Run, *, options: Options, evidence: Evidence, say: Callable[[str], None]
) -> AsyncIterator[Parts]:
    """Boot an ecosystem.

    Raises:
        HarnessError: something did not start.
    """
    subject = read_subject(options.subject)
    say(f"booting {subject.name}")
    async with open_ecosystem(
        run,
        subject,
        evidence=evidence,
        services=options.services,
        services_url=os.environ.get(POSTGRES_URL_VARIABLE),
        llm=options.llm,
        llm_upstream=options.llm_upstream,
        budget_usd=options.budget_usd,
        say=say,
    ) as ecosystem:
        yield ecosystem.parts
