"""Whether a service can do its work."""

from __future__ import annotations

from enum import StrEnum

from workbench_contract.base import Model


class HealthStatus(StrEnum):
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


class Health(Model):
    """The answer of ``/health``.

    Attributes:
        dependencies: by name ``ok``, or why it is not.
    """

    status: HealthStatus
    dependencies: dict[str, str]
