"""A stack without Langfuse, for the rows that say what is done then."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import HttpClient
from harness_core.front.skips import not_run
from harness_core.process import Run
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.episodes import Episodes
from suites.integration.observed import Langfuse
from suites.integration.stack import layout_of, open_workbench


@pytest.fixture
def langfuse_service(subject: Subject) -> str:
    """The service that stands in for Langfuse."""
    service = layout_of(subject).recorder
    if not service:
        not_run("subject", f"{subject.path.name} names no recorder in its [stack]")
    return service


@pytest.fixture
def langfuse(stack: Stack, langfuse_service: str) -> Langfuse:
    """What stands in for Langfuse beside the stack."""
    return Langfuse(stack.recorder(langfuse_service))


@pytest.fixture
def without_langfuse(
    subject: Subject,
    langfuse_service: str,
    evidence: Evidence,
    harness_loop: Loop,
    harness_run: Run,
    client_of: Callable[[Stack, str], HttpClient],
    pytestconfig: pytest.Config,
) -> Iterator[tuple[Episodes, Langfuse]]:
    """Episodes of a stack of its own that has no keys to Langfuse, and what stands in for that."""
    opening = open_workbench(
        harness_run,
        subject,
        evidence=evidence.child("without-langfuse"),
        services=pytestconfig.getoption("--services"),
        variables=dict.fromkeys(layout_of(subject).recorder_keys, ""),
    )
    with harness_loop.hold(opening) as stack:
        yield Episodes(stack, client_of), Langfuse(stack.recorder(langfuse_service))
