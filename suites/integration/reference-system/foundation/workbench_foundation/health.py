"""Dependencies asked side by side, each within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from workbench_contract.health import Health, HealthStatus
from workbench_foundation import faults
from workbench_foundation.errors import describe

Probe = Callable[[], Awaitable[object]]


async def health(probes: Mapping[str, Probe], *, timeout_s: float) -> tuple[int, Health]:
    """The status code and body of ``/health``.

    Args:
        probes: by the name of the dependency; one that raises does not answer.
        timeout_s: the longest that one may take.
    """
    names = sorted(probes)
    found = await asyncio.gather(*(_ask(probes[name], timeout_s=timeout_s) for name in names))
    dependencies = dict(zip(names, found, strict=True))
    if faults.on("health-always-healthy"):
        return 200, Health(status=HealthStatus.HEALTHY, dependencies=dict.fromkeys(names, "ok"))
    if faults.on("health-names-none"):
        dependencies = dict.fromkeys(names, "ok")
    if all(state == "ok" for state in found):
        return 200, Health(status=HealthStatus.HEALTHY, dependencies=dependencies)
    return 503, Health(status=HealthStatus.UNHEALTHY, dependencies=dependencies)


async def _ask(probe: Probe, *, timeout_s: float) -> str:
    try:
        async with asyncio.timeout(timeout_s):
            await probe()
    except TimeoutError:
        return f"no answer within {timeout_s:g} s"
    # A probe speaks to another server: whatever it raises is the answer here.
    except Exception as error:
        return describe(error)
    return "ok"
