"""What a service of a compose file becomes when the harness provides it, with either driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from harness_core.base import limits
from harness_core.doubles.http import Recorder
from harness_core.doubles.model import KEY_VARIABLE, TOKEN_VARIABLE
from harness_core.ports import PortLease
from harness_core.system.compose._compose import ComposeService
from harness_core.system.compose._options import StackOptions
from harness_core.system.compose._recipe import KINDS
from harness_core.system.parts import DoublePart, recorder_part
from harness_core.system.parts.gateway import GatewayPart

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["stack_gateway", "stack_recorder"]


def stack_gateway(
    service: ComposeService,
    run: Run,
    options: StackOptions,
    *,
    lease: PortLease,
    evidence: Evidence,
    cwd: Path,
) -> GatewayPart:
    """The model gateway of a stack."""
    return GatewayPart(
        service.name,
        run,
        lease=lease,
        evidence=evidence,
        host=_host_of(service),
        cwd=cwd,
        ready_s=service.recipe.ready_s or limits.STACK_READY_S,
        mode=options.llm or service.recipe.mode or "rehearsed",
        api_key=service.environment.get(KEY_VARIABLE, ""),
        token=service.environment.get(TOKEN_VARIABLE, ""),
        budget_usd=options.budget_usd,
        upstream=options.llm_upstream,
    )


def stack_recorder(
    service: ComposeService, *, lease: PortLease, evidence: Evidence
) -> DoublePart[Recorder]:
    """A recorder of a stack."""
    return recorder_part(
        service.name,
        lease=lease,
        evidence=evidence,
        host=_host_of(service),
        answers=[structs.asdict(rule) for rule in service.recipe.answers],
    )


def _host_of(service: ComposeService) -> str:
    """What it is called in the network of the stack."""
    return f"{service.name}:{service.port or KINDS[service.recipe.service]}"
