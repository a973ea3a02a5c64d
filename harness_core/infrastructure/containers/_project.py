"""Networks, volumes and containers of a run that compose puts together: made, adopted, removed.

Compose creates the containers of a stack; the network and the volumes they share are made here, so
that everything carries the run's labels and its name is in the ledger before it exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.infrastructure.containers._client import engine_client, engine_errors, unless_gone
from harness_core.infrastructure.containers._container import Container, _close
from harness_core.infrastructure.containers._labels import announce, run_labels
from harness_core.infrastructure.containers._logs import ContainerLog
from harness_core.infrastructure.engine import Engine

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
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

    def remove(client: Any) -> None:
        client.networks.get(name).remove()

    return _shared(run, "network", name, engine=engine, make=make, remove=remove)


def open_volume(run: Run, name: str, *, engine: Engine) -> AbstractAsyncContextManager[str]:
    """Make a volume and yield its name; it is removed, with all that is in it, at the end."""

    def make(client: Any) -> str:
        client.volumes.create(name, labels=run_labels(run.id))
        return name

    def remove(client: Any) -> None:
        client.volumes.get(name).remove(force=True)

    return _shared(run, "volume", name, engine=engine, make=make, remove=remove)


@asynccontextmanager
async def _shared(
    run: Run,
    kind: str,
    name: str,
    *,
    engine: Engine,
    make: Callable[[Any], str],
    remove: Callable[[Any], None],
) -> AsyncIterator[str]:
    """Make a thing and yield what ``make`` says; what cannot be removed at the end is swept later."""
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


@asynccontextmanager
async def adopt_container(
    run: Run, name: str, *, engine: Engine, port: int, evidence: Evidence, log: str
) -> AsyncIterator[Container]:
    """Look after a container that was created for this run and not started; removed at the end.

    Args:
        run: what it belongs to.
        name: of the container.
        engine: where.
        port: where its server is published; 0 for none.
        evidence: directory for its log.
        log: name of the log there, without suffix.

    Raises:
        HarnessError: the engine has none of that name.
    """
    with ExitStack() as stack:

        def find() -> Any:
            client = stack.enter_context(engine_client(engine))
            with engine_errors(f"find container {name}"):
                return client.containers.get(name)

        wrapped = await blocking(find)
        path = evidence.path / f"{log}.log"
        following = ContainerLog(engine, name, path=path, redactor=evidence.redactor)
        run.start_soon(following._follow_all, name=f"log of {name}")  # noqa: SLF001 - same package
        container = Container(
            wrapped, name=name, host=engine.host, port=port, engine=engine, following=following
        )
        quiet = True
        try:
            yield container
            quiet = False
        finally:
            with trio.CancelScope(shield=True):
                await _close(run, container, evidence, quiet=quiet)
