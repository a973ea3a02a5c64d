"""The model gateway as a part; imported on its own, since it needs the extra ``gateway``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_core.base import limits
from harness_core.doubles.http import HttpClient
from harness_core.doubles.model import gateway_command
from harness_core.ports import PortLease, Stage
from harness_core.system.parts._probe import healthy
from harness_core.system.parts._process_part import ProcessPart, ProcessPlan

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["GatewayPart"]


class GatewayPart(ProcessPart):
    """The model gateway, as a process on a leased port.

    Args:
        name: unique in its system.
        run: what it belongs to.
        lease: its port.
        evidence: keeps its log and ``ledger.jsonl``.
        host: ``HOST:PORT`` that callers know it by, besides its address.
        cwd: where it starts.
        ready_s: seconds it may take to serve.
        options: as for :func:`~harness_core.doubles.model.open_gateway`: ``mode``, ``budget_usd`` …

    Attributes:
        gateway: how it is called and steered.

    Raises:
        BadInput: an unknown mode, no cassette where one is needed, or a malformed one.
        Unavailable: mode ``live`` or ``record`` without a key.
    """

    def __init__(  # noqa: PLR0913 - the options of a gateway, with defaults
        self,
        name: str,
        run: Run,
        *,
        lease: PortLease,
        evidence: Evidence,
        host: str = "",
        cwd: Path | None = None,
        ready_s: float = limits.STACK_READY_S,
        **options: Any,
    ) -> None:
        where = ["--port", str(lease.port), *(["--host", host] if host else [])]
        command = gateway_command(where, port=lease.port, evidence=evidence, **options)
        self.gateway = command.gateway
        token = self.gateway.client.token
        client = HttpClient(
            self.gateway.url, name=name, headers={"authorization": f"Bearer {token}"}
        )
        health = Stage(
            name="health",
            probe=partial(healthy, client, "/_gateway/health"),
            seconds=ready_s,
        )
        plan = ProcessPlan(
            argv=command.argv,
            environment=command.environment,
            cwd=cwd,
            stages=(health,),
            ready_s=ready_s,
        )
        super().__init__(name, run, lambda: plan, leases=(lease,), evidence=evidence)
        self.kind = "gateway"
        self.secrets = {"ANTHROPIC_API_KEY": self.gateway.api_key}
