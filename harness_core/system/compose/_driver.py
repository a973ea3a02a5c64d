"""What makes a stack of a compose file: its parts, of which each driver runs those of its own kind."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
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
from harness_core.system.parts import Condition, DoublePart, Part, recorder_part
from harness_core.system.parts.gateway import GatewayPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["Driver"]


class Driver(abc.ABC):
    """Makes the parts of one stack; what the harness itself provides is made here.

    Args:
        run: what they belong to.
        compose: the file.
        options: what the stack is given besides.
        evidence: directory for their logs.
        stack: what is held until the end of the stack, leases of ports for one.
        say: gets a line for what takes long.

    Attributes:
        name: of the driver.
    """

    name: str

    def __init__(
        self,
        *,
        run: Run,
        compose: Compose,
        options: StackOptions,
        evidence: Evidence,
        stack: AsyncExitStack,
        say: Callable[[str], None],
    ) -> None:
        self._run = run
        self._compose = compose
        self._options = options
        self._evidence = evidence
        self._stack = stack
        self._say = say
        self._data: dict[str, Path] = {}

    @abc.abstractmethod
    async def parts(self) -> Mapping[str, Part]:
        """Make every part, and start none.

        Raises:
            Unavailable: something is missing on this machine.
        """

    def waits(self) -> Mapping[str, Mapping[str, Condition]]:
        """What each part waits for, once they are made."""
        return {name: service.depends_on for name, service in self._compose.services.items()}

    @abc.abstractmethod
    def s3_url(self, service: ComposeService, part: Part) -> str:
        """The URL of a running S3 server, keys included."""

    def lease(self) -> PortLease:
        """A port for the life of the stack."""
        return self._stack.enter_context(lease_port())

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
            cassette=self._options.llm_cassette,
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

    def access(self, parts: Mapping[str, Part]) -> Access:
        """How the servers of the running stack are reached."""
        database = objects = bucket = ""
        for name, service in self._compose.services.items():
            part = parts[name]
            if service.recipe.service == "postgres":
                database = database_url(part.address, service)
                part.urls = {"database": database}
            elif service.recipe.service == "s3":
                objects, bucket = self.s3_url(service, part), service.recipe.bucket
        return Access(driver=self.name, database_url=database, s3_url=objects, bucket=bucket)


def _host_of(service: ComposeService) -> str:
    """What it is called in the network of the stack."""
    return f"{service.name}:{service.port or KINDS[service.recipe.service]}"
