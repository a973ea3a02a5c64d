"""What an episode's workflow does outside of Temporal: steps, model turns, tool calls, events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import httpx
from temporalio import activity
from temporalio.exceptions import ApplicationError

from workbench_contract.catalogue import CatalogueQuery
from workbench_contract.episodes import EpisodeStatus, TraceKind
from workbench_contract.handover import Opened
from workbench_contract.journal import JournalEntry
from workbench_controller import database, entries, model_client, skills, tools
from workbench_controller.catalogue.constraints import BadConstraint
from workbench_controller.catalogue.cursor import BadCursor
from workbench_controller.catalogue.reader import Catalogue, NoSuchVersion
from workbench_controller.catalogue.search import search
from workbench_controller.handovers import BytesDiffer
from workbench_controller.ingest import GapError, pull_and_store
from workbench_controller.journal import note_search
from workbench_controller.lifecycle import TransitionRefused, transition
from workbench_controller.model_client import ModelRefused
from workbench_controller.opening import opening_of
from workbench_controller.roles import system_prompt
from workbench_controller.run import Call, CallResult, Run, Step, Turn
from workbench_controller.settings import Settings
from workbench_controller.worker_client import WorkerClient, Whose
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

#: More of a tool's answer than this is no use to a model.
_RESULT_CHARS = 20_000
_TEXT_CHARS = 2_000
_BEAT_S = 0.3
#: Whether the episode is still wanted is looked up every so many beats.
_LOOK_BEATS = 3
_CANCEL_ATTEMPTS = 5
#: For a worker that starts again, since an attempt that finds none is lost as well: six seconds, where it is refused at once.
_AWAITED_ATTEMPTS = 20


class EpisodeOver(Exception):
    """The episode has been ended otherwise."""


def whose(run: Run) -> Whose:
    """On whose behalf the worker is asked."""
    return Whose(episode_id=run.episode_id, session_id=run.session_id, trace_id=run.trace_id)


def telling(run: Run) -> contextlib.AbstractContextManager[None]:
    """Log lines name the episode."""
    return log.about(episode_id=run.episode_id, trace_id=run.trace_id, session_id=run.session_id)


async def collected(pool: asyncpg.Pool, worker: WorkerClient, run: Run) -> None:
    """Pull what the worker has; what it does not give now is pulled by the controller later."""
    try:
        await pull_and_store(pool, worker, run.session_id)
    except (httpx.HTTPError, GapError, BytesDiffer) as error:
        log.warning("pull_failed", reason=describe(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeActivities:
    """Activities, with what they need."""

    settings: Settings
    pool: asyncpg.Pool
    catalogue: Catalogue
    worker: WorkerClient

    def all(self) -> list[Callable[..., Any]]:
        """The activities."""
        return [
            self.step,
            self.open_session,
            self.model_turn,
            self.tool_call,
            self.collect_events,
        ]

    @activity.defn(name="step")
    async def step(self, step: Step) -> bool:
        """Take a step of the episode's life; false when it has ended otherwise already."""
        run, status, reason = step.run, EpisodeStatus(step.status), step.reason
        with telling(run):
            if status is EpisodeStatus.INTERRUPTED and not await self._wanted_interrupted(run):
                status, reason = EpisodeStatus.CANCELLED, "its workflow was cancelled at Temporal"
            if status is EpisodeStatus.FAILED and faults.on("failure-completed"):
                status = EpisodeStatus.COMPLETED
            try:
                run_id = activity.info().workflow_run_id
                await transition(
                    self.pool, run.episode_id, status, reason=reason, run_id=run_id
                )
            except TransitionRefused as refused:
                log.warning("step_refused", reason=str(refused))
                return False
            return True

    async def _wanted_interrupted(self, run: Run) -> bool:
        found: bool = await self.pool.fetchval(
            "SELECT e.interrupt_requested_at IS NOT NULL OR f.interrupt_requested_at IS NOT NULL"
            " FROM episodes e LEFT JOIN flows f USING (flow_id) WHERE e.episode_id = $1",
            run.episode_id,
        )
        return found

    @activity.defn(name="open_session")
    async def open_session(self, run: Run) -> None:
        """Tell the worker what the session is for, and what it begins with."""
        with telling(run):
            opening = await opening_of(self.pool, run)
            try:
                answer = await self.worker.post(
                    whose(run), "/session/open", opening.model_dump(mode="json")
                )
            except httpx.HTTPError as error:
                reason = f"cannot open the session: the worker does not answer ({describe(error)})"
                raise ApplicationError(reason) from error
            if not answer.is_success:
                reason = f"cannot open the session: the worker says {answer.text[:_TEXT_CHARS]}"
                raise ApplicationError(reason, non_retryable=answer.status_code < 500)
            given = Opened.model_validate_json(answer.content).skills
            await skills.keep(self.pool, run.episode_id, given)
            log.info("skills", commit=given.commit, problem=given.problem)

    @activity.defn(name="model_turn")
    async def model_turn(self, turn: Turn) -> dict[str, Any]:
        """Ask the model for its next turn."""
        run, started = turn.run, datetime.now(UTC)
        with telling(run):
            try:
                async with self._beating(run):
                    answer = await model_client.ask(
                        self.settings.model,
                        system=system_prompt(
                            run.role, run.purpose, task=_task(run),
                            skills=await skills.told(self.pool, run.episode_id),
                        ),
                        messages=[{"role": "user", "content": _task(run)}, *turn.messages[1:]],
                        tools=tools.offered(run.role),
                    )
            except ModelRefused as refused:
                detail: dict[str, Any] = {"reason": str(refused)}
                await self._trace(
                    run, turn.ordinal, TraceKind.MODEL, started, ok=False, detail=detail
                )
                raise ApplicationError(str(refused), non_retryable=True) from refused
            except EpisodeOver as over:
                raise ApplicationError(str(over), non_retryable=True) from over
            detail = {"stop_reason": answer["stop_reason"], "usage": answer["usage"]}
            await self._trace(run, turn.ordinal, TraceKind.MODEL, started, ok=True, detail=detail)
            log.info("model_turn", ordinal=turn.ordinal, stop_reason=answer["stop_reason"])
            return answer

    @activity.defn(name="tool_call")
    async def tool_call(self, call: Call) -> CallResult:
        """Have a tool call carried out, by the worker or here; what is refused is answered to the model."""
        run, started = call.run, datetime.now(UTC)
        attempt = activity.info().attempt
        with telling(run):
            # An attempt that was lost may have left its job running; each has the id of the first.
            if attempt > 1:
                await self._take_over(run, call.job)
            try:
                tool, body = tools.request_of(
                    run.role, call.name, call.arguments,
                    job_id=call.job, seed=run.seed, variant=run.variant,
                )  # fmt: skip
            except ValueError as error:
                result = CallResult(text=str(error), ok=False)
            else:
                if tool.here:
                    result = await self._here(run, tool, body, call.job)
                else:
                    result = await self._on_worker(run, tool, body, call.job)
            detail = {"arguments": _short(call.arguments), "result": result.text[:_TEXT_CHARS]}
            await self._trace(
                run, call.ordinal, TraceKind.TOOL, started,
                ok=result.ok, detail=detail, name=call.name,
            )  # fmt: skip
            log.info("tool_call", tool=call.name, ok=result.ok, job_id=call.job)
            if faults.on("failed-call-told-as-done"):
                return CallResult(text=result.text, ok=True)
            return result

    async def _here(
        self, run: Run, tool: tools.Tool, body: dict[str, Any], job_id: str
    ) -> CallResult:
        if tool.path == "/journal":
            return await self._entry(run, JournalEntry.model_validate(body, strict=False), job_id)
        return await self._search(run, body, job_id)

    async def _entry(self, run: Run, entry: JournalEntry, job_id: str) -> CallResult:
        """What is said of an entry: its number, or why it is not taken."""
        try:
            await pull_and_store(self.pool, self.worker, run.session_id)
            named = str(uuid.uuid4()) if faults.on("journal-attempts-apart") else job_id
            ordinal = await entries.take(self.pool, run.episode_id, named, entry)
        except (httpx.HTTPError, GapError, BytesDiffer) as error:
            reason = f"cannot take the entry: events are still to come ({describe(error)})"
            raise ApplicationError(reason) from error
        except entries.Unobserved as unobserved:
            return CallResult(text=str(unobserved), ok=False)
        return CallResult(text=json.dumps({"ordinal": ordinal}), ok=True)

    async def _search(self, run: Run, body: dict[str, Any], job_id: str) -> CallResult:
        """The answer that whoever searches over HTTP is given, whole: it is bounded by its limit."""
        query = CatalogueQuery.model_validate(body)
        try:
            answer = await search(self.catalogue, query)
        except (BadConstraint, BadCursor, NoSuchVersion) as error:
            return CallResult(text=str(error), ok=False)
        await note_search(self.pool, run.episode_id, job_id, query, answer)
        return CallResult(text=answer.model_dump_json(), ok=True)

    async def _on_worker(
        self, run: Run, tool: tools.Tool, body: dict[str, Any], job_id: str
    ) -> CallResult:
        if faults.on("code-run-by-controller") and tool.path == "/runtime/execute":
            return await _here(body["command"])
        try:
            async with self._beating(run):
                answer = await self.worker.post(
                    whose(run), tool.path, body, timeout_s=self.settings.tool_s
                )
        except httpx.TransportError as error:
            if faults.on("code-run-in-need") and tool.path == "/runtime/execute":
                return await _here(body["command"])
            reason = f"cannot finish {tool.path}: the worker does not answer ({describe(error)})"
            raise ApplicationError(reason) from error
        except asyncio.CancelledError:
            if tool.jobs:
                await asyncio.shield(self._end_job(run, job_id))
            raise
        except EpisodeOver as over:
            if tool.jobs:
                await self._end_job(run, job_id)
            raise ApplicationError(str(over), non_retryable=True) from over
        if answer.status_code >= 500 and not _is_refusal(answer):
            raise httpx.HTTPStatusError("the worker failed", request=answer.request, response=answer)
        if tool.hands_over and answer.is_success:
            # Who is told that a hand-over is accepted can rely on it: it is stored before.
            await pull_and_store(self.pool, self.worker, run.session_id)
        if tool.path == "/fs/view" and answer.is_success:
            return _seen(answer.json())
        if tool.path == "/benchmark/preview" and answer.is_success:
            data = await self.worker.asset(whose(run), answer.json()["views"][0]["path"])
            image = ("image/png", base64.b64encode(data).decode())
            return CallResult(text=answer.text, ok=True, image=image)
        return CallResult(text=_fitting(answer.text), ok=answer.is_success)

    async def _take_over(self, run: Run, job_id: str) -> None:
        """Have the worker, which may only be starting, end what the attempt before has left."""
        try:
            await self._end_job(run, job_id, attempts=_AWAITED_ATTEMPTS)
        except asyncio.CancelledError:
            await asyncio.shield(self._end_job(run, job_id))
            raise

    async def _end_job(
        self, run: Run, job_id: str, *, attempts: int = _CANCEL_ATTEMPTS
    ) -> None:
        """Have the worker end a job; it is asked again when it does not answer."""
        if faults.on("interrupt-leaves-job"):
            return
        for left in reversed(range(attempts)):
            activity.heartbeat()
            try:
                was_running = await self.worker.cancel(whose(run), job_id)
            except httpx.HTTPError as error:
                log.warning("job_not_cancelled", job_id=job_id, reason=describe(error), left=left)
                await asyncio.sleep(_BEAT_S)
            else:
                log.info("job_cancelled", job_id=job_id, was_running=was_running)
                return

    @activity.defn(name="collect_events")
    async def collect_events(self, run: Run) -> None:
        """Pull what the worker has."""
        with telling(run):
            await collected(self.pool, self.worker, run)

    @contextlib.asynccontextmanager
    async def _beating(self, run: Run) -> AsyncIterator[None]:
        """Tell Temporal that the activity is alive, and stop it when the episode is over.

        Raises:
            EpisodeOver: the episode has been ended otherwise.
        """
        mine = asyncio.current_task()
        assert mine is not None
        over = False

        async def beat() -> None:
            nonlocal over
            beats = 0
            while True:
                activity.heartbeat()
                await asyncio.sleep(_BEAT_S)
                beats += 1
                if beats % _LOOK_BEATS == 0 and await self._is_over(run):
                    over = True
                    mine.cancel()
                    return

        beating = asyncio.create_task(beat())
        try:
            yield
        except asyncio.CancelledError:
            if over and mine.uncancel() == 0:
                detail = "cannot go on: the episode has been ended"
                raise EpisodeOver(detail) from None
            raise
        finally:
            beating.cancel()

    async def _is_over(self, run: Run) -> bool:
        try:
            status = await self.pool.fetchval(
                "SELECT status FROM episodes WHERE episode_id = $1", run.episode_id
            )
        except database.AWAY:
            return False
        return status is not None and EpisodeStatus(status).final

    async def _trace(
        self, run: Run, ordinal: int, kind: TraceKind, started: datetime, *,
        ok: bool, detail: dict[str, Any], name: str = "",
    ) -> None:  # fmt: skip
        if faults.on("retry-recorded-again"):
            ordinal += 1000 * (activity.info().attempt - 1)
        await self.pool.execute(
            "INSERT INTO traces (id, episode_id, ordinal, trace_id, kind, name, ok, detail,"
            " started_at, finished_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
            " ON CONFLICT DO NOTHING",
            *(f"{run.episode_id}-{ordinal}", run.episode_id, ordinal, run.trace_id, kind.value),
            *(name or self.settings.model.name, ok, detail, started, datetime.now(UTC)),
        )


