"""Hands segments to their butlers through `route.execute` and records every hop."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from butlers import database, faults, tracing
from butlers.client import CallProblem, call
from butlers.turns import Turn, Turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butlers.butler import Butler
    from butlers.classify import Segment
    from butlers.registry import Entry, Registry

TOOL = "route.execute"
DELIVER = "deliver"
_INSERT = """
    INSERT INTO routing_log (source_butler, target_butler, tool_name, success, duration_ms,
                             error, error_class, trace_id, request_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
OUTCOMES = frozenset({
    "success", "target_unavailable", "timeout", "validation_error", "overload_rejected",
    "internal_error",
})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What came of one `route.execute`."""

    butler: str
    status: str
    duration_ms: int
    session_id: str | None = None
    result: str = ""
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "butler": self.butler, "status": self.status, "session_id": self.session_id,
            "duration_ms": self.duration_ms, "result": self.result, "error": self.error,
            "error_class": None if self.status == "success" else self.status,
        }


def _message(request_id: str | None) -> UUID | None:
    """The message a delivery belongs to; whoever triggered its session may call it anything."""
    try:
        return UUID(request_id) if request_id else None
    except ValueError:
        return None


class Dispatcher:
    """Dispatches on behalf of one switchboard."""

    def __init__(self, butler: Butler, registry: Registry) -> None:
        self._butler = butler
        self._registry = registry
        self._settings = butler.config.switchboard
        limit = self._settings.max_in_flight
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(limit)
        )
        self._turns = Turns()

        #: Only for the planted fault.
        self._first_urls: dict[str, str] = {}

    async def dispatch(
        self, segments: tuple[Segment, ...], targets: Mapping[str, Entry], *, request_id: UUID,
        trace: tracing.Trace, conversation: str,
    ) -> list[Hop]:
        """Different targets at a time, segments for the same target in order.

        Of one conversation, a target gets nothing before its answer to what came earlier: two
        connections may overtake each other on the way. What that wait costs counts for the hop.

        Returns:
            One hop per segment, in the order of the segments.
        """
        by_target: defaultdict[str, list[int]] = defaultdict(list)
        for index, segment in enumerate(segments):
            by_target[segment.butler].append(index)
        hops: dict[int, Hop] = {}

        async def in_order(target: str, indexes: list[int]) -> None:
            with self._turns.take((conversation, target)) as turn:
                for index in indexes:
                    hops[index] = await self._hop(
                        segments[index], targets, request_id=request_id, trace=trace, turn=turn
                    )

        async with asyncio.TaskGroup() as group:
            for target, indexes in by_target.items():
                group.create_task(in_order(target, indexes))
        return [hops[index] for index in range(len(segments))]

    async def deliver(
        self, arguments: dict[str, Any], *, entry: Entry | None, target: str, trace: tracing.Trace
    ) -> dict[str, Any]:
        """Hand a delivery over and record the hop; the answer tells what became of it."""
        origin = arguments["origin_butler"]
        with self._butler.tracer.span(
            f"{DELIVER} {target}", parent=trace,
            **{"target.butler": target, "source.butler": origin},
        ) as position:
            started = time.monotonic()
            try:
                if entry is None:
                    raise CallProblem(
                        f"{target} is not registered, or its lease ran out",
                        error_class="target_unavailable",
                    )
                answer = await call(
                    entry.endpoint_url, DELIVER,
                    {**arguments, "trace_context": {"traceparent": position.traceparent}},
                    headers={"traceparent": position.traceparent},
                    connect_timeout_s=self._settings.connect_timeout_s,
                    timeout_s=self._settings.hop_timeout_s,
                )
            except CallProblem as problem:
                answer = {
                    "status": "failed", "error": str(problem), "error_class": problem.error_class
                }
            delivered = answer.get("status") == "delivered"
            hop = Hop(
                butler=target,
                status="success" if delivered else answer.get("error_class") or "internal_error",
                duration_ms=int(
                    (time.monotonic() - started)
                    * (1 if faults.on("delivery-hop-in-seconds") else 1000)
                ),
                error=None if delivered else str(answer.get("error") or answer.get("status")),
            )
            self._butler.tracer.failed(hop.error)
        await self._record(
            hop, request_id=_message(arguments["request_id"]), trace=trace, source=origin, tool=DELIVER
        )
        return answer

    async def _hop(
        self, segment: Segment, targets: Mapping[str, Entry], *, request_id: UUID,
        trace: tracing.Trace, turn: Turn,
    ) -> Hop:
        with self._butler.tracer.span(
            f"{TOOL} {segment.butler}", parent=trace,
            **{"target.butler": segment.butler, "request.id": str(request_id)},
        ) as position:
            started = time.monotonic()
            try:
                answer = await self._in_place(segment, targets, request_id, position, turn)
            except CallProblem as problem:
                answer = {"status": problem.error_class, "error": str(problem)}
                lies = (("dead-target-success", "target_unavailable"),
                        ("refusal-success", "validation_error"))
                if any(faults.on(name) and status == problem.error_class
                       for name, status in lies):
                    answer = {"status": "success"}
                if faults.on("partial-aborts"):
                    raise
            status = answer.get("status")
            hop = Hop(
                butler=segment.butler,
                status=status if status in OUTCOMES else "internal_error",
                duration_ms=int((time.monotonic() - started) * 1000),
                session_id=answer.get("session_id"),
                result=str(answer.get("result") or ""),
                error=answer.get("error"),
            )
            if hop.status != "success":
                self._butler.tracer.failed(hop.error or hop.status)
        await self._record(hop, request_id=request_id, trace=trace)
        return hop

    async def _in_place(
        self, segment: Segment, targets: Mapping[str, Entry], request_id: UUID,
        position: tracing.Trace, turn: Turn,
    ) -> dict[str, Any]:
        """Wait for its turn and a place among the hops to the target, then call it.

        One deadline is for all of it.
        """
        clock = asyncio.get_running_loop()
        ends = clock.time() + self._settings.hop_timeout_s
        place = self._slots[segment.butler]
        try:
            async with asyncio.timeout_at(ends):
                await turn.come()
                await place.acquire()
        except TimeoutError as error:
            raise CallProblem(
                f"no place among {self._settings.max_in_flight} hops to {segment.butler}, behind what "
                f"its sender said before, within {self._settings.hop_timeout_s:g} s",
                error_class="timeout",
            ) from error
        kept = faults.on("place-kept")
        try:
            answer = await self._call(
                segment, targets, request_id, position,
                timeout_s=round(max(0.0, ends - clock.time()), 3),
            )
            kept = False
            return answer
        finally:
            if not kept:
                place.release()

    async def _call(
        self, segment: Segment, targets: Mapping[str, Entry], request_id: UUID,
        position: tracing.Trace, *, timeout_s: float,
    ) -> dict[str, Any]:
        if (entry := (await self._reachable(targets)).get(segment.butler)) is None:
            raise CallProblem(
                f"{segment.butler} is not registered, or its lease ran out",
                error_class="target_unavailable",
            )
        arguments: dict[str, Any] = {
            "schema_version": "route.v1",
            "request_id": str(request_id),
            "source_butler": self._butler.name,
            "target_butler": segment.butler,
            "input": {
                "prompt": segment.prompt + " Thank you." * faults.on("prompt-embellished"),
                "segment": segment.segment,
            },
        }
        headers = {}
        if not faults.on("trace-dropped"):
            arguments["trace_context"] = {"traceparent": position.traceparent}
            headers["traceparent"] = position.traceparent
        answer = await self._request(entry, arguments, headers, timeout_s=timeout_s)
        if faults.on("dispatch-twice"):
            await self._request(entry, arguments, headers, timeout_s=timeout_s)
        if faults.on("extra-session"):
            for other in targets.values():
                if other.name != entry.name:
                    await self._request(
                        other, {**arguments, "target_butler": other.name}, headers,
                        timeout_s=timeout_s,
                    )
                    break
        return answer

    async def _reachable(self, then: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """Who may be reached now: since it was classified a message has waited for others."""
        found = then

        async def look() -> None:
            nonlocal found
            found = await self._registry.targets()

        if not faults.on("targets-of-then"):
            await database.insist(look, what="look up who may be reached")
        return found

    async def _request(
        self, entry: Entry, arguments: dict[str, Any], headers: dict[str, str], *,
        timeout_s: float,
    ) -> dict[str, Any]:
        url = entry.endpoint_url
        if faults.on("address-kept"):
            url = self._first_urls.setdefault(entry.name, url)
        return await call(
            url, TOOL, arguments, headers=headers,
            connect_timeout_s=self._settings.connect_timeout_s,
            timeout_s=86_400 if faults.on("hop-without-deadline") else timeout_s,
        )

    async def _record(
        self, hop: Hop, *, request_id: UUID | None, trace: tracing.Trace,
        source: str | None = None, tool: str = TOOL,
    ) -> None:
        if faults.on("error-overlooked"):
            self._butler.log.error("dispatch.cleanup_failed", request_id=request_id, error="stale")
        if faults.on("traceback-overlooked"):
            _print_traceback()
        self._butler.log.info(
            "dispatched", request_id=request_id, target=hop.butler, outcome=hop.status,
            duration_ms=hop.duration_ms, trace_id=trace.trace_id,
            **({"error": hop.error} if hop.error else {}),
        )
        if faults.on("routing-log-missing"):
            return
        duration = hop.duration_ms // (1000 if faults.on("hop-in-seconds") else 1)
        row = (
            source or self._butler.name, hop.butler, tool, hop.status == "success", duration,
            hop.error, None if hop.status == "success" else hop.status, trace.trace_id, request_id,
        )
        await database.insist(
            lambda: self._butler.pool.execute(_INSERT, *row), what=f"log the hop to {hop.butler}"
        )


def _print_traceback() -> None:
    """Only for the planted fault: an error that is printed and passed over."""
    import traceback

    try:
        raise LookupError("no such slot")
    except LookupError:
        traceback.print_exc()
