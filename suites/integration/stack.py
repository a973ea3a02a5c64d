"""The one adapter of this suite: which compose file is booted, how, and what its services are called.

Nothing here imports the system under test: it is a compose file that a subject file names.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from harness_core import limits
from harness_core.db import POSTGRES_URL_VARIABLE
from harness_core.errors import Unavailable
from harness_core.evidence import Evidence
from harness_core.process import Run
from harness_core.services import S3_URL_VARIABLE, TEMPORAL_ADDRESS_VARIABLE
from harness_core.stack import HeldStack, Stack, StackOptions, hold_stack, open_stack
from harness_core.staging import Options
from harness_core.subject import Subject, load_subject, subject_bin
from harness_core.suites import Shape

__all__ = ["REFERENCE_SUBJECT", "Layout", "layout_of", "open_environment", "open_workbench"]

REFERENCE_SUBJECT: Final = Path(__file__).with_name("reference-system") / "subject.toml"

_DRIVERS: Final = {"container": "docker", "external": "local", "local": "local"}

#: Every table of a subject file but ``[subject]`` and ``[env]``.
TABLES: Final[Shape] = {"stack!": {"compose!": str, "api_key": str, "model": str, "recorder": str}}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the ``[stack]`` of a subject file says.

    Attributes:
        compose: the compose file.
        api_key: name of the variable, in the environment of the controller, that holds the key which
            callers present.
        model: mode of the model gateway.
        recorder: the service that records what is sent to Langfuse; empty for none.
    """

    compose: Path
    api_key: str
    model: str
    recorder: str


def layout_of(subject: Subject) -> Layout:
    """Read the ``[stack]`` of a subject file.

    Raises:
        BadInput: a key is missing, unknown or no text.
    """
    subject.check_tables(TABLES)
    table = subject.table("stack")
    return Layout(
        compose=subject.resolve(str(table["compose"])),
        api_key=str(table.get("api_key", "WORKBENCH_API_KEY")),
        model=str(table.get("model", "rehearsed")),
        recorder=str(table.get("recorder", "")),
    )


def open_workbench(
    run: Run,
    subject: Subject,
    *,
    evidence: Evidence,
    services: str = "local",
    llm: str = "rehearsed",
    llm_upstream: str | None = None,
    budget_usd: float = limits.LLM_BUDGET_USD,
    say: Callable[[str], None] = lambda _text: None,
) -> AbstractAsyncContextManager[Stack]:
    """Boot the stack of a subject file from nothing.

    Args:
        run: the run it belongs to.
        subject: what is tested.
        evidence: directory for the logs of all services.
        services: ``local`` (processes), ``container`` (docker compose) or ``external`` (processes,
            with servers of somebody else).
        llm: mode of the model gateway; ``rehearsed`` means what the subject file says.
        llm_upstream: base URL of the provider in mode ``live``.
        budget_usd: hard limit of what the model may cost.
        say: told how the boot goes.

    Raises:
        BadInput: a mistake in the subject file or the compose file.
        ServiceFailed: a service did not come up; names the culprit.
    """
    layout = layout_of(subject)
    options = StackOptions(
        bin=subject_bin(),
        environment=subject.environment(),
        services="local" if services == "container" else services,
        urls=_external() if services == "external" else {},
        llm=layout.model if llm == "rehearsed" else llm,
        llm_upstream=llm_upstream,
        budget_usd=budget_usd,
    )
    return open_stack(
        run,
        layout.compose,
        evidence=evidence,
        driver=_DRIVERS[services],
        options=options,
        say=say,
    )


def _external() -> dict[str, str]:
    """Where the servers of somebody else are."""
    variables = {
        "postgres": POSTGRES_URL_VARIABLE,
        "s3": S3_URL_VARIABLE,
        "temporal": TEMPORAL_ADDRESS_VARIABLE,
    }
    for kind, variable in variables.items():
        if not os.environ.get(variable):
            raise Unavailable(
                f"use an external {kind}",
                observed=f"{variable} is not set",
                next_step="Set it, or run with --services local",
            )
    return {kind: os.environ[variable] for kind, variable in variables.items()}


@asynccontextmanager
async def open_environment(
    run: Run, *, options: Options, evidence: Evidence, say: Callable[[str], None]
) -> AsyncIterator[HeldStack]:
    """A stack for staging (``suite.toml``, ``environment``).

    Raises:
        HarnessError: something did not start.
    """
    subject = load_subject(options.subject or REFERENCE_SUBJECT)
    say(f"booting {subject.name}")
    opening: Any = open_workbench(
        run,
        subject,
        evidence=evidence,
        services=options.services,
        llm=options.llm,
        llm_upstream=options.llm_upstream,
        budget_usd=options.budget_usd,
        say=say,
    )
    async with hold_stack(opening) as held:
        yield held