def _task(run: Run) -> str:
    """The task, as the model gets it."""
    if faults.on("task-withheld"):
        return "Do what you are here for."
    task = run.task[:24] if faults.on("task-cut") else run.task
    return f"{task}\n\n{run.told}" if run.told else task


def _is_refusal(answer: httpx.Response) -> bool:
    """Whether a 5xx answer is the worker's own word about the operation."""
    try:
        return "detail" in answer.json()
    except ValueError:
        return False


def _seen(answer: dict[str, Any]) -> CallResult:
    """What was looked at: an image is shown; of a video it is said that it is one."""
    content = answer.pop("content")
    shown = answer["media_type"].startswith("image/")
    image = (answer["media_type"], content) if shown else None
    return CallResult(text=json.dumps(answer, ensure_ascii=False), ok=True, image=image)


def _short(arguments: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    return arguments if len(text) <= _TEXT_CHARS else {"cut": text[:_TEXT_CHARS]}


def _fitting(text: str) -> str:
    """A tool's answer as the model gets it; one that is cut says so, and how long it was."""
    if len(text) <= _RESULT_CHARS:
        return text
    mark = f"\n[truncated: this is the beginning of {len(text)} characters; ask for less at once]"
    return text[: _RESULT_CHARS - len(mark)] + mark


async def _here(command: str) -> CallResult:
    """Only for the planted faults `code-run-by-controller` and `code-run-in-need`."""
    process = await asyncio.create_subprocess_shell(
        command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    found = {"exit_code": process.returncode, "stdout": out.decode(), "stderr": err.decode()}
    return CallResult(text=json.dumps(found), ok=True)
