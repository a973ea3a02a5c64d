"""What a stack is given besides its compose file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_core.base import limits

__all__ = ["StackOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What a stack is given besides its compose file.

    Attributes:
        bin: the folder of the commands of the system under test: ``{bin}``.
        environment: what every process has besides its own variables; the usual few when empty.
        services: where PostgreSQL, S3 and Temporal come from: a provider of
            ``harness_core.infrastructure.services``.
        urls: for the provider ``external``: kind → URL or address.
        llm: mode of the model gateway; what the compose file says when empty.
        llm_upstream: base URL of the provider in modes ``live`` and ``record``.
        budget_usd: hard limit of what the model may cost.
    """

    bin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    services: str = "local"
    urls: Mapping[str, str] = field(default_factory=dict, repr=False)
    llm: str = ""
    llm_upstream: str | None = None
    budget_usd: float = limits.LLM_BUDGET_USD
