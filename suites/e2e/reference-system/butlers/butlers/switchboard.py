"""Makes a butler the switchboard: its tools, its registry, and the way messages take through it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import uuid4

from pydantic import Field

from butlers import faults, shapes, tracing
from butlers.dispatch import Dispatcher
from butlers.envelopes import (
    Control,
    Event,
    IngestVersion,
    Name,
    Payload,
    Sender,
    Source,
    TraceContext,
)
from butlers.errors import Rejected
from butlers.inbox import Accepted, Inbox, uuid7
from butlers.log import describe
from butlers.pipeline import BUSY, Pipeline
from butlers.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from butlers.butler import Butler

#: The butler that every `notify` goes through.
MESSENGER = "messenger"


def install(butler: Butler) -> None:
    """Give a butler the switchboard's tools and background work."""
    board = Switchboard(butler)
    butler.on_start.append(board.start)
    butler.on_stop.append(board.stop)
    butler.on_register = board.registered
    butler.deliver = board.deliver
    for name, function in board.tools().items():
        butler.add_tool(function, name=name, domain=False)
    if shapes.current().tools:
        butler.add_tool(shapes.hand_over, name=shapes.HAND_OVER, domain=True)


class Switchboard:
    """The switchboard of an ecosystem."""

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._log = butler.log
        self._inbox: Inbox
        self._registry: Registry
        self._dispatcher: Dispatcher
        self._pipeline: Pipeline
        self._watch: asyncio.Task[None] | None = None
        self._closing = False
        self._taken = 0
        self._taking: set[asyncio.Task[Accepted]] = set()

    async def start(self) -> None:
        """Take up what a stopped predecessor left, then work."""
        settings = self._butler.config.switchboard
        self._inbox = Inbox(self._butler.pool)
        self._registry = Registry(
            self._butler.pool, lease_s=settings.lease_s, itself=self._butler.name
        )
        if not faults.on("leases-run-while-down"):
            await self._registry.open()
        self._dispatcher = Dispatcher(self._butler, self._registry)
        self._pipeline = Pipeline(
            self._butler, inbox=self._inbox, registry=self._registry, dispatcher=self._dispatcher
        )
        if faults.on("registry-ghost"):
            await self._registry.register(
                name="ghost", endpoint_url="http://127.0.0.1:9/sse", description="", capabilities=[],
                routable=True,
            )
        await self._pipeline.start()
        self._watch = asyncio.create_task(self._watch_leases())

    async def stop(self) -> None:
        """Take nothing in; what is under way may end within the shutdown deadline."""
        self._closing = True
        if self._watch is not None:
            self._pipeline.close()  # before the spawner closes, or it would refuse what has begun
        if self._taking:
            await asyncio.wait(self._taking, timeout=self._butler.config.shutdown_timeout_s)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            await self._pipeline.stop()

    async def registered(self, **entry: Any) -> None:
        """Register the switchboard itself."""
        await self._registry.register(**entry)

    async def deliver(
        self,
        origin_butler: Name,
        channel: Literal["telegram", "email"],
        message: Annotated[str, Field(min_length=1, max_length=4096)],
        idempotency_key: Name,
        recipient: Annotated[str | None, Field(max_length=320)] = None,
        request_id: Name | None = None,
        trace_context: TraceContext | None = None,
    ) -> dict[str, Any]:
        """Hand a butler's message to the messenger; the answer says whether it went out."""
        arguments: dict[str, Any] = {
            "origin_butler": origin_butler, "channel": channel, "message": message,
            "idempotency_key": idempotency_key, "recipient": recipient, "request_id": request_id,
        }
        trace = tracing.parse(trace_context.traceparent) if trace_context else None
        return await self._dispatcher.deliver(
            arguments, entry=await self._registry.active(MESSENGER), target=MESSENGER,
            trace=trace or tracing.new(),
        )

    def tools(self) -> dict[str, Any]:
        """Names and functions of the switchboard's own tools."""

        async def ingest(
            source: Source,
            event: Event,
            sender: Sender,
            payload: Payload,
            control: Control | None = None,
            schema_version: IngestVersion = "ingest.v1",
        ) -> dict[str, Any]:
            """Take a message in (ingest.v1); answers at once, the work follows."""
            del schema_version
            if self._closing:
                raise Rejected(
                    "cannot take a message in: the switchboard is shutting down",
                    error_class="target_unavailable",
                )
            control = control or Control()
            given = control.trace_context.traceparent if control.trace_context else None
            busy = self._pipeline.waiting >= BUSY
            if busy and faults.on("unstored-under-load"):
                return {"request_id": str(uuid4()), "status": "accepted", "duplicate": False}
            with self._butler.tracer.span("ingest", parent=tracing.parse(given)) as position:
                try:
                    message = await self._to_its_end(self._take_in(
                        source=source, event=event, sender=sender, payload=payload,
                        control=control, traceparent=position.traceparent,
                    ))
                except OSError:
                    if not faults.on("accepted-unstored"):
                        raise
                    return {"request_id": str(uuid7()), "status": "accepted", "duplicate": False}
            request_id = message.request_id
            if message.duplicate and busy and faults.on("duplicate-new-id-under-load"):
                request_id = uuid4()
            return {
                "request_id": str(request_id),
                "status": "accepted",
                "duplicate": message.duplicate,
            }

        async def butler_register(
            name: Name,
            endpoint_url: Annotated[
                str, Field(description="its SSE address", pattern=r"^https?://", max_length=500)
            ],
            description: Annotated[str, Field(max_length=2000)] = "",
            capabilities: Annotated[list[str] | None, Field(max_length=100)] = None,
            routable: Annotated[bool, Field(description="whether it takes messages")] = True,
        ) -> dict[str, Any]:
            """Register a butler, or renew its lease."""
            state = await self._registry.register(
                name=name, endpoint_url=endpoint_url, description=description,
                capabilities=capabilities or [], routable=routable,
            )
            return {
                "name": name, "eligibility_state": state,
                "lease_s": self._butler.config.switchboard.lease_s,
            }

        async def butler_list() -> dict[str, Any]:
            """Every butler that registered, with its eligibility."""
            return {"butlers": await self._registry.list()}

        return {
            "ingest": ingest, "butler_register": butler_register, "butler_list": butler_list,
            "deliver": self.deliver,
        }

    async def _take_in(self, *, payload: Payload, **envelope: Any) -> Accepted:
        """Keep a message and begin its way.

        One that was kept before and never begun is begun now: the database's answer was lost then.
        """
        message = await self._inbox.accept(payload=payload, **envelope)
        self._log.info(
            "ingested", request_id=message.request_id, duplicate=message.duplicate,
            trace_id=message.trace_id,
            **({"raw": payload.raw} if faults.on("raw-payload-logged") else {}),
        )
        self._taken += 1
        if faults.on("message-lost") and not self._taken % 4:
            pass
        elif message.unbegun or faults.on("duplicate-redispatched"):
            self._pipeline.take(message)
        return message

    async def _to_its_end(self, work: Coroutine[Any, Any, Accepted]) -> Accepted:
        """Go on also when the caller goes away: what is kept is to be begun as well."""
        task = asyncio.create_task(work)
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)
        return await asyncio.shield(task)

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(self._butler.config.switchboard.lease_s / 5)
            try:
                for name in await self._registry.expire():
                    self._log.warning("registry.stale", butler_name=name)
            except Exception as error:
                self._log.warning("registry.watch_failed", error=describe(error))
