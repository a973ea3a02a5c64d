"""An episode as a workflow: model turns and tool calls in turn, assets, end.

Everything that happens outside of Temporal is an activity; the workflow decides the order alone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workbench_contract.episodes import EpisodeStatus
    from workbench_controller.retries import KEEP_TRYING
    from workbench_controller.run import (
        WORKFLOW,
        AssetToKeep,
        Call,
        CallResult,
        FoundAsset,
        FoundAssets,
        Run,
        Step,
        Turn,
    )
    from workbench_foundation import faults

#: Uploads of one episode at a time.
_AT_ONCE = 4
_THRICE = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3)


@workflow.defn(name=WORKFLOW)
class EpisodeWorkflow:
    """One episode, from its start to a final status that is written down before it ends."""

    @workflow.run
    async def run(self, run: Run) -> str:
        """Run the episode; its closing words."""
        self._run = run
        self._ordinal = 0
        try:
            if not await self._step(EpisodeStatus.RUNNING, "a worker has taken it up"):
                return "it was over before it began"
            await self._open_session()
            report = await self._work()
            await self._keep_assets()
        # Whatever ends the work early is recorded as what it was, at Temporal as well.
        except (ActivityError, ApplicationError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._end(EpisodeStatus.INTERRUPTED, "it was interrupted")
                raise
            reason = _reason(error)
            await self._end(EpisodeStatus.FAILED, reason)
            raise ApplicationError(reason, non_retryable=True) from error
        await self._end(EpisodeStatus.COMPLETED, "the agent has finished")
        return report

    async def _open_session(self) -> None:
        await workflow.execute_activity(
            "open_session",
            self._run,
            start_to_close_timeout=timedelta(seconds=2 * self._run.limits.rpc_s),
            retry_policy=_THRICE,
        )

    async def _work(self) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": self._run.task}]
        for turn in range(self._run.limits.turns):
            answer = await self._model_turn(messages)
            messages.append({"role": "assistant", "content": answer["content"]})
            calls = [block for block in answer["content"] if block.get("type") == "tool_use"]
            if not calls:
                return "\n".join(block.get("text", "") for block in answer["content"])
            results = []
            for index, call in enumerate(calls):
                result = await self._tool_call(f"turn{turn}-call{index}", call)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call["id"],
                        "content": _content(result),
                        "is_error": not result.ok,
                    }
                )
            messages.append({"role": "user", "content": results})
        turns = self._run.limits.turns
        if faults.on("used-up-completed"):
            return f"all of its {turns} turns"
        raise ApplicationError(f"cannot finish: the agent used all of its {turns} turns")

    async def _model_turn(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        limits = self._run.limits
        found: dict[str, Any] = await workflow.execute_activity(
            "model_turn",
            Turn(run=self._run, ordinal=self._next(), messages=messages),
            start_to_close_timeout=timedelta(seconds=limits.model_s + limits.rpc_s),
            heartbeat_timeout=timedelta(seconds=limits.heartbeat_s),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=200),
                maximum_interval=timedelta(seconds=5),
                maximum_attempts=limits.model_attempts,
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        stop_if_cancelled()
        return found

    async def _tool_call(self, job: str, call: dict[str, Any]) -> CallResult:
        limits = self._run.limits
        asked = Call(
            run=self._run,
            ordinal=self._next(),
            job=job,
            name=str(call["name"]),
            arguments=dict(call.get("input") or {}),
        )
        result: CallResult = await workflow.execute_activity(
            "tool_call",
            asked,
            result_type=CallResult,
            start_to_close_timeout=timedelta(seconds=limits.tool_s + limits.rpc_s),
            heartbeat_timeout=timedelta(seconds=limits.heartbeat_s),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=limits.tool_pause_s),
                # Each attempt waits by itself for a worker that starts.
                backoff_coefficient=1,
                maximum_attempts=limits.tool_attempts,
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        stop_if_cancelled()
        return result

    async def _keep_assets(self) -> None:
        limits = self._run.limits
        found = await workflow.execute_activity(
            "list_assets",
            self._run,
            result_type=FoundAssets,
            start_to_close_timeout=timedelta(seconds=limits.rpc_s),
            retry_policy=_THRICE,
        )
        # What was handed over is there for good, and many: a few at once, and first, so that nothing takes
        # the place of it.
        final = [each for each in found.assets if each.handover_id is not None]
        for start in range(0, len(final), _AT_ONCE):
            await asyncio.gather(*map(self._keep_asset, final[start : start + _AT_ONCE]))
        for each in found.assets:
            if each.handover_id is None:
                await self._keep_asset(each)

    async def _keep_asset(self, asset: FoundAsset) -> None:
        limits = self._run.limits
        await workflow.execute_activity(
            "keep_asset",
            AssetToKeep(run=self._run, asset=asset),
            start_to_close_timeout=timedelta(seconds=limits.store_s),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=limits.store_pause_s),
                maximum_attempts=limits.store_attempts,
            ),
        )

    async def _end(self, status: EpisodeStatus, reason: str) -> None:
        """Write the end down, whole: an interruption that comes meanwhile comes too late."""
        ending = asyncio.create_task(self._write_end(status, reason))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending

    async def _write_end(self, status: EpisodeStatus, reason: str) -> None:
        await workflow.execute_activity(
            "collect_events",
            self._run,
            start_to_close_timeout=timedelta(seconds=self._run.limits.rpc_s),
            retry_policy=_THRICE,
        )
        await self._step(status, reason)

    async def _step(self, status: EpisodeStatus, reason: str) -> bool:
        taken: bool = await workflow.execute_activity(
            "step",
            Step(run=self._run, status=status.value, reason=reason),
            start_to_close_timeout=timedelta(seconds=self._run.limits.rpc_s),
            retry_policy=KEEP_TRYING,
        )
        return taken

    def _next(self) -> int:
        self._ordinal += 1
        return self._ordinal


def stop_if_cancelled() -> None:
    """What is waited for until its cancellation is complete may complete instead, and say nothing of it.

    Raises:
        asyncio.CancelledError: the workflow has been cancelled meanwhile.
    """
    if workflow.cancellation_reason() is not None and not faults.on("interrupt-lost-in-call"):
        raise asyncio.CancelledError("it was cancelled while something of it came to its end")


def _content(result: CallResult) -> str | list[dict[str, Any]]:
    """What a call found, as the Messages API takes it."""
    if result.image is None:
        return result.text
    media_type, data = result.image
    source = {"type": "base64", "media_type": media_type, "data": data}
    return [{"type": "text", "text": result.text}, {"type": "image", "source": source}]


def _reason(error: BaseException) -> str:
    """Why the work ended, in the words of the activity that could not do its part."""
    if not isinstance(error, ActivityError) or error.cause is None:
        return str(error)
    if isinstance(error.cause, ApplicationError):
        return error.cause.message
    return f"cannot finish {error.activity_type}: {error.cause}"
