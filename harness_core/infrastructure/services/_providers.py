"""Who provides a server: this machine, a container engine, or somebody else; one way for every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from harness_core.base import limits
from harness_core.base.errors import BadInput, HarnessError, NotReady, Unavailable
from harness_core.base.wait import deadline
from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._in_container import open_container_server
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.infrastructure.services._service import Place, Say, Service

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

_PROVIDERS: Final = ("container", "external", "local")

#: A server that runs answers its first message in milliseconds, across a network in tens.
_REACH_S: Final = limits.MCP_CALL_S / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """How one kind of server comes to be, by each provider.

    Args:
        name: e.g. ``"s3"``.
        readiness: when it serves.
        local: opens one of our own on this machine.
        images: which image has one.
        container: what to run in a container, given the image.
    """

    name: str
    readiness: Readiness
    local: Callable[[], AbstractAsyncContextManager[Service]]
    images: ImageChoice
    container: Callable[[str], ContainerSpec]


def check_provider(
    opener: str, provider: str, *, key: str, given: str | None, shown: str, expected: str
) -> None:
    """Refuse a choice of a provider that cannot be.

    Args:
        opener: name of the function that was called.
        provider: what was chosen.
        key: argument that says where a server of somebody else is.
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


def none_with(provider: str) -> str:
    """What is expected of an argument about a server of somebody else."""
    return f"none with the provider {provider}, which starts a server of its own"


@asynccontextmanager
async def open_server(
    run: Run, kind: ServerKind, *, provider: str, address: str, evidence: Evidence, say: Say
) -> AsyncIterator[Service]:
    """Open a server by one of the providers; the choice has been checked.

    Args:
        run: what it belongs to.
        kind: which server.
        provider: ``local``, ``container`` or ``external``.
        address: ``host:port`` of the external one.
        evidence: directory for its log.
        say: told what takes long.

    Raises:
        Unavailable: the provider cannot work here, or nobody serves at ``address``.
        ChildExited: the server ended while it started.
        NotReady: it did not serve in time.
    """
    match provider:
        case "external":
            await _reach(kind, address)
            yield ExternalServer(name=kind.name, address=address)
        case "container":
            async with open_container_server(
                run,
                kind.container,
                images=kind.images,
                readiness=kind.readiness,
                evidence=evidence,
                say=say,
            ) as contained:
                yield contained
        case _:
            async with kind.local() as server:
                yield server


async def _reach(kind: ServerKind, address: str) -> None:
    """Make sure that the server of somebody else is there."""
    action = f"reach the external {kind.name} on {address}"
    try:
        with deadline(action, seconds=_REACH_S):
            observed = await kind.readiness.look(address)
    except NotReady as error:
        observed = error.observed
    if observed:
        raise Unavailable(
            action,
            observed=observed,
            next_step="Start it, or correct its address, or run with --services local",
        )


class ExternalServer:
    """A server that somebody else looks after: used, never taken away.

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

    async def stop(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("stop")

    async def kill(self) -> None:
        """Refused: the server belongs to somebody else, and others may use it."""
        self._refuse("kill")

    async def pause(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("pause")

    async def resume(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("resume")

    def _refuse(self, verb: str) -> NoReturn:
        raise Unavailable(
            f"{verb} {self.name} on {self.address}",
            observed="it is an external server, which the harness only connects to",
            next_step="Run with --services local to test outages",
        )
