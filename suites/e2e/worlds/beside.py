"""A further process of a butler: started beside its own, or in its place at another port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from harness_core.base.groups import lone_error
from harness_core.base.wait import deadline, until
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.butler import Butler

__all__ = ["open_beside", "with_port"]

#: From the command line to a process.
_STARTS_S: Final = 30.0

#: A process that drains its sessions first.
_STOP_S: Final = 40.0


def with_port(butler: Butler, port: int) -> dict[str, str]:
    """The environment of a butler that is to listen elsewhere."""
    own = str(butler.port)
    changed = {key: str(port) for key, value in butler.environment.items() if value == own}
    if not changed and own not in " ".join(butler.command):
        not_run("subject", "neither its environment nor its command line names the port alone")
    return butler.environment | changed


@asynccontextmanager
async def open_beside(
    butler: Butler, *, port: int | None = None, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Any]:
    """Start a further process of a butler; stop it at the end of the block.

    Args:
        butler: whose command line and environment it has.
        port: where it is to listen; the butler's own port when left out.
        environment: changes to that environment.

    Yields:
        The process (``Child``); whether it serves is for the caller to find out.
    """
    if butler.shared:
        not_run("subject", f"cannot start one butler: {butler.shared}")
    env = butler.environment if port is None else with_port(butler, port)
    words = [
        word if port is None or word != str(butler.port) else str(port) for word in butler.command
    ]
    started: list[Any] = []

    async def live() -> None:
        async with butler.run.child(
            words,
            name=f"{butler.name}-beside",
            env={**env, **(environment or {})},
            cwd=butler.folder,
            evidence=butler.process.evidence,
            grace_s=_STOP_S,
        ) as child:
            started.append(child)
            await trio.sleep_forever()

    async def is_started() -> bool:
        return bool(started)

    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(butler.parts.loop.call, live)
        with deadline(f"start another process of {butler.name}", seconds=_STARTS_S):
            await until(is_started)
        yield started[0]
        nursery.cancel_scope.cancel()
