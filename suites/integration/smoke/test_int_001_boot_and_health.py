"""INT-001: the stack boots from its compose file, and health reports it truthfully."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient
from harness_core.infrastructure.services import S3RefusedError
from harness_core.system.compose import Stack
from harness_core.system.parts import State
from suites.integration.health import payload, unwell

#: The services that the contract names, and whether they answer /health.
SERVICES = {
    "controller": True,
    "worker": True,
    "controller-worker": True,
    "migrations": False,
    "postgres": False,
    "minio": False,
    "temporal": False,
}

#: What is taken away, and how; and who depends on it. The last one hangs instead of refusing.
OUTAGES = (
    ("postgres", "stop"),
    ("minio", "kill"),
    ("worker", "stop"),
    ("temporal", "kill"),
    ("temporal", "pause"),
)
DEPENDANTS = ("controller", "controller-worker")

#: A probe of an orchestrator gives up after some seconds; a health check that hangs is none. The
#: stack's own timeouts are as many times longer on a busy machine.
HEALTH_S = 10.0

#: Who asks for health at one moment: balancers, orchestrators, and every service that depends on it.
PROBES = 16

#: How often they do: probes that trip over each other do not always.
ROUNDS = 6


@pytest.mark.covers("INT-001")
@pytest.mark.integration_p0
async def test_int_001_the_stack_boots_and_health_tells_the_truth(breakable_stack, client_of):
    """Every service serves; with one dependency away health says 503, which one, and only then."""
    stack = breakable_stack
    asking = {
        name: client_of(stack, name).having(x_api_key=None)
        for name, has_health in SERVICES.items()
        if has_health
    }
    await everything_serves(stack, asking)
    await migrations_had_been_applied(stack)
    for dependency, how in OUTAGES:
        async with stack.outage(dependency, how):
            for name, client in asking.items():
                if name in DEPENDANTS:
                    await misses(client, dependency, how)
                elif name != dependency:
                    await is_healthy(client, when=f"though it needs no {dependency}")
        for name, client in asking.items():
            await is_healthy(client, when=f"once {dependency} is back, {name} included")


async def everything_serves(stack: Stack, asking: Mapping[str, HttpClient]) -> None:
    """The stack has the contract's services; each runs or has ended well, and says so."""
    states = await stack.states()
    assert set(SERVICES) <= set(states), f"services of the contract are missing: {states}"
    wrong = {
        name: str(state)
        for name, state in states.items()
        if state is not (State.COMPLETED if name == "migrations" else State.RUNNING)
    }
    assert wrong == {}, "services that did not come up as they should"
    assert await stack.unhealthy() == {}, "services that do not serve"
    for client in asking.values():
        await is_healthy(client, when="after boot")
        for _ in range(ROUNDS):
            async with trio.open_nursery() as probing:
                for _ in range(PROBES):
                    probing.start_soon(is_healthy_to_many, client)
    # Tests before this one may have left objects; what counts is that the bucket is there.
    try:
        await stack.objects()
    except S3RefusedError as refused:
        raise AssertionError(f"the bucket of the stack is not there: {refused}") from refused


async def is_healthy(client: HttpClient, *, when: str) -> None:
    """200, healthy, and every dependency named as answering."""
    answer = await client.get("/health", seconds=patience(HEALTH_S))

    assert answer.status == 200, f"expected a healthy {client.name} {when}, found {answer}"
    body = payload(answer)
    assert body["status"] == "healthy", f"200 and not healthy, {when}: {answer}"
    assert body["dependencies"], f"it names no dependency: {answer}"
    if client.name in DEPENDANTS:
        unnamed = {name for name, _ in OUTAGES} - set(body["dependencies"])
        assert unnamed == set(), f"dependencies that {client.name} does not check: {answer}"


async def is_healthy_to_many(client: HttpClient) -> None:
    """One of several who ask at once."""
    await is_healthy(client, when=f"to {PROBES} who ask at once")


async def misses(client: HttpClient, dependency: str, how: str) -> None:
    """503, unhealthy, naming the one that is away and no other."""
    before = (await client.get("/openapi.json")).status if client.name == "controller" else 200
    answer = await client.get("/health", seconds=patience(HEALTH_S))
    what = f"{client.name} without {dependency} ({how})"

    assert before == 200, f"{what} serves nothing at all"
    assert answer.status == 503, f"{what}: expected 503 from /health, found {answer}"
    body = payload(answer)
    assert body["status"] == "unhealthy", f"{what} answers 503 and calls itself {body['status']}"
    assert unwell(body) == {dependency}, (
        f"{what}: expected it to name {dependency} alone, found {answer}"
    )


async def migrations_had_been_applied(stack: Stack) -> None:
    """Running the one-shot again ends well and changes nothing: the database was at its head."""
    tables = "select table_name from information_schema.tables where table_schema = 'public'"
    before = (await stack.rows(tables), await versions(stack))

    assert before[0], "the database has no table"
    await stack.restart("migrations")
    assert (await stack.states())["migrations"] is State.COMPLETED
    assert before == (await stack.rows(tables), await versions(stack)), "it was not at its head"


async def versions(stack: Stack) -> list[dict[str, Any]]:
    """Which migrations the database says it has, where it keeps them as alembic does."""
    found = await stack.rows("select to_regclass('public.alembic_version') is not null as here")
    return await stack.rows("select * from alembic_version") if found[0]["here"] else []
