"""A running stack as its users see it, whichever driver runs it and in whatever process."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core import limits
from harness_core.bridge import anywhere
from harness_core.db import Database
from harness_core.errors import BadInput, HarnessError
from harness_core.http import HttpClient
from harness_core.llm import GatewayClient
from harness_core.services import (
    S3Object,
    S3Summary,
    S3Url,
    fetch_object,
    list_objects,
    parse_s3_url,
)
from harness_core.stack._control import Control
from harness_core.stack._description import Description, ServiceSeen
from harness_core.stack._part import State
from harness_core.wait import until

if TYPE_CHECKING:
    from harness_core.evidence import Evidence

__all__ = ["OUTAGES", "Stack"]

#: How a service may be taken away → what is done, and what undoes it.
OUTAGES: Final[Mapping[str, tuple[str, str]]] = {
    "kill": ("kill", "start"),
    "pause": ("pause", "resume"),
    "stop": ("stop", "start"),
}


class Stack:
    """A running stack; built by :func:`open_stack` and :func:`attach_stack`.

    Every method may be awaited in a task of trio, asyncio or anyio, in any thread; what it does to
    services is done where they live. Synchronous code calls ``loop.run(lambda: stack.rows(…))``.
    A call that is cut off has ended when its caller goes on: a service whose start was cut off is
    down, and :meth:`mend` brings it back.

    Attributes:
        description: how it is reached.
        control: its driver, by name of service.
        database: its database, or ``None``.
    """

    def __init__(self, description: Description, control: Control) -> None:
        self.description = description
        self.control = control
        url = description.database_url
        self.database = Database(url) if url else None

    @property
    def services(self) -> tuple[str, ...]:
        """The names of all services."""
        return tuple(self.description.services)

    def service(self, name: str) -> ServiceSeen:
        """What is known of one service.

        Raises:
            BadInput: there is none of that name.
        """
        found = self.description.services.get(name)
        if found is None:
            known = ", ".join(self.services)
            raise BadInput("stack", key="service", found=name, expected=f"one of {known}")
        return found

    def address(self, service: str) -> str:
        """``host:port`` of a service.

        Raises:
            BadInput: there is no such service, or it has no port.
        """
        address = self.service(service).address
        if not address:
            raise BadInput("stack", key="service", found=service, expected="one that has a port")
        return address

    def url(self, service: str) -> str:
        """Its base URL, without a slash at the end."""
        return f"http://{self.address(service)}"

    def client(
        self,
        service: str,
        *,
        headers: Mapping[str, str] | None = None,
        evidence: Evidence | None = None,
    ) -> HttpClient:
        """A client of one service that writes every exchange into ``evidence``."""
        return HttpClient(self.url(service), name=service, headers=headers, evidence=evidence)

    def gateway(self) -> GatewayClient:
        """A client of the control API of the model gateway.

        Raises:
            HarnessError: the stack has none.
        """
        name = self.description.gateway()
        if not name:
            raise HarnessError("steer the model", observed="the stack has no model gateway")
        return GatewayClient(self.url(name), self.description.gateway_token)

    # --- what it left ---------------------------------------------------------------------------

    def log_files(self, service: str) -> tuple[Path, ...]:
        """The logs of all lives of a service, oldest first."""
        pattern = re.compile(rf"{re.escape(self.service(service).log)}(?:-(\d+))?\.(?:log|jsonl)")
        found = [
            (int(match[1] or 1), path)
            for path in self.description.evidence.glob("*")
            if (match := pattern.fullmatch(path.name))
        ]
        return tuple(path for _, path in sorted(found))

    def logs(self, service: str) -> tuple[str, ...]:
        """Every line that a service has written so far, in all its lives; secrets redacted."""
        return tuple(
            line
            for path in self.log_files(service)
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        )

    def recorded(self, service: str) -> tuple[dict[str, Any], ...]:
        """Every request that a recorder was sent, oldest first: method, target, headers, body.

        Raises:
            BadInput: the service is no recorder.
        """
        if self.service(service).kind != "recorder":
            raise BadInput("stack", key="service", found=service, expected="a recorder")
        return tuple(json.loads(line) for line in self.logs(service))

    async def rows(
        self, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Rows of the stack's database: see :meth:`harness_core.db.Database.rows`.

        Raises:
            HarnessError: the stack has no database, or it cannot be reached.
        """
        if self.database is None:
            raise HarnessError("read rows", observed="the stack has no database")
        return await self.database.rows(sql, params)

    async def objects(self, prefix: str = "", *, bucket: str = "") -> tuple[S3Summary, ...]:
        """What lies in a bucket, by key.

        Raises:
            OSError: the S3 server does not answer.
            HarnessError: the stack has none, or it refuses.
        """
        url, name = self._bucket(bucket)
        return await list_objects(url, name, prefix=prefix)

    async def object(self, key: str, *, bucket: str = "") -> S3Object:
        """One object: its bytes, etag, metadata and tags.

        Raises:
            OSError: the S3 server does not answer.
            S3RefusedError: there is no such object; ``code`` says so.
        """
        url, name = self._bucket(bucket)
        return await fetch_object(url, name, key)

    def _bucket(self, bucket: str) -> tuple[S3Url, str]:
        if not self.description.s3_url:
            raise HarnessError("read objects", observed="the stack has no S3 server")
        name = bucket or self.description.bucket
        if not name:
            expected = "the name of one: the compose file gives its S3 server no `bucket`"
            raise BadInput("stack", key="bucket", found=bucket, expected=expected)
        return parse_s3_url(self.description.s3_url, where="stack"), name

    # --- taking services away -------------------------------------------------------------------

    async def start(self, service: str) -> None:
        """Start it and wait until it serves, on the address it had."""
        await self.control.act(service, "start")

    async def stop(self, service: str) -> None:
        """Shut it down in order."""
        await self.control.act(service, "stop")

    async def kill(self, service: str) -> None:
        """End it and everything it started, as a crash would."""
        await self.control.act(service, "kill")

    async def pause(self, service: str) -> None:
        """Freeze it: connections stay open and nothing answers."""
        await self.control.act(service, "pause")

    async def resume(self, service: str) -> None:
        """Undo :meth:`pause`."""
        await self.control.act(service, "resume")

    async def restart(self, service: str) -> None:
        """Stop and start; address and data stay, connections do not."""
        await self.control.act(service, "restart")

    async def processes(self, service: str) -> Sequence[str]:
        """The command lines of a service's processes now: evidence of where something runs.

        None for a server that the harness provides in its place.
        """
        return await self.control.processes(service)

    async def states(self) -> Mapping[str, State]:
        """Which services run, by what the driver knows."""
        return await self.control.states()

    async def unhealthy(self) -> dict[str, str]:
        """One look at every service: those that do not serve, and what is seen instead."""
        return {name: seen for name, seen in (await self.control.look()).items() if seen}

    @anywhere
    async def healthy(self, *services: str, seconds: float = limits.STACK_READY_S) -> None:
        """Wait until these services serve, or all of them.

        Raises:
            AssertionError: one does not within ``seconds``; says which, and what is seen.
        """
        seen: dict[str, str] = {}

        async def all_serve() -> bool:
            nonlocal seen
            found = await self.unhealthy()
            seen = {name: why for name, why in found.items() if not services or name in services}
            return not seen

        with trio.move_on_after(seconds):
            await until(all_serve)
            return
        told = "; ".join(f"{name}: {why}" for name, why in seen.items())
        logs = ", ".join(str(path) for name in seen for path in self.log_files(name)[-1:])
        raise AssertionError(
            f"expected the stack to serve within {seconds:g} s, found {told} (logs: {logs})"
        )

    async def mend(self) -> Sequence[str]:
        """Bring back whatever does not run; says what that was."""
        return await self.control.mend()

    @asynccontextmanager
    async def outage(
        self, service: str, how: str = "stop", *, healthy_again_s: float = limits.STACK_READY_S
    ) -> AsyncIterator[None]:
        """A service is away during the block; afterwards the stack is as it was before.

        It is restored also when the block raises or is cancelled, and every service that served
        before is waited for until it serves again.

        Args:
            service: which.
            how: ``stop`` (in order), ``kill`` (as a crash) or ``pause`` (it hangs).
            healthy_again_s: how long the others may take to recover.

        Raises:
            BadInput: no such service, or no such way.
            HarnessError: the harness could not take it away, or bring it back.
            AssertionError: after a block that raised nothing: another service did not recover.
        """
        if how not in OUTAGES:
            known = ", ".join(OUTAGES)
            raise BadInput("stack", key="how", found=how, expected=f"one of {known}")
        self.service(service)
        away, back = OUTAGES[how]
        unwell = await self.unhealthy()
        served = [name for name in self.services if name not in unwell]
        in_block = True
        try:
            await self.control.act(service, away)
            yield
            in_block = False
        finally:
            try:
                await self._restore(service, back)
            finally:
                await self._recovered(served, seconds=healthy_again_s, in_block=in_block)

    @anywhere
    async def _restore(self, service: str, back: str) -> None:
        with trio.CancelScope(shield=True):
            state = (await self.states())[service]
            if state not in {State.RUNNING, State.COMPLETED}:
                await self.control.act(service, "resume" if state is State.PAUSED else back)

    @anywhere
    async def _recovered(self, served: Sequence[str], *, seconds: float, in_block: bool) -> None:
        with trio.CancelScope(shield=in_block):
            try:
                await self.healthy(*served, seconds=seconds)
            except AssertionError:
                if not in_block:  # else the block's own error says more
                    raise

    async def close(self) -> None:
        """Close the connection to its database."""
        if self.database is not None:
            await self.database.close()
