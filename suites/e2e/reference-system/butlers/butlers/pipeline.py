"""The way of a message through the switchboard: classified, dispatched, concluded.

The inbox table is the queue, so no message is lost and none is refused. Some are classified at a
time, and dispatched while others are. Two of the same sender begin their dispatch in the order in which
they came, and reach a butler that both are for one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from butlers import classify, database, faults, shapes, tracing
from butlers.classify import Decomposition, Segment
from butlers.errors import Rejected
from butlers.log import describe
from butlers.turns import Turn, Turns

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping

    from butlers.butler import Butler
    from butlers.dispatch import Dispatcher, Hop
    from butlers.inbox import Accepted, Inbox
    from butlers.registry import Entry, Registry

#: Messages that wait when the planted faults of load set in.
BUSY = 3


class Pipeline:
    """Works through the inbox of one switchboard."""

    def __init__(
        self, butler: Butler, *, inbox: Inbox, registry: Registry, dispatcher: Dispatcher
    ) -> None:
        self._butler = butler
        self._log = butler.log
        self._inbox = inbox
        self._registry = registry
        self._dispatcher = dispatcher
        self._queue: asyncio.Queue[tuple[Accepted, Turn] | None] = asyncio.Queue()
        self._turns = Turns()
        #: Messages that wait or are classified.
        self._in_hand: set[UUID] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers: list[asyncio.Task[None]] = []
        self._closing = False

    async def start(self) -> None:
        """Take up what a stopped predecessor left, then work."""
        replayed = faults.on("inbox-replayed")
        for request_id in () if replayed else await self._inbox.interrupted():
            await self._inbox.errored(
                request_id, "the switchboard stopped while dispatching; outcomes are unknown"
            )
            self._log.warning("inbox.interrupted", request_id=request_id)
        for message in await self._inbox.waiting(dispatched_too=replayed):
            if faults.on("inbox-forgotten"):
                break
            self._log.info("inbox.recovered", request_id=message.request_id)
            self.take(message)
        self._workers = [
            asyncio.create_task(self._work())
            for _ in range(self._butler.config.switchboard.concurrency)
        ]

    @property
    def waiting(self) -> int:
        """Messages that are not begun."""
        return self._queue.qsize()

    def take(self, message: Accepted) -> None:
        """Put a message behind those that came before it, unless it is there already."""
        if message.request_id in self._in_hand and not faults.on("duplicate-redispatched"):
            return
        self._in_hand.add(message.request_id)
        self._queue.put_nowait((message, self._turns.take(message.conversation)))

    def close(self) -> None:
        """Begin nothing from now on."""
        self._closing = True

    async def stop(self) -> None:
        """Begin nothing; what is under way may end within the shutdown deadline.

        Messages that are not begun stay in the inbox, for the next start.
        """
        self.close()
        deadline = asyncio.get_running_loop().time() + self._butler.config.shutdown_timeout_s
        for _ in self._workers:
            self._queue.put_nowait(None)
        await _end(self._workers, deadline)
        await _end(self._tasks, deadline)

    async def _work(self) -> None:
        while (item := await self._queue.get()) is not None and not self._closing:
            message, turn = item
            try:
                with turn:
                    await self._classified(message, turn)
            finally:
                self._in_hand.discard(message.request_id)

    async def _classified(self, message: Accepted, turn: Turn) -> None:
        try:
            if not await self._inbox.planned(message.request_id):
                return
            if faults.on("inbox-stuck"):
                return
            if self.waiting >= BUSY and faults.on("lost-under-load"):
                return
            if self.waiting >= BUSY and faults.on("shed-under-load"):
                raise Rejected("too much to do", error_class="overload_rejected")
            targets = await self._registry.targets()
            decomposition = await self._decompose(message, targets)
            await turn.come()
            if self._closing:
                return  # a dispatch begun now could be cut off; the next start takes the message up
            await self._inbox.parsed(message.request_id, decomposition.as_dict())
        except Rejected as refusal:
            # Refused or cut short by the shutdown: the row stays as it is, for the next start.
            if not self._closing:
                await self._give_up(message, refusal)
        except Exception as error:
            await self._give_up(message, error)
        else:
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
        if faults.on("message-decides") and (named := classify.named_in(message.text)):
            return Decomposition(segments=classify.parse(named, targets))
        answer = await self._ask(message, targets)
        if not answer.success and self._closing:
            # Cut short by the shutdown, which says nothing about the message.
            raise Rejected(str(answer.error), error_class="target_unavailable")
        if not answer.success:
            return self._fall_back(message, f"the classification failed: {answer.error}")
        try:
            return Decomposition(segments=shapes.current().read(answer, message.text, targets))
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
        shape = shapes.current()
        return await self._butler.spawner.trigger(
            shape.prompt(message.text, targets),
            trigger_source="external",
            request_id=str(message.request_id),
            trace=tracing.parse(message.traceparent),
            tools=shape.tools,
            system_prompt=shape.system,
            serial=False,  # as many at a time as there are workers
        )

    async def _guess(self, message: Accepted, targets: Mapping[str, Entry]) -> Decomposition:
        """Only for the planted fault: no model is asked, and the session row lies about it."""
        from uuid import uuid4

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
                    decomposition.segments, targets, request_id=message.request_id, trace=trace,
                    conversation=message.conversation,
                )
            hops = await self._dispatcher.dispatch(
                decomposition.segments, targets, request_id=message.request_id, trace=trace,
                conversation=message.conversation,
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
        if hop.status == "success" or not faults.on("summary-without-failures")
    ]
    return "\n".join(lines)


async def _end(tasks: Iterable[asyncio.Task[None]], deadline: float) -> None:
    """Wait until the deadline for tasks to end, then cancel them."""
    waiting = set(tasks)
    if not waiting:
        return
    left_s = max(0.0, deadline - asyncio.get_running_loop().time())
    _, late = await asyncio.wait(waiting, timeout=left_s)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
