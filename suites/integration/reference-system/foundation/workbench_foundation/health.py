"""Dependencies asked side by side, each within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from workbench_contract.health import Health, HealthStatus
from workbench_foundation import faults
from workbench_foundation.errors import describe

Probe = Callable[[], Awaitable[object]]

#: Probes that have not ended: a loop holds no task by itself.
_asking: set[asyncio.Future[object]] = set()


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
    asking = asyncio.ensure_future(probe())
    _asking.add(asking)
    asking.add_done_callback(_ended)
    # Not `asyncio.timeout`: a driver whose query is cancelled may first ask its server to cancel it,
    # and wait for a server that does not answer.
    try:
        await asyncio.wait({asking}, timeout=timeout_s)
    finally:
        late = asking.cancel()
    if late:
        return f"no answer within {timeout_s:g} s"
    # A probe speaks to another server: whatever it raises is the answer here.
    error = asyncio.CancelledError() if asking.cancelled() else asking.exception()
    return "ok" if error is None else describe(error)


def _ended(asking: asyncio.Future[object]) -> None:
    _asking.discard(asking)
    if not asking.cancelled():
        asking.exception()  # Said above, or too late to say.
