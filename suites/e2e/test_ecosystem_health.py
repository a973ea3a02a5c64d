"""The infrastructure of a running ecosystem, judged exactly: ports, tables, heads, registry, modules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

import pytest

from harness_core.front.skips import not_run
from harness_core.infrastructure.databases import MigrationChain
from harness_core.ports import listeners
from harness_core.process import descendants
from harness_core.system.parts import ServiceFailed, State
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.subject_file import Migrations, tables_of
from suites.e2e.observe.expect_journey import words_of
from suites.e2e.observe.journey import as_data
from suites.e2e.worlds.credentialed import Connected

pytestmark = [pytest.mark.main, pytest.mark.covers("E2E-PROVISIONING")]

#: Columns of the core tables, in every butler's database (contract, "Database").
CORE_TABLES: Final[Mapping[str, frozenset[str]]] = {
    "state": frozenset({"key", "value", "updated_at"}),
    "scheduled_tasks": frozenset(
        [
            "id",
            "name",
            "cron",
            "prompt",
            "source",
            "enabled",
            "next_run_at",
            "last_run_at",
            "last_result",
        ]
    ),
    "sessions": frozenset(
        [
            "id",
            "prompt",
            "trigger_source",
            "result",
            "tool_calls",
            "duration_ms",
            "trace_id",
            "cost",
            "started_at",
            "completed_at",
            "success",
            "error",
            "model",
            "input_tokens",
            "output_tokens",
            "request_id",
        ]
    ),
}

SWITCHBOARD_TABLES: Final[Mapping[str, frozenset[str]]] = {
    "butler_registry": frozenset(
        ["name", "endpoint_url", "description", "capabilities", "eligibility_state", "last_seen_at"]
    ),
    "message_inbox": frozenset(
        [
            "request_id",
            "channel",
            "payload",
            "normalized_text",
            "lifecycle_state",
            "decomposition",
            "dispatch_outcomes",
            "response_summary",
        ]
    ),
    "routing_log": frozenset(
        [
            "source_butler",
            "target_butler",
            "tool_name",
            "success",
            "duration_ms",
            "error",
            "error_class",
            "created_at",
        ]
    ),
}

#: The least a butler of this name keeps (contract, roster to ship).
DOMAIN_TABLES: Final[Mapping[str, frozenset[str]]] = {
    "health": frozenset({"measurements", "symptoms", "medications", "meals"}),
    "relationship": frozenset({"contacts", "notes", "reminders", "important_dates"}),
    "general": frozenset({"entities", "collections"}),
    "messenger": frozenset({"delivery_requests", "delivery_attempts", "delivery_receipts"}),
}

#: Capability → the tools that come with it; of every butler.
CORE_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        [
            *("status", "trigger", "state_get", "state_set", "state_delete", "state_list"),
            *("sessions_list", "sessions_get", "sessions_summary"),
        ]
    ),
    "route.v1": frozenset(["route.execute"]),
    "schedules": frozenset(
        ["tick", "schedule_list", "schedule_create", "schedule_update", "schedule_delete"]
    ),
    "notify": frozenset(["notify"]),
}


#: Parts of the ecosystem that are the harness's own.
OURS: Final = frozenset({"postgres", "gateway", "otlp"})


def each_butler(ecosystem: Ecosystem) -> list[Butler]:
    """The butlers that were booted; never none, so that no loop below passes by being empty."""
    butlers = list(ecosystem.butlers.values())
    assert len(butlers) >= 2, f"the ecosystem has {len(butlers)} butlers"
    return butlers


async def table_names(butler: Butler) -> set[str]:
    """The tables of a butler's database."""
    rows = await butler.database.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    return {str(row["table_name"]) for row in rows}


@pytest.mark.starts_product
def test_the_ecosystem_comes_up(request: pytest.FixtureRequest) -> None:
    """Every butler of the roster comes up; one that does not is named, with its last words.

    The first test that needs the ecosystem boots it; here a butler that does not start is a failure.
    """
    with comes_up():
        ecosystem: Ecosystem = request.getfixturevalue("butler_ecosystem")

    states = {name: str(butler.process.state) for name, butler in ecosystem.butlers.items()}
    assert set(states.values()) == {State.RUNNING}, f"a butler that came up runs: found {states}"


