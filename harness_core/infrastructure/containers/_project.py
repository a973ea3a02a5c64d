"""Networks and volumes that the containers of a compose project share: made, announced, removed.

Compose creates the containers of a stack; the network and the volumes they share are made here, so
that everything carries the run's labels and its name is in the ledger before it exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.infrastructure.containers._client import engine_client, engine_errors, unless_gone
from harness_core.infrastructure.containers._labels import announce, run_labels
from harness_core.infrastructure.engine import Engine

if TYPE_CHECKING:
    from harness_core.process import Run


def announce_container(run: Run, name: str, *, engine: Engine) -> None:
    """Write down that a container of that name is about to be made, so that a sweep finds it."""
    announce(run, "container", name, engine)


def open_network(run: Run, name: str, *, engine: Engine) -> AbstractAsyncContextManager[str]:
    """Make a network; yields the address of its gateway, which is this machine; removes it.

    Raises:
        HarnessError: it cannot be made, or has no gateway here.
    """

    def make(client: Any) -> str:
        made = client.networks.create(name, driver="bridge", labels=run_labels(run.id))
        made.reload()
        found = made.attrs.get("IPAM", {}).get("Config") or [{}]
        return str(found[0].get("Gateway", ""))

    return _shared(
        run,
        "network",
        name,
        engine=engine,
        make=make,
        remove=lambda client: client.api.remove_network(name),
    )


def open_volume(run: Run, name: str, *, engine: Engine) -> AbstractAsyncContextManager[str]:
    """Make a volume and yield its name; it is removed, with all that is in it, at the end."""

    def make(client: Any) -> str:
        client.volumes.create(name, labels=run_labels(run.id))
        return name

    return _shared(
        run,
        "volume",
        name,
        engine=engine,
        make=make,
        remove=lambda client: client.api.remove_volume(name, force=True),
    )


@asynccontextmanager
async def _shared(
    run: Run,
    kind: str,
    name: str,
    *,
    engine: Engine,
    make: Callable[[Any], str],
    remove: Callable[[Any], object],
) -> AsyncIterator[str]:
    """Make a thing and yield what ``make`` returns; what cannot be removed at the end is swept later."""
    announce(run, kind, name, engine)

    def made() -> str:
        with engine_client(engine) as client, engine_errors(f"make {kind} {name}"):
            return make(client)

    made_as = await blocking(made)
    try:
        yield made_as
    finally:
        with trio.CancelScope(shield=True):
            try:
                await blocking(unless_gone, engine, f"remove {kind} {name}", remove)
            except HarnessError:
                run.ledger.record("handed-over", what=f"{kind} {name}")
                raise
