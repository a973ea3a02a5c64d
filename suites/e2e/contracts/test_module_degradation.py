"""Modules without credentials fail in the open and take no butler down (E2E-DEGRADATION).

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: a real service
does not refuse its credentials on request.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from harness_core.doubles.http import Answer, Rule
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.worlds.credentialed import Connected, variables_of

pytestmark = [pytest.mark.covers("E2E-DEGRADATION"), pytest.mark.capability("modules")]


#: Modules whose credentials this harness never provides.
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


async def test_modules_with_credentials_are_active(connected: Connected) -> None:
    """Where the services accept the credentials, every module is active and its butler healthy."""
    seen = 0
    for butler in connected.butlers.butlers.values():
        if butler.name == "heartbeat":
            continue  # it has no modules, and its clock is stopped
        status = await butler.status()

        assert "ok" == status["health"], f"{butler.name}: {status}"
        for name, module in status["modules"].items():
            seen += 1

            assert "active" == module["status"], f"{butler.name}: {name} is {module}"
            assert not module["error"], f"{butler.name}: {name} is {module}"

    assert seen, "no butler of the roster configures a module"


@pytest.mark.slow
@pytest.mark.disturbs
async def test_refused_credentials_are_no_credentials(connected: Connected) -> None:
    """A module whose service refuses its token is failed for its credentials; the others work."""
    messenger = connected.butlers["messenger"]
    refused = Rule(path="/bot*", answer=Answer(status=401, json={"ok": False, "error_code": 401}))
    connected.telegram.add_rule(refused)
    try:
        await messenger.restart()
        status = await messenger.status()
    finally:
        connected.telegram.remove_rule(refused)
        await messenger.restart()

    assert "degraded" == status["health"], f"a butler with a failed module is degraded\n{status}"
    assert "failed" == status["modules"]["telegram"]["status"], (
        f"a module whose token is refused is failed\n{status}"
    )
    expect_failed(messenger, "telegram", status["modules"]["telegram"])
    assert "active" == status["modules"]["email"]["status"], (
        f"a module whose credentials are accepted is active\n{status}"
    )
    assert "ok" == (await messenger.status())["health"], (
        "with accepted credentials the messenger is ok again"
    )


@pytest.mark.disturbs
async def test_what_depends_on_a_failed_module_fails_in_cascade(connected: Connected) -> None:
    """Without the mail account, the calendar that depends on it is cascade_failed, telegram active."""
    relationship = connected.butlers["relationship"]
    dependent = depends_on(relationship)
    if "email" not in dependent.get("calendar", ()):
        not_run("subject", "the roster's relationship has no calendar that depends on email")
    before = dict(relationship.environment)
    for variable in variables_of(connected.butlers.subject, "email"):
        relationship.environment.pop(variable, None)
    try:
        await relationship.restart()
        status = await relationship.status()
    finally:
        relationship.environment.update(before)
        await relationship.restart()
    modules = status["modules"]

    assert "degraded" == status["health"], f"a butler with a failed module is degraded\n{status}"
    assert ("failed", "credentials") == (modules["email"]["status"], modules["email"]["phase"]), (
        f"without credentials email is failed in that phase; found {modules['email']}"
    )
    assert "cascade_failed" == modules["calendar"]["status"], (
        f"what depends on a failed module is cascade_failed\n{modules}"
    )
    assert "email" in modules["calendar"]["error"], (
        f"the reason names the module that failed\n{modules}"
    )
    assert "active" == modules["telegram"]["status"], (
        f"what depends on no failed module is active\n{modules}"
    )
    assert "ok" == (await relationship.status())["health"], (
        "with its credentials back the butler is ok again"
    )


async def test_a_degraded_butler_keeps_its_tools(ecosystem: Ecosystem) -> None:
    """A butler with failed modules says so and still does everything that does not need them."""
    degraded = [
        butler
        for butler in ecosystem.butlers.values()
        if WITHOUT_CREDENTIALS & set(butler.config.modules)
    ]

    assert degraded, "no butler of the roster configures a module that needs credentials"
    for butler in degraded:
        assert "degraded" == (await butler.status())["health"], (
            f"a butler with a failed module is degraded\n{butler.name}"
        )
        await butler.call("state_set", key="degraded-works", value={"butler": butler.name})
        await butler.database.expect_row(
            "state", where={"key": "degraded-works"}, columns={"value": {"butler": butler.name}}
        )


def depends_on(butler: Butler) -> Mapping[str, list[str]]:
    """Module → the modules it depends on, as the butler's file says."""
    content = tomllib.loads((butler.config.directory / "butler.toml").read_text(encoding="utf-8"))
    return {name: list(table.get("depends_on", [])) for name, table in content["modules"].items()}


def expect_failed(butler: Butler, name: str, module: Mapping[str, Any]) -> None:
    """One module's entry in a status: how it failed, and why."""
    where = f"{butler.name}: module {name} is {dict(module)}"

    assert module["status"] in {"failed", "cascade_failed"}, (
        f"a module without credentials has failed\n{where}"
    )
    assert module["error"], f"{where}: no reason"
    if module["status"] == "failed":
        assert "credentials" == module["phase"], f"it has failed for its credentials\n{where}"
