"""What both drivers make of a compose file in the same way: what the harness itself provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from harness_core.base import limits
from harness_core.doubles.http import Recorder
from harness_core.doubles.model import KEY_VARIABLE, TOKEN_VARIABLE
from harness_core.ports import PortLease, lease_port
from harness_core.system.compose._compose import Compose, ComposeService
from harness_core.system.compose._credentials import database_url
from harness_core.system.compose._handle import Access
from harness_core.system.compose._options import StackOptions
from harness_core.system.compose._recipe import KINDS
from harness_core.system.parts import DoublePart, Part, recorder_part
from harness_core.system.parts.gateway import GatewayPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["Maker"]


class Maker:
    """Makes the parts of one stack; each driver adds how it runs the rest.

    Args:
        run: what they belong to.
        compose: the file.
        options: what the stack is given besides.
        evidence: directory for their logs.
        stack: what is held until the end of the stack, leases of ports for one.
    """

    def __init__(
        self,
        *,
        run: Run,
        compose: Compose,
        options: StackOptions,
        evidence: Evidence,
        stack: ExitStack | AsyncExitStack,
    ) -> None:
        self._run = run
        self._compose = compose
        self._options = options
        self._evidence = evidence
        self._leases = stack
        self._data: dict[str, Path] = {}

    def lease(self) -> PortLease:
        """A port for the life of the stack."""
        return self._leases.enter_context(lease_port())

    def data_of(self, name: str) -> Path:
        """The directory of a service, the same over its restarts."""
        if name not in self._data:
            self._data[name] = self._run.directory(f"data-{name}")
        return self._data[name]

    def gateway(self, service: ComposeService) -> GatewayPart:
        """The model gateway."""
        return GatewayPart(
            service.name,
            self._run,
            lease=self.lease(),
            evidence=self._evidence,
            host=_host_of(service),
            cwd=self.data_of(service.name),
            ready_s=service.recipe.ready_s or limits.STACK_READY_S,
            mode=self._options.llm or service.recipe.mode or "rehearsed",
            api_key=service.environment.get(KEY_VARIABLE, ""),
            token=service.environment.get(TOKEN_VARIABLE, ""),
            budget_usd=self._options.budget_usd,
            upstream=self._options.llm_upstream,
        )

    def recorder(self, service: ComposeService) -> DoublePart[Recorder]:
        """A recorder."""
        return recorder_part(
            service.name,
            lease=self.lease(),
            evidence=self._evidence,
            host=_host_of(service),
            answers=[structs.asdict(rule) for rule in service.recipe.answers],
        )

    def access(
        self,
        parts: Mapping[str, Part],
        *,
        driver: str,
        s3_url: Callable[[ComposeService, Part], str],
    ) -> Access:
        """How the servers of the running stack are reached.

        Args:
            parts: of the stack.
            driver: its name.
            s3_url: the URL of an S3 server, keys included.
        """
        database = objects = bucket = ""
        for name, service in self._compose.services.items():
            part = parts[name]
            if service.recipe.service == "postgres":
                database = database_url(part.address, service)
                part.urls = {"database": database}
            elif service.recipe.service == "s3":
                objects, bucket = s3_url(service, part), service.recipe.bucket
        return Access(driver=driver, database_url=database, s3_url=objects, bucket=bucket)


def _host_of(service: ComposeService) -> str:
    """What it is called in the network of the stack."""
    return f"{service.name}:{service.port or KINDS[service.recipe.service]}"
