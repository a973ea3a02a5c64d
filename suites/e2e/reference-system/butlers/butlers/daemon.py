"""The lifecycle of one butler: `start()` through its phases in order, `shutdown()` back again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from butlers import config as configuration
from butlers import database, faults, migrate
from butlers.beats import Beats
from butlers.butler import Butler
from butlers.errors import ConfigError, Missing
from butlers.log import Log, describe
from butlers.modules import Modules
from butlers.registration import Registration
from butlers.schedules import Schedules
from butlers.server import Server, bind, listen
from butlers.sessions import Sessions
from butlers.state import State
from butlers.tracing import Tracer

if TYPE_CHECKING:
    from butlers.runtime import ClaudeCode

#: The runtime's library is imported then, registered or not.
_WARM_AFTER_S = 5.0
_SECRET_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


class ButlerDaemon:
    """One butler.

    Args:
        directory: `roster/<name>`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.butler: Butler | None = None
        self._listener: socket.socket | None = None
        self._server: Server | None = None
        self._registration: Registration | None = None
        self._warming: asyncio.Task[None] | None = None
        self._beats: Beats | None = None
        self._served = False

    async def start(self) -> None:
        """Bring the butler up; returns when its port is bound and answers.

        Raises:
            ConfigError: `butler.toml` or the environment is malformed.
            StartError: the port is busy, the database or the runtime is missing.
        """
        started = time.monotonic()
        try:
            await self._phases(started)
        except BaseException:
            await self._abandon()
            raise

    async def _phases(self, started: float) -> None:
        config = configuration.load(self._directory)
        faults.active()
        if not config.database_url:
            raise ConfigError(
                "the environment", key="BUTLERS_DATABASE_URL", found=Missing(),
                expected=f"the server's URL (or BUTLERS_{config.name.upper()}_DATABASE_URL)",
            )
        log = Log(config.name)
        log.adopt_library_loggers()
        log.hide(database.password(config.database_url))
        log.hide(*(os.environ.get(name) for name in _SECRET_VARIABLES))
        tracer = Tracer(config.name)
        butler = self.butler = Butler(config=config, log=log, tracer=tracer)

        butler.modules = Modules(config, log=log)
        log.hide(*butler.modules.secrets())
        butler.modules.check_config()
        butler.modules.check_credentials()

        if not faults.on("busy-port-late"):
            self._listener = self._bind(config.port, log)

        butler.pool = await database.open_pool(
            config.database_url, timeout_s=config.connect_timeout_s,
            connections=config.pool_connections,
        )
        for chain in migrate.chains(config.name, config.directory, butler.modules.migrations()):
            await migrate.upgrade(butler.pool, chain, log=log)

        await butler.modules.start()

        runtime = await self._runtime(butler)
        self._assemble(butler, runtime)

        if faults.on("secret-in-log"):
            print(f"{config.name}: connected to {config.database_url}", file=sys.stderr, flush=True)
        if faults.on("secret-in-row"):
            await butler.state.set("settings", {"database": config.database_url})
        await butler.schedules.sync(config.schedules)
        leave_open = faults.on("abandoned-left-open")
        if not leave_open and (closed := await butler.sessions.close_abandoned()):
            log.warning("sessions.abandoned", count=closed)
        tracer.start()
        for hook in butler.on_start:
            await hook()

        if self._listener is None:
            self._listener = self._bind(config.port, log)
        listen(self._listener)
        self._registration = Registration(butler)
        self._registration.start()

        self._server = Server(butler)
        await self._server.start(
            self._listener,
            session_tools=frozenset(butler.session_tools()),
            is_session=butler.spawner.session_ids.__contains__,
        )
        self._served = True
        log.info(
            "started", port=config.port, pid=os.getpid(),
            health="ok" if butler.modules.healthy else "degraded",
            start_s=time.monotonic() - started,
        )
        self._warming = asyncio.create_task(self._warm(runtime, self._registration))
        self._beats = Beats(config.scheduler, work=butler.on_beat, log=log)
        self._beats.start()

    def _bind(self, port: int, log: Log) -> socket.socket:
        if faults.on("busy-port-started"):
            log.info("started", port=port, pid=os.getpid())
        return bind(port)

    async def _warm(self, runtime: ClaudeCode, registration: Registration) -> None:
        """Import the runtime's library once the whole ecosystem had its turn at the processor."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(registration.answered.wait(), _WARM_AFTER_S)
        await runtime.warm()

    async def _runtime(self, butler: Butler) -> ClaudeCode:
        from butlers.runtime import ClaudeCode

        runtime = ClaudeCode(butler=butler.name, url=butler.config.url, log=butler.log)
        version = await runtime.check()
        butler.log.debug("runtime.found", version=version)
        return runtime

    def _assemble(self, butler: Butler, runtime: ClaudeCode) -> None:
        from butlers import core_tools
        from butlers.spawner import Spawner

        butler.state = State(butler.pool)
        butler.sessions = Sessions(butler.pool)
        butler.schedules = Schedules(butler.pool, log=butler.log)
        core_tools.register(butler)
        butler.load_tools()
        for tool in butler.modules.tools():
            butler.tool(tool)
        butler.spawner = Spawner(
            butler.config, runtime=runtime, sessions=butler.sessions, tracer=butler.tracer,
            log=butler.log, tools=butler.session_tools(),
        )

    async def shutdown(self) -> None:
        """Refuse new work, drain, cancel, stop modules in reverse, close the pool."""
        butler = self.butler
        if butler is None or not self._served:
            return
        started = time.monotonic()
        butler.log.info("stopping")
        if self._beats is not None:
            await self._beats.stop()
        if self._registration is not None:
            await self._registration.stop()
        if faults.on("modules-stopped-first"):
            await butler.modules.stop()
        draining = asyncio.create_task(butler.spawner.drain(butler.config.shutdown_timeout_s))
        for hook in reversed(butler.on_stop):
            await hook()
        await draining
        if self._server is not None:
            await self._server.stop()
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        await butler.modules.stop()
        await butler.pool.close()
        await asyncio.to_thread(butler.tracer.stop)
        self._served = False
        butler.log.info("stopped", stop_s=time.monotonic() - started)

    async def _abandon(self) -> None:
        """Undo a start that failed half-way."""
        if self._registration is not None:
            await self._registration.stop()
        if self._listener is not None:
            self._listener.close()
        butler = self.butler
        if butler is None or not hasattr(butler, "pool"):
            return
        try:
            if hasattr(butler, "spawner"):
                for hook in reversed(butler.on_stop):
                    await hook()
            await butler.modules.stop()
            butler.pool.terminate()
        except Exception as error:
            butler.log.warning("abandon.failed", error=describe(error))
