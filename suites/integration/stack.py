"""The one adapter of this suite: which compose file is booted, how, and what its services are called.

Nothing here imports the system under test: it is a compose file that a subject file names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE
from harness_core.infrastructure.services import (
    S3_URL_VARIABLE,
    TEMPORAL_ADDRESS_VARIABLE,
    external_address,
)
from harness_core.process import Run
from harness_core.system.compose import Stack, StackOptions, open_stack, read_compose
from harness_core.system.staging import Options
from harness_core.system.subject import Subject, load_subject, subject_bin
from suites.integration.patience import factor_for_a_stack
from suites.integration.subject_file import SERVICES, CatalogueColumns, Layout, StackTables

__all__ = [
    "SERVICES",
    "CatalogueColumns",
    "Layout",
    "columns_of",
    "layout_of",
    "open_environment",
    "open_workbench",
    "read_subject",
    "services_of",
]

#: In a compose file: how many times as long as alone work takes on this machine now, whole, from 1 to 8. A
#: stack whose timeouts are short lengthens them by it.
SLOWNESS_VARIABLE: Final = "HARNESS_SLOWNESS"

#: The zone of the machine, as every process of the stack sees it: five hours and three quarters from
#: UTC, so that a local time that is taken for UTC, or the other way round, shows.
ELSEWHERE: Final = "Asia/Kathmandu"

_DRIVERS: Final = {"container": "docker", "external": "local", "local": "local"}


def read_subject(path: Path) -> Subject:
    """A subject file, with the compose file that it names.

    Raises:
        BadInput: the first mistake in either.
    """
    subject = load_subject(path)
    compose = layout_of(subject).compose
    there = read_compose(compose, variables=subject.environment()).services
    for service, name in services_of(subject).items():
        if name not in there:
            known = f"a service of {compose.name}: {', '.join(there)}"
            raise BadInput(path, key=f"services.{service}", found=name, expected=known)
    return subject


def layout_of(subject: Subject) -> Layout:
    """Read the ``[stack]`` of a subject file.

    Raises:
        BadInput: a key is missing, unknown or no text.
    """
    return subject.read_tables(StackTables).stack


def services_of(subject: Subject) -> dict[str, str]:
    """The ``[services]`` of a subject file: what the contract calls a service → what the product does.

    Raises:
        BadInput: the contract has no such service.
    """
    return subject.read_tables(StackTables).services


def columns_of(subject: Subject) -> CatalogueColumns:
    """The ``[catalogue]`` of a subject file.

    Raises:
        BadInput: a key is unknown, or no name of a column.
    """
    return subject.read_tables(StackTables).catalogue


def open_workbench(
    run: Run,
    subject: Subject,
    *,
    evidence: Evidence,
    services: str = "local",
    llm: str = "rehearsed",
    llm_upstream: str | None = None,
    llm_cassette: Path | None = None,
    budget_usd: float = limits.LLM_BUDGET_USD,
    variables: Mapping[str, str] = MappingProxyType({}),
    say: Callable[[str], None] = lambda _text: None,
) -> AbstractAsyncContextManager[Stack]:
    """Boot the stack of a subject file from nothing.

    Args:
        run: the run it belongs to.
        subject: what is tested.
        evidence: directory for the logs of all services.
        services: ``local`` (processes), ``container`` (docker compose) or ``external`` (processes,
            with servers that are there already).
        llm: mode of the model gateway.
        llm_upstream: base URL of the provider in modes ``live`` and ``record``.
        llm_cassette: what ``record`` writes and ``replay`` reads.
        budget_usd: hard limit of what the model may cost.
        variables: of the compose file, over those of the subject file.
        say: gets a line for each step of the boot.

    Raises:
        BadInput: a mistake in the subject file or the compose file.
        ServiceFailed: a service did not come up; names the culprit.
    """
    layout = layout_of(subject)
    slower = str(factor_for_a_stack())
    options = StackOptions(
        bin=subject_bin(),
        environment={
            **subject.environment(),
            SLOWNESS_VARIABLE: slower,
            "TZ": ELSEWHERE,
            **variables,
        },
        services="local" if services == "container" else services,
        urls=_external() if services == "external" else {},
        llm=llm,
        llm_upstream=llm_upstream,
        llm_cassette=llm_cassette,
        budget_usd=budget_usd,
        names=services_of(subject),
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
    """Addresses of the servers that the harness does not start."""
    variables = {
        "postgres": POSTGRES_URL_VARIABLE,
        "s3": S3_URL_VARIABLE,
        "temporal": TEMPORAL_ADDRESS_VARIABLE,
    }
    return {kind: external_address(kind, variable=each) for kind, each in variables.items()}


def open_environment(
    run: Run,
    subject: Subject,
    *,
    options: Options,
    evidence: Evidence,
    say: Callable[[str], None],
) -> AbstractAsyncContextManager[Stack]:
    """What the suite boots, for its tests and for ``harness up integration``.

    Raises:
        HarnessError: something did not start.
    """
    return open_workbench(
        run,
        subject,
        evidence=evidence,
        services=options.services,
        llm=options.llm,
        llm_upstream=options.llm_upstream,
        llm_cassette=options.llm_cassette,
        budget_usd=options.budget_usd,
        say=say,
    )
