"""Modules without credentials fail in the open and take nobody down (seed 000, "Module degradation")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from suites.e2e.ecosystem import Butler, Ecosystem

pytestmark = pytest.mark.capability("modules")


#: Modules whose credentials this harness never provides (seed 000, "Not Tested").
WITHOUT_CREDENTIALS = frozenset({"telegram", "email", "calendar"})


async def test_modules_without_credentials_are_named_as_failed(ecosystem: Ecosystem) -> None:
    """Each such module is failed in the phase of credentials, or cascaded from one that is."""
    seen = 0
    for butler in ecosystem.butlers.values():
        modules = (await butler.status())["modules"]
        for name in WITHOUT_CREDENTIALS & modules.keys():
            seen += 1
            expect_failed(butler, name, modules[name])

    assert seen, "no butler of the roster configures a module that needs credentials"


async def test_a_degraded_butler_keeps_its_tools(ecosystem: Ecosystem) -> None:
    """A butler with failed modules says so and still does everything that does not need them."""
    degraded = [
        butler
        for butler in ecosystem.butlers.values()
        if WITHOUT_CREDENTIALS & set(butler.config.modules)
    ]

    assert degraded, "no butler of the roster configures a module that needs credentials"
    for butler in degraded:
        assert "degraded" == (await butler.status())["health"], butler.name
        await butler.call("state_set", key="degraded-works", value={"butler": butler.name})
        await butler.database.expect_row(
            "state", where={"key": "degraded-works"}, columns={"value": {"butler": butler.name}}
        )


def expect_failed(butler: Butler, name: str, module: Mapping[str, Any]) -> None:
    """One module's entry in a status: how it failed, and why."""
    where = f"{butler.name}: module {name} is {dict(module)}"

    assert module["status"] in {"failed", "cascade_failed"}, where
    assert module["error"], f"{where}: no reason"
    if module["status"] == "failed":
        assert "credentials" == module["phase"], where
