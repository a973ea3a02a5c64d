"""What the harness does itself in every stack: the model gateway, and recorders of third parties."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from harness_core import limits
from harness_core.http import HttpClient
from harness_core.llm import KEY_VARIABLE, TOKEN_VARIABLE, gateway_command
from harness_core.net import PortLease
from harness_core.stack._compose import ComposeService
from harness_core.stack._options import StackOptions
from harness_core.stack._part import Part
from harness_core.stack._probe import healthy
from harness_core.stack._process_part import ProcessPart, ProcessPlan
from harness_core.stack._recipe import KINDS
from harness_core.stack._recorder_part import RecorderPart

if TYPE_CHECKING:
    from harness_core.evidence import Evidence
    from harness_core.process import Run

__all__ = ["Here"]


class Here:
    """Makes the parts that run in the harness's own processes.

    Args:
        run: what they belong to.
        options: of the stack.
        evidence: directory for their logs.
        nursery: of the driver.
        lease: leases a port for the life of the stack.
        data_of: the directory of a service.

    Attributes:
        gateway_key: what callers of the model gateway present; empty without one.
        gateway_token: of its control API.
    """

    def __init__(
        self,
        *,
        run: Run,
        options: StackOptions,
        evidence: Evidence,
        nursery: trio.Nursery,
        lease: Callable[[], PortLease],
        data_of: Callable[[str], Path],
    ) -> None:
        self.gateway_key = ""
        self.gateway_token = ""
        self._run = run
        self._options = options
        self._evidence = evidence
        self._nursery = nursery
        self._lease = lease
        self._data_of = data_of

    def gateway(self, service: ComposeService) -> Part:
        """The model gateway."""
        lease = self._lease()
        command = gateway_command(
            ("--port", str(lease.port), "--host", _host_of(service)),
            mode=self._options.llm or service.recipe.mode or "rehearsed",
            evidence=self._evidence,
            api_key=service.environment.get(KEY_VARIABLE, ""),
            token=service.environment.get(TOKEN_VARIABLE, ""),
            budget_usd=self._options.budget_usd,
            upstream=self._options.llm_upstream,
        )
        self.gateway_key, self.gateway_token = command.api_key, command.token
        client = HttpClient(
            f"http://127.0.0.1:{lease.port}",
            name=service.name,
            headers={"authorization": f"Bearer {command.token}"},
        )

        async def plan() -> ProcessPlan:
            return ProcessPlan(
                name=service.name,
                argv=command.argv,
                environment=command.environment,
                cwd=self._data_of(service.name),
                once=False,
                health=partial(healthy, client, "/_gateway/health"),
                ready_s=service.recipe.ready_s or limits.STACK_READY_S,
                stop_s=limits.STACK_STOP_S,
            )

        return ProcessPart(service.name, self._run, plan, lease=lease, evidence=self._evidence)

    def recorder(self, service: ComposeService) -> Part:
        """A recorder."""
        return RecorderPart(
            service.name,
            lease=self._lease(),
            host=_host_of(service),
            answers=service.recipe.answers,
            nursery=self._nursery,
            evidence=self._evidence,
        )


def _host_of(service: ComposeService) -> str:
    """What it is called in the network of the stack."""
    return f"{service.name}:{service.port or KINDS[service.recipe.service]}"
