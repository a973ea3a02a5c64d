"""INT-001: the stack boots from its compose file, and health reports it truthfully."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

import pytest
import trio

from harness_core.doubles.http import HttpClient
from harness_core.infrastructure.services import S3RefusedError
from harness_core.system.compose import Stack
from harness_core.system.parts import ServiceFailed, State
from suites.integration.comparing import expect_same
from suites.integration.health import payload, unwell
from suites.integration.patience import SOON_S, patience_with_a_stack
from suites.integration.shares import shares
from suites.integration.stack import SERVICES

#: Of the services that the contract names, those that answer /health.
HAVE_HEALTH = ("controller", "worker", "controller-worker")

#: What is taken away, and how; and who depends on it. What is paused hangs instead of refusing.
OUTAGES = (
    ("postgres", "stop"),
    ("minio", "kill"),
    ("worker", "stop"),
    ("temporal", "kill"),
    ("temporal", "pause"),
    ("minio", "pause"),
    ("postgres", "pause"),
)
DEPENDANTS = ("controller", "controller-worker")

#: A health check that hangs is none; how long it may wait for what hangs is the stack's own affair.
HEALTH_S = SOON_S

#: Who asks for health at one moment: balancers, orchestrators, and every service that depends on it.
PROBES = 16

#: How often they do: probes that trip over each other do not always.
ROUNDS = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What health is held to.

    Attributes:
        words: a product's name of a service → the contract's.
        depend: services that both dependants must name.
        well: who was asked → its word for a dependency that answers, once it was healthy.
    """

    words: Mapping[str, str]
    depend: set[str]
    well: dict[str, str] = dataclasses.field(default_factory=dict)

    def named(self, dependencies: Iterable[str]) -> set[str]:
        """Dependencies, by the contract's names where they are services."""
        return {self.words.get(name, name) for name in dependencies}


@pytest.fixture
def promised(subject) -> tuple[str, ...]:
    """The services of the contract that a product with these capabilities has."""
    return tuple(
        name for name, needed in SERVICES.items() if not needed or needed in subject.capabilities
    )


@pytest.fixture
def asking(breakable_stack: Stack, client_of, promised) -> dict[str, HttpClient]:
    """A client without a key for each service that answers /health, by its name."""
    return {
        name: client_of(breakable_stack, name).having(x_api_key=None)
        for name in HAVE_HEALTH
        if name in promised and name in breakable_stack
    }


@pytest.fixture
def health(breakable_stack: Stack, promised) -> Health:
    """What health is held to."""
    return Health(
        words={breakable_stack.called(name): name for name in promised},
        depend={name for name, _ in OUTAGES if name in promised},
    )


@pytest.mark.covers("INT-001")
@pytest.mark.integration_p0
@pytest.mark.starts_product
def test_int_001_the_stack_comes_up(request):
    """Every service of the compose file comes up; what does not is named, with its last words.

    The first test that needs the stack boots it; here a service that does not start is a failure.
    """
    try:
        stack = request.getfixturevalue("whole_stack")
    except ServiceFailed as failed:
        raise AssertionError(
            f"expected {failed.service or 'the stack'} to come up: {failed}"
        ) from failed

    missing = [name for name, needed in SERVICES.items() if not needed and name not in stack]
    assert not missing, f"services of the contract are missing, {missing}: found {stack.names}"
    words = {name: " ".join(stack.logs(name)[-5:]) for name in stack.names}
    wrong = {name: text for name, text in words.items() if "Traceback" in text}
    assert not wrong, f"services that came up with a crash in their logs: {wrong}"


@pytest.mark.covers("INT-001")
@pytest.mark.integration_p0
async def test_int_001_everything_serves(breakable_stack, asking, health, promised):
    """Every service runs, or has ended well, and serves; the database is at its head."""
    await everything_serves(breakable_stack, asking, health, promised)
    if "migrations" in promised:
        await migrations_had_been_applied(breakable_stack)


@pytest.mark.covers("INT-001")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_001_many_ask_at_once(asking, health):
    """Whoever asks a service for its health while others do is told the same."""
    for client in asking.values():
        for _ in range(ROUNDS):
            async with trio.open_nursery() as probing:
                for _ in range(PROBES):
                    probing.start_soon(is_healthy_to_many, client, health)


@pytest.mark.covers("INT-001")
@pytest.mark.integration_p0
@pytest.mark.slow
@pytest.mark.parametrize("share", shares(2))
async def test_int_001_health_tells_the_truth(share, breakable_stack, asking, health):
    """With one dependency away health says 503, and which one, to everyone; else it is healthy."""
    stack = breakable_stack
    for client in asking.values():
        await is_healthy(client, health, when="before anything is away")
    if {"minio", "temporal"} <= health.depend:
        async with stack.outage("minio", "kill"), stack.outage("temporal", "kill"):
            for name in DEPENDANTS:
                await misses_both(asking[name], {"minio", "temporal"}, health)
    for dependency, how in OUTAGES[share]:
        if dependency in health.depend:
            await is_missed(stack, asking, dependency, how, health)


