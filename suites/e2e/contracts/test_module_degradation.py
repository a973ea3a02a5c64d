"""Modules without credentials fail in the open and take no butler down (E2E-DEGRADATION).

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: a real service
does not refuse its credentials on request.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.base.errors import ChildExited
from harness_core.doubles.http import Answer, Rule
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.worlds.beside import open_beside
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.credentialed import Connected, variables_of

pytestmark = [pytest.mark.covers("E2E-DEGRADATION"), pytest.mark.capability("modules")]


#: From the command line to a butler that serves, or that has given up.
START_S: Final = 60.0

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


@pytest.mark.slow
@pytest.mark.disturbs
@pytest.mark.parametrize("status", [500, 429])
async def test_a_service_in_trouble_fails_its_module_alone(
    connected: Connected, status: int
) -> None:
    """A butler whose service is in trouble at its start serves without that module, and says so."""
    messenger = connected.butlers["messenger"]
    trouble = Rule(path="/bot*", answer=Answer(status=status, json={"ok": False}))
    connected.telegram.add_rule(trouble)
    try:
        await messenger.restart()
        found = await messenger.status()
        refused = await messenger.try_call(
            "notify", {"channel": "telegram", "message": "is anybody there?"}
        )
    except ChildExited as error:
        raise AssertionError(
            f"a module that cannot start degrades its butler, which starts all the same: {error}"
        ) from error
    finally:
        connected.telegram.remove_rule(trouble)
        await messenger.restart()
    telegram = found["modules"]["telegram"]

    assert (found["health"] == "ok") == (telegram["status"] == "active"), (
        f"a butler is ok when its modules are: with a service that answers {status} found {dict(found)}"
    )
    if telegram["status"] != "active":
        assert telegram["phase"], f"it is said in which phase a module has failed: found {telegram}"
        assert telegram["error"], f"it is said why a module has failed: found {telegram}"
    assert "active" == found["modules"]["email"]["status"], (
        f"a module whose service is well is active: found {dict(found)}"
    )
    assert refused.is_error, (
        f"a service that answers {status} has sent nothing, expected a refusal: found {refused.text}"
    )
    assert "ok" == (await messenger.status())["health"], (
        "started again with the service well, the messenger is ok"
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


#: Chains of three that no order but the topological one gets right both: not the one of the names, nor
#: that of the file, nor how many each needs. Module → what it depends on.
CHAINS: Final[tuple[Mapping[str, Sequence[str]], ...]] = (
    {"calendar": ["email"], "email": ["telegram"], "telegram": []},
    {"telegram": ["email"], "email": ["calendar"], "calendar": []},
)


@pytest.mark.disturbs
async def test_modules_start_after_those_they_depend_on(
    connected: Connected, tmp_path: Path
) -> None:
    """In a chain of three, with credentials, all are active; without the first, the rest cascade.

    A chain without a first one is a mistake in the file: the butler says so, and does not start. One
    that begins with a module that is not configured fails like one whose first has failed, or is refused.
    """
    relationship = connected.butlers["relationship"]
    folder = tmp_path / "relationship"
    shutil.copytree(relationship.config.directory, folder)
    other = dataclasses.replace(relationship, command=relocated(relationship, folder))
    file = folder / "butler.toml"
    head = file.read_text(encoding="utf-8").partition("[modules.")[0]
    await relationship.stop()
    try:
        for chain in CHAINS:
            file.write_text(head + tables(chain), encoding="utf-8")
            async with open_beside(other) as process:
                status = await served(relationship, process)
            found = {name: module["status"] for name, module in status["modules"].items()}

            assert found == dict.fromkeys(chain, "active"), (
                f"modules start after those they depend on: with the credentials of all and "
                f"{dict(chain)} all are active, found {status['modules']}"
            )
            assert status["health"] == "ok", f"all modules are active, and {status['health']!r}"
        last, middle, first = chain
        without = dict.fromkeys(variables_of(connected.butlers.subject, first), "")
        async with open_beside(other, environment=without) as process:
            status = await served(relationship, process)
        found = {name: module["status"] for name, module in status["modules"].items()}

        assert found == {first: "failed", middle: "cascade_failed", last: "cascade_failed"}, (
            f"what depends on a failed module is cascade_failed, over all steps of {dict(chain)}: "
            f"found {status['modules']}"
        )
        file.write_text(head + tables({**chain, first: [last]}), encoding="utf-8")
        returncode, output = await other.attempt(seconds=START_S)
        file.write_text(head + tables({last: [middle], first: []}), encoding="utf-8")
        await expect_nothing_depends_on_nobody(relationship, other, depending=last, lacking=middle)
    finally:
        await relationship.start()

    assert returncode != 0, (
        f"modules that depend on each other in a circle cannot be resolved, and a butler with such "
        f"modules ended as if all were well\n{output}"
    )
    assert "Traceback" not in output, f"a mistake of the operator is a traceback\n{output}"


async def expect_nothing_depends_on_nobody(
    butler: Butler, other: Butler, *, depending: str, lacking: str
) -> None:
    """What depends on a module that its file does not configure is not active, and the butler not ok.

    Or the file is refused: it names a module that is not there.
    """
    async with open_beside(other) as process:

        async def answer() -> Mapping[str, Any] | str | None:
            with suppress(CannotReach):
                return await butler.status()
            return None if process.returncode is None else process.log.read_text(encoding="utf-8")

        found = await expect_soon(
            f"{butler.name} serves, or refuses its file", answer, seconds=START_S
        )
    if isinstance(found, str):
        assert lacking in found, f"the error names {lacking}, which is not there\n{found}"
        return
    modules = found["modules"]

    assert modules[depending]["status"] in {"failed", "cascade_failed"}, (
        f"{depending} depends on {lacking}, which is not configured, and is {modules[depending]}"
    )
    assert found["health"] == "degraded", (
        f"a butler with a module that has failed, for whatever reason, is degraded\n{dict(found)}"
    )


def relocated(butler: Butler, folder: Path) -> list[str]:
    """The command line that starts a butler from another folder."""
    own = str(butler.config.directory)
    if own not in butler.command:
        not_run("subject", "its command line does not name the folder of a butler")
    return [str(folder) if word == own else word for word in butler.command]


def tables(chain: Mapping[str, Sequence[str]]) -> str:
    """The tables of modules in a ``butler.toml``."""
    return "".join(
        f"[modules.{name}]\ndepends_on = {json.dumps(list(needed))}\n"
        for name, needed in chain.items()
    )


async def served(butler: Butler, process: Any) -> Mapping[str, Any]:
    """The status of a butler whose process was just started beside its own, or instead of it."""

    async def answer() -> Mapping[str, Any] | None:
        assert process.returncode is None, (
            f"{butler.name} ended with {process.returncode} instead of serving\n{process.tail()}"
        )
        with suppress(CannotReach):
            return await butler.status()
        return None

    return await expect_soon(f"{butler.name} serves", answer, seconds=START_S, story=process.tail())


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