@pytest.mark.starts_product
@pytest.mark.capability("modules")
def test_it_comes_up_with_credentials_too(request: pytest.FixtureRequest) -> None:
    """With credentials for every module the butlers that have them come up as well."""
    with comes_up():
        connected: Connected = request.getfixturevalue("connected")

    # The heartbeat is started by tests that are about it.
    butlers = [each for each in connected.butlers.butlers.values() if each.name != "heartbeat"]
    states = {each.name: str(each.process.state) for each in butlers}
    assert set(states.values()) == {State.RUNNING}, f"a butler that came up runs: found {states}"


@contextmanager
def comes_up() -> Iterator[None]:
    """A butler that does not start in this block is a failure; what is the harness's own is not."""
    try:
        yield
    except ServiceFailed as failed:
        if failed.service in OURS:
            raise
        raise AssertionError(
            f"expected every butler to come up, {failed.service} did not: {failed}"
        ) from failed


@pytest.mark.covers("E2E-MCP")
async def test_every_butler_alone_listens_on_its_port(ecosystem: Ecosystem) -> None:
    """Each port has exactly one listener: the butler's own process or, where that is a wrapper, one below it."""
    for butler in each_butler(ecosystem):
        found = listeners(port=butler.port)
        own = {butler.pid, *descendants(butler.pid)}

        assert len({entry.pid for entry in found}) == 1, (
            f"the port of {butler.name} is held by one process, found {found}"
        )
        assert {entry.pid for entry in found} <= own, (
            f"the port of {butler.name} is held by its process {butler.pid} alone, found {found}"
        )
        if "loopback" in ecosystem.subject.capabilities:
            assert all(entry.loopback for entry in found), f"{butler.name} listens beyond loopback"


@pytest.mark.covers("E2E-LOOPBACK")
@pytest.mark.capability("loopback")
async def test_no_process_of_the_ecosystem_listens_beyond_loopback(ecosystem: Ecosystem) -> None:
    """Nothing a butler started opens a port to the world."""
    butlers = each_butler(ecosystem)
    sessions = {os.getsid(butler.pid) for butler in butlers}
    # What left the session of its butler is still a descendant of it.
    below = {pid for butler in butlers for pid in (butler.pid, *descendants(butler.pid))}
    found = [
        entry
        for entry in listeners()
        if entry.pid and (entry.pid in below or _session(entry.pid) in sessions)
    ]
    unseen = {butler.port for butler in butlers} - {entry.port for entry in found}

    assert not unseen, f"no process of the ecosystem listens on {sorted(unseen)}"
    beyond = [entry for entry in found if not entry.loopback]

    assert not beyond, f"processes of the ecosystem listen beyond loopback: {beyond}"


async def test_every_database_has_the_core_tables(ecosystem: Ecosystem) -> None:
    """Every database has the contract's tables with the contract's columns, as it is read."""
    for butler in each_butler(ecosystem):
        for table, columns in CORE_TABLES.items():
            if table == "scheduled_tasks" and "schedules" not in ecosystem.subject.capabilities:
                continue
            await butler.database.expect_columns(table, columns)


async def test_the_switchboard_has_its_own_tables(ecosystem: Ecosystem) -> None:
    """Registry, inbox and routing log live in the switchboard's database, and only there."""
    for table, columns in SWITCHBOARD_TABLES.items():
        await ecosystem.switchboard.database.expect_columns(table, columns)
        for butler in each_butler(ecosystem):
            if butler.name != "switchboard":
                assert table not in await table_names(butler), f"{butler.name} has {table}"


@pytest.mark.capability("domain")
@pytest.mark.parametrize("name", sorted(DOMAIN_TABLES))
async def test_domain_tables_live_with_their_butler(ecosystem: Ecosystem, name: str) -> None:
    """A butler's own migrations made its tables in its own database, and in no other."""
    if name not in ecosystem.butlers:
        not_run("subject", f"the roster has no butler {name!r}")
    await ecosystem[name].database.expect_table(*sorted(DOMAIN_TABLES[name]))
    for butler in each_butler(ecosystem):
        if butler.name != name:
            strangers = DOMAIN_TABLES[name] & await table_names(butler)

            assert not strangers, f"{butler.name} has tables of {name}: {sorted(strangers)}"


async def test_every_migration_chain_is_at_its_head(ecosystem: Ecosystem) -> None:
    """The heads computed from the migration files are the versions in the databases."""
    rows = tables_of(ecosystem.subject).migrations
    if not rows:
        not_run("subject", "the subject file declares no migration chains ([[migrations]])")
    checked = 0
    for row in rows:
        for butler in each_butler(ecosystem):
            chain = _chain(ecosystem, butler, row)
            if chain is not None:
                await butler.database.expect_migration_head(chain)
                checked += 1

    assert checked >= len(ecosystem.butlers), f"only {checked} chains were checked"


