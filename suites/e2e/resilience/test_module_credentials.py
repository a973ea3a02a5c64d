"""Each module by its own credentials: a product may have one of them and not another (E2E-DEGRADATION).

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: a real service needs
credentials that no run may have.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.front.skips import not_run
from harness_core.process import Run
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.worlds.chaos import Chaos
from suites.e2e.worlds.credentialed import Services, credentials_of, open_services

pytestmark = [pytest.mark.covers("E2E-DEGRADATION"), pytest.mark.capability("own-process")]


@pytest.fixture
def services(harness_loop: Loop, harness_run: Run, evidence: Evidence) -> Iterator[Services]:
    """What the modules speak to."""
    with harness_loop.hold(open_services(harness_run, evidence=evidence)) as found:
        yield found


@pytest.mark.disturbs
@pytest.mark.parametrize(
    "module",
    [
        pytest.param("calendar", marks=pytest.mark.capability("module-credentials-calendar")),
        pytest.param("email", marks=pytest.mark.capability("module-credentials-email")),
        pytest.param("telegram", marks=pytest.mark.capability("module-credentials-telegram")),
    ],
)
async def test_credentials_make_a_module_active(
    fragile: Ecosystem, chaos: Chaos, services: Services, module: str
) -> None:
    """Without its credentials a module has failed for want of them, and with them it is active."""
    having = [each for each in fragile.butlers.values() if module in each.config.modules]
    if not having:
        not_run("subject", f"no butler of its roster configures {module}")
    butler = having[0]
    without = await module_of(butler, module)
    environment: dict[str, str] = {}
    for name in (module, *depends_on(butler, module)):
        environment |= credentials_of(fragile.subject, name, services)
    await chaos.start(butler.name, **environment)
    found = await module_of(butler, module)

    assert without.get("status") in {"failed", "cascade_failed"}, (
        f"a module without credentials has failed: expected {module} failed, found {without}"
    )
    assert without["status"] == "cascade_failed" or without.get("phase") == "credentials", (
        f"it says for want of what: expected phase 'credentials' of {module}, found {without}"
    )
    assert without.get("error"), f"it says why: expected a reason of {module}, found {without}"
    assert found.get("status") == "active", (
        f"a module whose credentials are accepted is active: expected {module} active, found {found}"
    )


async def module_of(butler: Butler, name: str) -> Mapping[str, Any]:
    """What a butler's status says of a module."""
    modules = (await butler.status()).get("modules", {})

    assert name in modules, (
        f"status lists the modules that {butler.name} configures: expected {name}, found {modules}"
    )
    found: Mapping[str, Any] = modules[name]
    return found


def depends_on(butler: Butler, module: str) -> list[str]:
    """All that a module depends on, as the butler's file says."""
    content = tomllib.loads((butler.config.directory / "butler.toml").read_text(encoding="utf-8"))
    known = content.get("modules", {})
    found: list[str] = []
    wanted = [module]
    while wanted:
        for name in known.get(wanted.pop(), {}).get("depends_on", ()):
            if name not in found:
                found.append(name)
                wanted.append(name)
    return found
