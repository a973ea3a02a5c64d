"""What the suite boots, for its tests and for ``harness up e2e`` (``suite.toml``, ``environment``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from harness_core.base.evidence import Evidence
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE
from harness_core.process import Run
from harness_core.system.staging import Options
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import open_ecosystem
from suites.e2e.ecosystem.handle import Ecosystem

__all__ = ["open_environment"]


def open_environment(
    run: Run,
    subject: Subject,
    *,
    options: Options,
    evidence: Evidence,
    say: Callable[[str], None],
) -> AbstractAsyncContextManager[Ecosystem]:
    """Boot an ecosystem.

    Raises:
        HarnessError: something did not start.
    """
    return open_ecosystem(
        run,
        subject,
        evidence=evidence,
        services=options.services,
        services_url=os.environ.get(POSTGRES_URL_VARIABLE),
        llm=options.llm,
        llm_upstream=options.llm_upstream,
        llm_cassette=options.llm_cassette,
        budget_usd=options.budget_usd,
        say=say,
    )