@pytest.mark.covers("E2E-REGISTRY")
@pytest.mark.capability("registers-at-boot")
async def test_every_butler_registers_by_itself(ecosystem: Ecosystem) -> None:
    """Once all of them serve, the registry lists them soon: nobody has to tell it."""
    assert not ecosystem.unregistered, (
        f"every butler that serves registers; a quarter of a minute later the registry did not list "
        f"{', '.join(ecosystem.unregistered)}"
    )


@pytest.mark.covers("E2E-REGISTRY")
async def test_the_registry_equals_the_running_set(ecosystem: Ecosystem) -> None:
    """The registry lists exactly the butlers that run, active, at the ports they listen on."""
    rows = await ecosystem.switchboard.database.rows(
        "SELECT name, endpoint_url, description, capabilities, eligibility_state"
        " FROM butler_registry"
    )
    running = {butler.name for butler in each_butler(ecosystem)}
    listed = {str(row["name"]) for row in rows}

    # Whether a switchboard lists itself is its own affair.
    assert listed - {"switchboard"} == running - {"switchboard"}, (
        f"the registry lists those that run, {sorted(running)}, found {sorted(listed)}"
    )
    for row in rows:
        butler = ecosystem[str(row["name"])]

        endpoint = urlsplit(str(row["endpoint_url"]))

        # Where tools are called otherwise than over MCP, butlers may reach each other elsewhere.
        if tables_of(ecosystem.subject).tools.transport == "mcp":
            assert butler.port == endpoint.port, (
                f"{butler.name} is registered at {endpoint.geturl()}"
            )
        assert endpoint.hostname in {"127.0.0.1", "localhost"}, (
            f"{butler.name} is registered at {endpoint.geturl()}, which is not this machine"
        )
        assert str(row["eligibility_state"]) == "active", (
            f"{butler.name} runs, and is {row['eligibility_state']!r} in the registry"
        )
        assert str(row["description"]) == butler.config.description, (
            f"{butler.name} is described as {row['description']!r}, expected what its file says"
        )
        shown = set(words_of(as_data(row["capabilities"])))

        assert set(butler.config.capabilities) <= shown, (
            f"{butler.name} can do {sorted(butler.config.capabilities)}, the registry has "
            f"{sorted(shown)}"
        )


@pytest.mark.covers("E2E-DEGRADATION")
async def test_every_butler_tells_its_own_status(ecosystem: Ecosystem) -> None:
    """Status names the butler and exactly its configured modules, and health agrees with them."""
    for butler in each_butler(ecosystem):
        status = await butler.status()

        assert status["name"] == butler.name, f"{butler.name} calls itself {status['name']!r}"
        assert set(status["modules"]) == set(butler.config.modules), (
            f"{butler.name} has the modules {sorted(butler.config.modules)}, found {status}"
        )
        failed = {
            name for name, module in status["modules"].items() if module["status"] != "active"
        }

        assert status["health"] == ("degraded" if failed else "ok"), (
            f"{butler.name} with the failed modules {sorted(failed)} says {status}"
        )


@pytest.mark.covers("E2E-MCP")
async def test_every_butler_offers_the_core_tools(ecosystem: Ecosystem) -> None:
    """The core tools are on every butler, ``ingest`` on the switchboard alone."""
    claimed = {"", *ecosystem.subject.capabilities}
    core = {tool for name, tools in CORE_TOOLS.items() if name in claimed for tool in tools}
    for butler in each_butler(ecosystem):
        tools = set(await butler.tools())

        assert tools >= core, f"{butler.name} lacks {sorted(core - tools)}"
        assert ("ingest" in tools) == (butler.name == "switchboard"), (
            f"ingest is the switchboard's alone, and {butler.name} offers {sorted(tools)}"
        )


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _chain(ecosystem: Ecosystem, butler: Butler, row: Migrations) -> MigrationChain | None:
    """The chain a ``[[migrations]]`` row means for a butler; ``None`` when it has none of its own."""
    path = row.path.replace("{butler_dir}", str(butler.config.directory))
    directory = ecosystem.subject.resolve(path)
    if not directory.is_dir():
        return None
    table = row.version_table.replace("{name}", butler.name)
    return MigrationChain(name=f"{butler.name}: {path}", directory=directory, version_table=table)