async def is_missed(
    stack: Stack, asking: Mapping[str, HttpClient], dependency: str, how: str, health: Health
) -> None:
    """While it is away those that depend on it say so, and nobody else; afterwards nobody does."""
    async with stack.outage(dependency, how), trio.open_nursery() as probing:
        for name, client in asking.items():
            if name in DEPENDANTS:
                # As long as it is away, and to everyone: the second answer is no other.
                for _ in range(2):
                    probing.start_soon(misses, client, dependency, how, health)
            elif name != dependency:
                needs_not = f"though it needs no {dependency}"
                probing.start_soon(partial(is_healthy, client, health, when=needs_not))
    for client in asking.values():
        await is_healthy(client, health, when=f"once {dependency} is back from {how}")


async def everything_serves(
    stack: Stack, asking: Mapping[str, HttpClient], health: Health, promised: Collection[str]
) -> None:
    """The stack has the contract's services; each runs or has ended well, and says so."""
    states = await stack.states()
    missing = [name for name in promised if stack.called(name) not in states]
    assert not missing, f"services of the contract are missing, {missing}: found {states}"
    once = stack.called("migrations")
    wrong = {
        name: str(state)
        for name, state in states.items()
        if state is not (State.COMPLETED if name == once else State.RUNNING)
    }
    assert not wrong, f"services that did not come up as they should: {wrong}"
    unhealthy = await stack.unhealthy()
    assert not unhealthy, f"expected every service to serve, found {unhealthy}"
    for client in asking.values():
        await is_healthy(client, health, when="after boot")
    if "minio" not in promised:
        return
    # Tests before this one may have left objects; what counts is that the bucket is there.
    try:
        await stack.objects()
    except S3RefusedError as refused:
        raise AssertionError(f"the bucket of the stack is not there: {refused}") from refused


async def is_healthy(client: HttpClient, health: Health, *, when: str) -> None:
    """200, healthy, and every dependency named as answering."""
    answer = await client.get("/health", seconds=patience_with_a_stack(HEALTH_S))

    assert answer.status == 200, f"expected a healthy {client.name} {when}, found {answer}"
    body = payload(answer)
    assert body["status"] == "healthy", f"200 and not healthy, {when}: {answer}"
    assert body["dependencies"], f"it names no dependency: {answer}"
    if client.name in DEPENDANTS:
        unnamed = health.depend - health.named(body["dependencies"])
        assert not unnamed, f"expected {client.name} to check {unnamed} as well, found {answer}"
    odd = unwell(body)
    assert not odd, f"expected every dependency in one state {when}, found {odd}: {answer}"
    health.well[client.name] = next(iter(body["dependencies"].values()))


async def is_healthy_to_many(client: HttpClient, health: Health) -> None:
    """One of several who ask at once."""
    await is_healthy(client, health, when=f"to {PROBES} who ask at once")


async def misses(client: HttpClient, dependency: str, how: str, health: Health) -> None:
    """503, unhealthy, naming the one that is away and no other."""
    before = (await client.having(x_api_key=None).get("/openapi.json")).status
    answer = await client.get("/health", seconds=patience_with_a_stack(HEALTH_S))
    what = f"{client.name} without {dependency} ({how})"

    assert before == 200, f"{what} serves nothing at all"
    assert answer.status == 503, f"{what}: expected 503 from /health, found {answer}"
    body = payload(answer)
    assert body["status"] == "unhealthy", f"{what} answers 503 and calls itself {body['status']}"
    assert health.named(unwell(body, well=health.well[client.name])) == {dependency}, (
        f"{what}: expected it to name {dependency} alone, found {answer}"
    )


async def misses_both(client: HttpClient, away: set[str], health: Health) -> None:
    """503 naming each that is away, and the state of all others as well."""
    answer = await client.get("/health", seconds=patience_with_a_stack(HEALTH_S))
    assert answer.status == 503, f"{client.name} without {away}: expected 503, found {answer}"
    body = payload(answer)
    found = health.named(unwell(body, well=health.well[client.name]))
    assert found == away, f"{client.name}: expected it to name {away}, found {answer}"
    unnamed = health.depend - health.named(body["dependencies"])
    assert not unnamed, f"{client.name} without {away} says nothing of {unnamed}: {answer}"


async def migrations_had_been_applied(stack: Stack) -> None:
    """Running the one-shot again ends well and changes nothing: the database was at its head."""
    tables = (
        "select table_name from information_schema.tables where table_schema = 'public'"
        " order by table_name"
    )
    before = (await stack.rows(tables), await versions(stack))

    assert before[0], "the database has no table"
    await stack.restart("migrations")
    state = (await stack.states())[stack.called("migrations")]
    assert state is State.COMPLETED, f"expected the second migration to end well, found {state}"
    after = (await stack.rows(tables), await versions(stack))
    expect_same(before, after, what="tables and migrations before and after the second migration")


async def versions(stack: Stack) -> list[dict[str, Any]]:
    """Which migrations the database says it has, where it keeps them as alembic does."""
    found = await stack.rows("select to_regclass('public.alembic_version') is not null as here")
    return await stack.rows("select * from alembic_version") if found[0]["here"] else []
