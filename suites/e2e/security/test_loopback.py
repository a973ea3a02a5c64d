"""Nothing of the ecosystem can be reached from another machine."""

from __future__ import annotations

import pytest

from harness_core.ports import listeners
from harness_core.process import descendants
from suites.e2e.ecosystem.handle import Ecosystem

pytestmark = pytest.mark.covers("E2E-LOOPBACK")


@pytest.mark.capability("loopback")
async def test_everything_listens_on_loopback_only(ecosystem: Ecosystem) -> None:
    """Every listening socket of every process of every butler is bound to a loopback address."""
    owner = {
        pid: name
        for name, butler in ecosystem.butlers.items()
        for pid in (butler.pid, *descendants(butler.pid))
    }
    found = [listener for listener in listeners() if listener.pid in owner]
    exposed = sorted(
        f"{owner[listener.pid]} on port {listener.port} (pid {listener.pid}, {listener.command})"
        for listener in found
        if listener.pid is not None and not listener.loopback
    )

    assert [] == exposed, f"nothing listens beyond loopback; found {exposed}"
    serving = {butler.port for butler in ecosystem.butlers.values()}

    assert serving <= {listener.port for listener in found}, "a butler's own port was not seen"
