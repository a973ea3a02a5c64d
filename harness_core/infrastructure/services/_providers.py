"""Who provides a server: this machine, a container engine, or its owner; the same way for every kind."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness_core.base.bridge import this_loop
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.infrastructure.services._as_child import open_child_server
from harness_core.infrastructure.services._handle import ServiceHandle
from harness_core.infrastructure.services._in_container import open_container_server
from harness_core.infrastructure.services._recipe import Recipe
from harness_core.infrastructure.services._service import Place, Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

H = TypeVar("H", bound=ServiceHandle)

_PROVIDERS: Final = ("container", "external", "local")


def check_provider(
    opener: str, provider: str, *, key: str, given: str | None, shown: str, expected: str
) -> None:
    """Refuse a choice of a provider that cannot be.

    Args:
        opener: name of the function that was called.
        provider: what was chosen.
        key: argument that locates an external server.
        given: its value.
        shown: what to call that; it may hold a secret.
        expected: what it is like.

    Raises:
        BadInput: no such provider; or an external server without its place, or the other way round.
    """
    if provider not in _PROVIDERS:
        expected = f"one of {', '.join(_PROVIDERS)}"
        raise BadInput(opener, key="provider", found=provider, expected=expected)
    if provider == "external" and not given:
        raise BadInput(opener, key=key, found=given, expected=expected)
    if provider != "external" and given is not None:
        raise BadInput(opener, key=key, found=shown, expected=none_with(provider))


def external_address(kind: str, *, variable: str) -> str:
    """Where an external server is, by the environment: on a command line its keys could be read.

    Args:
        kind: which server, for the error.
        variable: holds its URL or address.

    Raises:
        Unavailable: the variable is not set.
    """
    if not (given := os.environ.get(variable, "")):
        raise Unavailable(
            f"use an external {kind}",
            observed=f"{variable} is not set",
            next_step="Set it, or run with --services local",
        )
    return given


def none_with(provider: str) -> str:
    """What is expected of an argument about an external server."""
    return f"none with the provider {provider}, which starts a server of its own"


@asynccontextmanager
async def open_service(
    run: Run,
    recipe: Recipe,
    handle: Callable[[Service], H],
    *,
    provider: str,
    evidence: Evidence,
    say: Say,
) -> AsyncIterator[H]:
    """Open a server by one of the providers; the choice has been checked.

    Args:
        run: what it belongs to.
        recipe: which server.
        handle: what its users get, given the server; usable in any event loop.
        provider: ``local``, ``container`` or ``external``.
        evidence: directory for its log.
        say: gets a line for what takes long.

    Raises:
        Unavailable: the provider cannot work here, or the external server does not answer.
        ChildExited: the server ended while it started.
        NotReady: it did not serve in time.
    """
    opening: AbstractAsyncContextManager[Service]
    match provider:
        case "external":
            opening = _open_external(recipe)
        case "container":
            opening = open_container_server(run, recipe, evidence=evidence, say=say)
        case _:
            opening = open_child_server(run, recipe, evidence=evidence)
    async with opening as server, this_loop(recipe.name) as loop:
        made = handle(server)
        made._loop = loop  # noqa: SLF001 - the other half of its class
        yield made


@asynccontextmanager
async def _open_external(recipe: Recipe) -> AsyncIterator[Service]:
    if observed := await recipe.readiness.check(recipe.external):
        raise Unavailable(
            f"reach the external {recipe.name} on {recipe.external}",
            observed=observed,
            next_step="Start it, or correct its address, or run with --services local",
        )
    yield ExternalServer(name=recipe.name, address=recipe.external)


def _refused(verb: str) -> Callable[[ExternalServer], Coroutine[Any, Any, None]]:
    async def refuse(self: ExternalServer) -> None:
        raise Unavailable(
            f"{verb} {self.name} on {self.address}",
            observed="it is an external server, which the harness only connects to",
            next_step="Run with --services local to test outages",
        )

    return refuse


class ExternalServer:
    """A server that others look after and may use: never taken away.

    Attributes:
        name: kind of server.
        address: ``host:port``.
        place: unknown.
    """

    def __init__(self, *, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.place = Place()

    async def start(self) -> None:
        """Refused: it runs already."""
        raise HarnessError(
            f"start {self.name} on {self.address}",
            observed="it is running already, and it is not ours to start",
        )

    stop = _refused("stop")
    kill = _refused("kill")
    pause = _refused("pause")
    resume = _refused("resume")
