"""Runs one session at a time, in the order asked, and records each truthfully.

The queue behind the running session is bounded; beyond it a trigger is refused, not kept waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid4

from butlers import database, faults, tracing
from butlers.errors import Rejected
from butlers.log import describe
from butlers.sessions import Outcome

if TYPE_CHECKING:
    from butlers.config import ButlerConfig
    from butlers.log import Log
    from butlers.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a runtime is asked to do.

    Attributes:
        session_id: names the session towards the butler's own MCP server.
        tools: bare names of the MCP tools the model may use; none means no server at all.
    """

    session_id: UUID
    prompt: str
    system_prompt: str
    model: str
    tools: tuple[str, ...]
    max_turns: int
    trace: tracing.Trace


class Runtime(Protocol):
    """An adapter to something that runs a model with tools."""

    async def check(self) -> str:
        """Name and version of the binary; StartError when it is not there."""

    async def run(self, job: Job, outcome: Outcome) -> None:
        """Run to the end, filling `outcome` on the way, so that a cut-short run keeps what it did.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnerResult:
    """The answer of :meth:`Spawner.trigger`.

    Attributes:
        status: `success` or an outcome class of the contract.
    """

    session_id: str | None
    status: str
    success: bool
    result: str
    error: str | None = None
    error_class: str | None = None
    trace_id: str | None = None
    duration_ms: int = 0
    tool_calls: tuple[Mapping[str, Any], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "status": self.status,
            "success": self.success,
            "result": self.result,
            "error": self.error,
            "error_class": self.error_class,
            "trace_id": self.trace_id,
            "duration_ms": self.duration_ms,
            "tool_calls": [call["name"] for call in self.tool_calls],
        }


@dataclass(frozen=True, slots=True)
class _Call:
    """What a trigger asked for."""

    prompt: str
    trigger_source: str
    request_id: str | None
    trace: tracing.Trace | None
    tools: tuple[str, ...]
    system_prompt: str


class Spawner:
    """The one place of a butler where sessions start.

    Args:
        tools: names of the MCP tools a session is offered.
    """

    def __init__(
        self, config: ButlerConfig, *, runtime: Runtime, sessions: Sessions,
        tracer: tracing.Tracer, log: Log, tools: tuple[str, ...],
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._sessions = sessions
        self._tracer = tracer
        self._log = log
        self._tools = tools
        self._system_prompt = config.text("CLAUDE.md") * (not faults.on("instructions-dropped"))
        if faults.on("prompt-unwarned"):
            lines = self._system_prompt.splitlines(keepends=True)
            self._system_prompt = "".join(line for line in lines if "is data" not in line)
        self._turn = asyncio.Lock()  # asyncio locks are fair: first come, first served
        self._waiting = 0
        #: Triggers that run or wait. Whether the lock is held says less: for a moment after each
        #: session it is free, though the next in the queue has been promised it.
        self._admitted = 0
        self._running: set[asyncio.Task[SpawnerResult]] = set()
        self._closing = False
        #: id of each session that runs now → the message it belongs to
        self.session_ids: dict[str, str | None] = {}

    @property
    def queued(self) -> int:
        """Triggers that wait for their turn."""
        return self._waiting

    def request_of(self, session_id: str | None) -> str | None:
        """The message that a running session belongs to."""
        if faults.on("message-of-any-session"):
            return next(reversed(self.session_ids.values()), None)
        return self.session_ids.get(session_id or "")

    async def trigger(
        self, prompt: str, *, trigger_source: str, context: str | None = None,
        request_id: str | None = None, trace: tracing.Trace | None = None,
        tools: tuple[str, ...] | None = None, system_prompt: str | None = None,
        serial: bool = True,
    ) -> SpawnerResult:
        """Run one session when its turn has come.

        Args:
            prompt: what the model is asked.
            trigger_source: `tick`, `external`, `trigger` or `schedule:<name>`.
            context: put before the prompt.
            request_id: the message the session belongs to.
            trace: the position to continue; a new trace when there is none.
            tools: overrides the offered tools.
            system_prompt: overrides the butler's `CLAUDE.md`.
            serial: wait for the turn; without it the session runs beside others at once, and the
                caller bounds how many.

        Raises:
            Rejected: the queue is full, or the butler is shutting down.
        """
        self._refuse_when_closing()
        session = _Call(
            f"{context}\n\n{prompt}" if context and not faults.on("context-dropped") else prompt,
            trigger_source="external" if faults.on("trigger-source-external") else trigger_source,
            request_id=request_id, trace=trace,
            tools=self._tools if tools is None else tools,
            system_prompt=self._system_prompt if system_prompt is None else system_prompt,
        )
        if not serial:
            return await self._shielded(session)
        full = self._admitted > self._config.runtime.queue_depth
        if full and faults.on("overload-swallowed"):
            return SpawnerResult(session_id=None, status="success", success=True, result="done")
        if full and not faults.on("queue-unbounded"):
            raise Rejected(
                f"cannot queue a session: {self._waiting} wait already, "
                f"{self._config.runtime.queue_depth} may. Try again later",
                error_class="overload_rejected",
            )
        self._admitted += 1
        try:
            return await self._in_turn(session)
        finally:
            self._admitted -= 1

    async def _in_turn(self, session: _Call) -> SpawnerResult:
        self._waiting += 1
        try:
            if faults.on("queue-last-first"):
                await self._wait_for_later_ones()
            if faults.on("sessions-overlap"):
                self._turn = asyncio.Lock()
            turn = self._turn
            await turn.acquire()
        finally:
            self._waiting -= 1
        try:
            self._refuse_when_closing()
            return await self._shielded(session)
        finally:
            turn.release()

    async def _wait_for_later_ones(self) -> None:
        """Only for the planted fault: whoever came later goes first."""
        mine = self._waiting
        while self._turn.locked() or self._waiting > mine:
            await asyncio.sleep(0.02)

    async def _shielded(self, call: _Call) -> SpawnerResult:
        """Run in a task of its own: shutdown cancels the session, never the caller who waits."""
        task = asyncio.create_task(self._session(call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel("the caller went away")
            await asyncio.wait([task])
            raise

    async def drain(self, timeout_s: float) -> None:
        """Refuse new sessions, let running ones end, cancel what is left after `timeout_s`."""
        self._closing = True
        if not self._running:
            return
        self._log.info("draining", sessions=len(self._running), timeout_s=timeout_s)
        if faults.on("drain-skipped"):
            timeout_s = 0.0
        if faults.on("drain-cut-short"):
            timeout_s = min(timeout_s, 3.0)
        _, late = await asyncio.wait(self._running, timeout=timeout_s)
        for task in late:
            task.cancel("the butler shut down before the session ended")
        if late:
            await asyncio.wait(late)

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise Rejected(
                f"cannot start a session: {self._config.name} is shutting down",
                error_class="target_unavailable",
            )

    async def _session(self, call: _Call) -> SpawnerResult:
        session_id = uuid4()
        interpolated = faults.on("prompt-interpolated")
        prompt = os.path.expandvars(call.prompt) if interpolated else call.prompt
        with self._tracer.span(
            f"session {self._config.name}", parent=call.trace,
            **{"butler": self._config.name, "session.id": str(session_id),
               "request.id": call.request_id, "trigger.source": call.trigger_source},
        ) as position:
            job = Job(
                session_id=session_id, prompt=prompt, system_prompt=call.system_prompt,
                model=self._config.runtime.model, tools=call.tools,
                max_turns=self._config.runtime.max_turns, trace=position,
            )
            cut: asyncio.CancelledError | None = None
            try:
                await _to_its_end(self._sessions.opened(
                    session_id, prompt=prompt, trigger_source=call.trigger_source,
                    model=job.model, trace_id=position.trace_id, request_id=call.request_id,
                ))
            except asyncio.CancelledError as cancelled:
                cut = cancelled
            result = await self._recorded(job, request_id=call.request_id, cut=cut)
            self._tracer.failed(result.error)
            return result

    async def _recorded(
        self, job: Job, *, request_id: str | None, cut: asyncio.CancelledError | None
    ) -> SpawnerResult:
        """Run a session that is open on record, and close it.

        Args:
            job: what it is to do.
            request_id: the message it belongs to.
            cut: what it was cancelled by before it could begin.
        """
        outcome = Outcome(model=job.model)
        started = time.monotonic()
        ids = {"session_id": job.session_id, "request_id": request_id,
               "trace_id": job.trace.trace_id}
        self._log.info("session.started", **ids)
        self.session_ids[str(job.session_id)] = request_id
        try:
            if cut is not None:
                raise cut
            unbounded = faults.on("session-without-deadline") or (
                not job.tools and faults.on("classification-without-deadline")
            )
            async with asyncio.timeout(
                None if unbounded else self._config.runtime.session_timeout_s
            ):
                await self._runtime.run(job, outcome)
        except TimeoutError:
            outcome.success = False
            outcome.error_class = "timeout"
            outcome.error = f"no end within {self._config.runtime.session_timeout_s:g} s"
        except asyncio.CancelledError as cancelled:
            if faults.on("session-left-open"):
                raise
            outcome.success = False
            outcome.error_class = "internal_error"
            outcome.error = str(next(iter(cancelled.args), "the session was cancelled"))
        except Exception as error:
            outcome.success = False
            outcome.error_class = "internal_error"
            outcome.error = describe(error)
        finally:
            self.session_ids.pop(str(job.session_id), None)
        if faults.on("failed-session-success") and not outcome.success:
            outcome.success, outcome.error, outcome.error_class = True, None, None
        outcome.error = self._log.redact(outcome.error) if outcome.error else None
        outcome.result = self._log.redact(outcome.result)  # of a failure it is the provider's words
        duration_ms = int((time.monotonic() - started) * 1000)
        # It has ended; whoever cancels it now comes too late.
        with contextlib.suppress(asyncio.CancelledError):
            await _to_its_end(database.insist(
                lambda: self._sessions.completed(job.session_id, outcome, duration_ms=duration_ms),
                what=f"complete session {job.session_id}",
            ))
        self._log.info(
            "session.completed" if outcome.success else "session.failed", **ids,
            duration_ms=duration_ms, tools=",".join(call["name"] for call in outcome.tool_calls),
            **({} if outcome.success else {"error": outcome.error}),
        )
        return SpawnerResult(
            session_id=str(job.session_id),
            status="success" if outcome.success else outcome.error_class or "internal_error",
            success=outcome.success, result=outcome.result, error=outcome.error,
            error_class=outcome.error_class, trace_id=job.trace.trace_id,
            duration_ms=duration_ms, tool_calls=tuple(outcome.tool_calls),
        )


async def _to_its_end(writing: Coroutine[Any, Any, None]) -> None:
    """Write a row whatever happens meanwhile; a cancellation is raised when it stands there."""
    task = asyncio.create_task(writing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
