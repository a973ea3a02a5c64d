"""What may be asked of an environment, on a command line or of pytest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness_core.base import limits

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What may be asked of an environment; each is an option of pytest too.

    Attributes:
        services: where servers come from: ``local``, ``container`` or ``external``.
        llm: how the model gateway answers.
        llm_upstream: base URL of the provider in modes ``live`` and ``record``.
        llm_cassette: what ``record`` writes and ``replay`` reads.
        budget_usd: hard limit of the model's cost.
    """

    services: str = "local"
    llm: str = "rehearsed"
    llm_upstream: str | None = None
    llm_cassette: Path | None = None
    budget_usd: float = limits.LLM_BUDGET_USD
