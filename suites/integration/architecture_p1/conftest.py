"""Stacks of one test's own: without Langfuse, or to be ill-treated; and what stands in for Langfuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.doubles.http import HttpClient
from harness_core.process import Run
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.episodes import Episodes
from suites.integration.observed import Langfuse
from suites.integration.stack import layout_of, open_workbench


class _Boot(Protocol):
    """Boots a stack of one test's own."""

    def __call__(self, name: str, **variables: str) -> AbstractContextManager[Stack]: ...


@pytest.fixture
def boot_apart(
    subject: Subject,
    evidence: Evidence,
    harness_loop: Loop,
    harness_run: Run,
    pytestconfig: pytest.Config,
) -> _Boot:
    """Boots a stack of the test's own, with other values of some variables of its compose file."""

    def boot(name: str, **variables: str) -> AbstractContextManager[Stack]:
        opening = open_workbench(
            harness_run,
            subject,
            evidence=evidence.child(name),
            services=pytestconfig.getoption("--services"),
            variables=variables,
        )
        return harness_loop.hold(opening)

    return boot


@pytest.fixture
def apart(boot_apart: _Boot, client_of: Callable[[Stack, str], HttpClient]) -> Iterator[Episodes]:
    """Episodes of a stack of the test's own: whatever it does there meets no other test."""
    with boot_apart("apart") as stack:
        yield Episodes(stack, client_of)


@pytest.fixture
def without_langfuse(
    boot_apart: _Boot,
    subject: Subject,
    langfuse_service: str,
    client_of: Callable[[Stack, str], HttpClient],
) -> Iterator[tuple[Episodes, Langfuse]]:
    """Episodes of a stack of its own that has no keys to Langfuse, and what stands in for that."""
    keys = dict.fromkeys(layout_of(subject).recorder_keys, "")
    with boot_apart("without-langfuse", **keys) as stack:
        yield Episodes(stack, client_of), Langfuse(stack.recorder(langfuse_service))
