"""A batch as a workflow: its episodes in order, so many at once as it may, whatever becomes of one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from workbench_controller.retries import KEEP_TRYING
    from workbench_controller.run import BATCH, WORKFLOW, BatchRun, Member, Run
    from workbench_controller.workflow import stop_if_cancelled


@workflow.defn(name=BATCH)
class BatchWorkflow:
    """One batch, until each of its episodes has ended."""

    @workflow.run
    async def run(self, batch: BatchRun) -> None:
        """Run the episodes."""
        self._batch = batch
        self._left = list(batch.episode_ids)
        await asyncio.gather(*(self._place() for _ in range(batch.concurrency)))

    async def _place(self) -> None:
        """One of the places: an episode after the other."""
        while self._left:
            await self._episode(self._left.pop(0))

    async def _episode(self, episode_id: str) -> None:
        run: Run | None = await workflow.execute_activity(
            "run_of_member",
            Member(batch=self._batch, episode_id=episode_id),
            result_type=Run | None,
            start_to_close_timeout=timedelta(seconds=self._batch.limits.rpc_s),
            retry_policy=KEEP_TRYING,
        )
        if run is None:
            return
        try:
            await workflow.execute_child_workflow(
                WORKFLOW,
                run,
                id=f"episode-{episode_id}",
                execution_timeout=timedelta(seconds=self._batch.episode_s),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                memo={
                    "episode_id": episode_id,
                    "trace_id": run.trace_id,
                    "batch_id": self._batch.batch_id,
                },
            )
        except ChildWorkflowError as error:
            # One that was interrupted is as one that failed; a batch that was cancelled begins nothing more.
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                raise
            # It is on record with its reason; the others go on.
            workflow.logger.info("an episode of the batch did not complete: %s", error)
        stop_if_cancelled()
