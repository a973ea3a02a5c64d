"""Makes a butler the switchboard: takes messages in, has them classified, dispatches, concludes.

A message is classified when its turn comes (the inbox table is the queue, so none is lost and none
is refused), and dispatched while the next one is classified.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import uuid4

from pydantic import Field

from butlers import classify, database, faults, tracing
from butlers.classify import Decomposition, Segment
from butlers.dispatch import Dispatcher, Hop
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
from butlers.inbox import Accepted, Inbox
from butlers.log import describe
from butlers.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from butlers.butler import Butler
    from butlers.registry import Entry

#: Between two looks at a full session queue of the switchboard itself.
_RETRY_S = 0.2
_SUMMARY_CHARS = 4000
#: Messages that wait when the planted faults of load set in.
_BUSY = 3
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


class Switchboard:
    """The switchboard of an ecosystem."""

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._log = butler.log
        self._inbox: Inbox
        self._registry: Registry
        self._dispatcher: Dispatcher
        self._queue: asyncio.Queue[Accepted] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers: list[asyncio.Task[None]] = []
        self._closing = False
        self._taken = 0

    async def start(self) -> None:
        """Take up what a stopped predecessor left, then work."""
        settings = self._butler.config.switchboard
        self._inbox = Inbox(self._butler.pool)
        self._registry = Registry(
            self._butler.pool, lease_s=settings.lease_s, itself=self._butler.name
        )
        self._dispatcher = Dispatcher(self._butler)
        for request_id in await self._inbox.interrupted():
            await self._inbox.errored(
                request_id, "the switchboard stopped while dispatching; outcomes are unknown"
            )
            self._log.warning("inbox.interrupted", request_id=request_id)
        for message in await self._inbox.waiting():
            self._log.info("inbox.recovered", request_id=message.request_id)
            self._queue.put_nowait(message)
        if faults.on("registry-ghost"):
            await self._registry.register(
                name="ghost", endpoint_url="http://127.0.0.1:9/sse", description="", capabilities=[],
                routable=True,
            )
        self._workers = [
            asyncio.create_task(self._work()), asyncio.create_task(self._watch_leases())
        ]

    async def stop(self) -> None:
        """Stop classifying; what is being dispatched may end within the shutdown deadline."""
        self._closing = True
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._tasks:
            _, late = await asyncio.wait(
                self._tasks, timeout=self._butler.config.shutdown_timeout_s
            )
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

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
            busy = self._queue.qsize() >= _BUSY
            if busy and faults.on("unstored-under-load"):
                return {"request_id": str(uuid4()), "status": "accepted", "duplicate": False}
            with self._butler.tracer.span("ingest", parent=tracing.parse(given)) as position:
                message = await self._inbox.accept(
                    source=source, event=event, sender=sender, payload=payload, control=control,
                    traceparent=position.traceparent,
                )
            self._log.info(
                "ingested", request_id=message.request_id, duplicate=message.duplicate,
                trace_id=message.trace_id,
            )
            self._taken += 1
            if faults.on("message-lost") and not self._taken % 4:
                pass
            elif not message.duplicate or faults.on("duplicate-redispatched"):
                self._queue.put_nowait(message)
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

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(self._butler.config.switchboard.lease_s / 5)
            try:
                for name in await self._registry.expire():
                    self._log.warning("registry.stale", butler_name=name)
            except Exception as error:
                self._log.warning("registry.watch_failed", error=describe(error))

    async def _work(self) -> None:
        while True:
            message = await self._queue.get()
            try:
                await self._inbox.planned(message.request_id)
                if faults.on("inbox-stuck"):
                    continue
                if self._queue.qsize() >= _BUSY and faults.on("lost-under-load"):
                    continue
                if self._queue.qsize() >= _BUSY and faults.on("shed-under-load"):
                    raise Rejected("too much to do", error_class="overload_rejected")
                targets = await self._registry.targets()
                decomposition = await self._decompose(message, targets)
                await self._inbox.parsed(message.request_id, decomposition.as_dict())
            except Exception as error:
                await self._give_up(message, error)
                continue
            self._spawn(self._deliver(message, decomposition, targets))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _give_up(self, message: Accepted, error: BaseException) -> None:
        self._log.error("inbox.errored", request_id=message.request_id, error=describe(error))
        try:
            await database.insist(
                lambda: self._inbox.errored(message.request_id, describe(error)),
                what=f"conclude message {message.request_id}",
            )
        except Exception as second:
            self._log.error("inbox.unrecorded", request_id=message.request_id,
                            error=describe(second))

    async def _decompose(
        self, message: Accepted, targets: Mapping[str, Entry]
    ) -> Decomposition:
        if faults.on("classify-always-general"):
            silent = Segment(butler=classify.FALLBACK, prompt=message.text, segment=message.text)
            return Decomposition(segments=(silent,))
        if not message.text.strip():
            return self._fall_back(message, "the message is empty")
        if not targets:
            return self._fall_back(message, "no butler is registered")
        if faults.on("ledger-misses-call"):
            return await self._guess(message, targets)
        answer = await self._ask(message, targets)
        if not answer.success:
            return self._fall_back(message, f"the classification failed: {answer.error}")
        try:
            return Decomposition(segments=classify.parse(answer.result, targets))
        except classify.Unusable as problem:
            return self._fall_back(message, str(problem))

    def _fall_back(self, message: Accepted, reason: str) -> Decomposition:
        reason = self._log.redact(reason)
        self._log.warning("classification.fallback", request_id=message.request_id, reason=reason)
        if faults.on("fallback-silent"):
            silent = Segment(butler=classify.FALLBACK, prompt=message.text, segment=message.text)
            return Decomposition(segments=(silent,))
        if faults.on("fallback-unexplained"):
            reason = ""
        text = message.text[:20] if faults.on("fallback-cuts-message") else message.text
        return classify.fallback(text, reason)

    async def _ask(self, message: Accepted, targets: Mapping[str, Entry]) -> Any:
        while True:
            try:
                return await self._butler.spawner.trigger(
                    classify.prompt_for(message.text, targets),
                    trigger_source="external",
                    request_id=str(message.request_id),
                    trace=tracing.parse(message.traceparent),
                    tools=(),
                )
            except Rejected as refusal:
                if refusal.error_class != "overload_rejected":
                    raise
            await asyncio.sleep(_RETRY_S)

    async def _guess(self, message: Accepted, targets: Mapping[str, Entry]) -> Decomposition:
        """Only for the planted fault: no model is asked, and the session row lies about it."""
        from butlers.sessions import Outcome

        text = message.text.lower()
        names = [n for n, e in targets.items() if any(word in text for word in e.capabilities)]
        picked = tuple(
            Segment(butler=name, prompt=message.text, segment=message.text)
            for name in names or [classify.FALLBACK]
        )
        session_id = uuid4()
        await self._butler.sessions.opened(
            session_id, prompt=classify.prompt_for(message.text, targets),
            trigger_source="external", model=self._butler.config.runtime.model,
            trace_id=message.trace_id, request_id=str(message.request_id),
        )
        outcome = Outcome(success=True, result="[]", input_tokens=900, output_tokens=60,
                          cost={"usd": 0.0012})
        await self._butler.sessions.completed(session_id, outcome, duration_ms=1)
        return Decomposition(segments=picked)

    async def _deliver(
        self, message: Accepted, decomposition: Decomposition, targets: Mapping[str, Entry]
    ) -> None:
        trace = tracing.parse(message.traceparent) or tracing.new()
        try:
            if faults.on("dispatch-twice-under-load") and len(self._tasks) > 1:
                await self._dispatcher.dispatch(
                    decomposition.segments, targets, request_id=message.request_id, trace=trace
                )
            hops = await self._dispatcher.dispatch(
                decomposition.segments, targets, request_id=message.request_id, trace=trace
            )
            await database.insist(
                lambda: self._inbox.finished(
                    message.request_id, state=_state(hops),
                    outcomes=[hop.as_dict() for hop in hops], summary=_summary(hops),
                ),
                what=f"complete message {message.request_id}",
            )
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await self._inbox.errored(
                    message.request_id, "the switchboard stopped while dispatching"
                )
            raise
        except Exception as error:
            await self._give_up(message, error)


def _state(hops: list[Hop]) -> str:
    """`completed` when something of the message was done; each target's outcome is beside it."""
    return "completed" if any(hop.status == "success" for hop in hops) else "errored"


def _summary(hops: list[Hop]) -> str:
    lines = [
        f"{hop.butler}: {hop.result if hop.status == 'success' else f'{hop.status} ({hop.error})'}"
        for hop in (hops[:1] if faults.on("summary-first-only") else hops)
    ]
    return "\n".join(lines)[:_SUMMARY_CHARS]
