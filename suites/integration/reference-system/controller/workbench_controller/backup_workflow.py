"""A backup as a workflow: taken, tried again as often as it may, and nothing left of one that failed."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workbench_controller.retries import KEEP_TRYING
    from workbench_controller.run import BACKUP, BackupFailure, BackupRun


@workflow.defn(name=BACKUP)
class BackupWorkflow:
    """One backup."""

    @workflow.run
    async def run(self, run: BackupRun) -> None:
        """Take it, then remove what is not to be kept."""
        soon = timedelta(seconds=run.rpc_s)
        try:
            await workflow.execute_activity(
                "take_backup",
                run,
                start_to_close_timeout=timedelta(seconds=run.attempt_s),
                heartbeat_timeout=timedelta(seconds=run.heartbeat_s),
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=run.pause_s),
                    maximum_attempts=run.attempts,
                ),
            )
        except ActivityError as error:
            failure = BackupFailure(backup_id=run.backup_id, reason=str(error.cause or error))
            await workflow.execute_activity(
                "fail_backup", failure, start_to_close_timeout=soon, retry_policy=KEEP_TRYING
            )
            await workflow.execute_activity(
                "remove_backup", run.prefix, start_to_close_timeout=soon, retry_policy=KEEP_TRYING
            )
            return
        await workflow.execute_activity(
            "expire_backups",
            start_to_close_timeout=timedelta(seconds=run.attempt_s),
            retry_policy=KEEP_TRYING,
        )
