"""Tells the switchboard, again and again, that this butler is there.

The first success registers, every later one renews the lease. A switchboard that is down is asked
again until it answers; no start waits for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING

from butlers import faults
from butlers.client import call

if TYPE_CHECKING:
    from butlers.butler import Butler

_FIRST_RETRY_S = 0.1


class Registration:
    """The background task of one butler."""

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._task: asyncio.Task[None] | None = None
        self.answered = asyncio.Event()
        self._closing = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        # A call whose connection breaks at that moment ends in an error of its own, and no more is
        # heard of the cancellation.
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self) -> None:
        settings = self._butler.config.switchboard
        pause_s = _FIRST_RETRY_S
        registered = False
        while True:
            try:
                await self._register()
            # The edge of a task that must not end: a switchboard that is down, and for the
            # switchboard itself a database that is, are asked again. Without the lease a butler
            # that is well would count as dead.
            except Exception as problem:
                if self._closing:
                    return
                if faults.on("lease-dies-with-database") and self._butler.on_register is not None:
                    raise
                if registered or pause_s == _FIRST_RETRY_S:
                    self._butler.log.warning(
                        "registration.failed", switchboard=settings.url, error=problem
                    )
                registered = False
                await asyncio.sleep(pause_s)
                longest_s = settings.heartbeat_s
                if faults.on("registration-pause-unbounded"):
                    longest_s = math.inf
                pause_s = min(pause_s * 2, longest_s)
                continue
            if self._closing:
                return  # what cancelled it came while the answer was in hand
            if not registered:
                self._butler.log.info("registered", switchboard=settings.url)
            registered, pause_s = True, _FIRST_RETRY_S
            self.answered.set()
            if faults.on("registers-once"):
                return
            await asyncio.sleep(settings.heartbeat_s)

    async def _register(self) -> None:
        config = self._butler.config
        entry = {
            "name": config.name, "endpoint_url": config.url, "description": config.description,
            "capabilities": list(config.capabilities),
            "routable": bool(config.allowed_sources),
        }
        if self._butler.on_register is not None:  # the switchboard knows itself
            await self._butler.on_register(**entry)
            return
        await call(
            config.switchboard.url, "butler_register", entry,
            connect_timeout_s=config.switchboard.connect_timeout_s,
            timeout_s=config.switchboard.connect_timeout_s,
        )
