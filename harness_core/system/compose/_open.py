"""Opens a stack by one of the drivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from harness_core.base.errors import BadInput
from harness_core.system.compose._compose import Compose, read_compose
from harness_core.system.compose._docker import DockerDriver
from harness_core.system.compose._driver import Driver
from harness_core.system.compose._external import external_variables
from harness_core.system.compose._handle import Stack
from harness_core.system.compose._keys import check_keys
from harness_core.system.compose._local import LocalDriver
from harness_core.system.compose._options import StackOptions
from harness_core.system.parts import open_booted

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["open_stack"]

S = TypeVar("S", bound=Stack)

#: A new driver is one row.
_DRIVERS: Final[Mapping[str, type[Driver]]] = {
    driver.name: driver for driver in (DockerDriver, LocalDriver)
}


def open_stack(  # noqa: PLR0913 - a stack and what may be said of it, with defaults
    run: Run,
    compose: Path,
    *,
    evidence: Evidence,
    driver: str = "local",
    options: StackOptions | None = None,
    say: Callable[[str], None] = lambda _text: None,
    handle: type[S] = Stack,  # type: ignore[assignment]  # S, unless it is given
) -> AbstractAsyncContextManager[S]:
    """Boot a stack from nothing; take it down, with everything it made, at the end of the block.

    Every service starts as soon as what it waits for is there, the others side by side. Ports,
    database, buckets and directories are fresh.

    Args:
        run: the run it belongs to and dies with.
        compose: the compose file.
        evidence: directory for the logs of all services, written as they come.
        driver: ``docker`` or ``local``.
        options: what it is given besides the file.
        say: gets a line for each step of the boot.
        handle: what its users get.

    Raises:
        BadInput: unknown driver, or a mistake in the compose file: names service and key. So is a key
            of a server of ours that is missing, too short, or not the one its users hold.
        ServiceFailed: a service did not come up: names the culprit, not those that waited for it,
            with stage, last lines and log.
    """
    if driver not in _DRIVERS:
        expected = f"one of {', '.join(sorted(_DRIVERS))}"
        raise BadInput("open_stack", key="driver", found=driver, expected=expected)
    options = options or StackOptions()
    read = read_compose(compose, variables=options.environment)
    external = driver == "local" and options.services == "external"
    if external:
        theirs = external_variables(run, read, options.urls)
        read = read_compose(compose, variables={**options.environment, **theirs})
    check_keys(read, external=external)
    return _open(
        _DRIVERS[driver], run, read, options=options, evidence=evidence, say=say, handle=handle
    )


@asynccontextmanager
async def _open(  # noqa: PLR0913 - as its caller
    kind: type[Driver],
    run: Run,
    compose: Compose,
    *,
    options: StackOptions,
    evidence: Evidence,
    say: Callable[[str], None],
    handle: type[S],
) -> AsyncIterator[S]:
    title = compose.path.parent.name
    async with AsyncExitStack() as stack:
        driver = kind(
            run=run, compose=compose, options=options, evidence=evidence, stack=stack, say=say
        )
        parts = await driver.parts()
        booted = await stack.enter_async_context(
            open_booted(parts, driver.waits(), title=title, evidence=evidence, say=say)
        )
        opened = handle(booted, driver.access(parts), names=options.names)
        try:
            yield opened
        finally:
            await opened.close()
