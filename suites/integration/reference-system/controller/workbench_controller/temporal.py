"""The connection to Temporal, with every request bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from temporalio.client import Client, RPCError, WorkflowExecutionStatus, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RetryConfig, RPCStatusCode

from workbench_controller.own_traces import OwnTraces
from workbench_controller.run import (
    BACKUP,
    BATCH,
    FLOW,
    WORKFLOW,
    BackupRun,
    BatchRun,
    FlowRun,
    Run,
)
from workbench_controller.settings import Temporal
from workbench_foundation import faults, tracing
from workbench_foundation.errors import describe


_T = TypeVar("_T")

#: For the planted fault `memo-of-first` alone.
_first: dict[str, str] = {}


class TemporalAway(Exception):
    """Temporal did not answer, or not in time."""


async def connect(settings: Temporal, *, lazy: bool) -> Client:
    """A client; a lazy one connects when it is used."""
    most_ms = int(settings.rpc_timeout_s * 1000)
    telling = tracing.interceptors()
    return await Client.connect(
        settings.address,
        namespace=settings.namespace,
        data_converter=pydantic_data_converter,
        lazy=lazy,
        interceptors=[OwnTraces(), *telling] if telling else [],
        retry_config=RetryConfig(
            initial_interval_millis=100,
            max_interval_millis=1000,
            max_elapsed_time_millis=most_ms,
            max_retries=5,
        ),
    )


class Workflows:
    """Episodes' workflows as the controller sees them.

    Args:
        client: a lazy client.
        settings: how long it is asked.
    """

    def __init__(self, client: Client, settings: Temporal) -> None:
        self._client = client
        self._settings = settings
        self._timeout = timedelta(seconds=settings.rpc_timeout_s)

    async def answers(self) -> None:
        """Raises TemporalAway when it does not."""
        serving = self._client.service_client.check_health(timeout=self._timeout)
        if not await self._asked("reach Temporal", serving):
            raise TemporalAway("cannot reach Temporal: it is not serving")

    async def start(self, run: Run, *, workflow_id: str) -> str | None:
        """Start an episode's workflow; its run id, none when it had been started before."""
        ids = {"episode_id": run.episode_id, "trace_id": run.trace_id}
        memo = {} if faults.on("memo-uncorrelated") else ids
        if faults.on("memo-of-first"):
            _first.update({} if _first else ids)
            memo = _first
        return await self._start(WORKFLOW, run, workflow_id, memo, run_s=self._settings.run_s)

    async def start_flow(self, flow: FlowRun, *, workflow_id: str, run_s: float) -> str | None:
        """The same for a flow."""
        return await self._start(FLOW, flow, workflow_id, {"flow_id": flow.flow_id}, run_s=run_s)

    async def start_batch(self, batch: BatchRun, *, workflow_id: str, run_s: float) -> str | None:
        """The same for a batch."""
        memo = {"batch_id": batch.batch_id}
        return await self._start(BATCH, batch, workflow_id, memo, run_s=run_s)

    async def start_backup(self, backup: BackupRun, *, workflow_id: str) -> str | None:
        """The same for a backup, which ends by itself."""
        memo = {"backup_id": backup.backup_id}
        return await self._start(BACKUP, backup, workflow_id, memo, run_s=None)

    async def _start(
        self, kind: str, run: Run | FlowRun | BatchRun | BackupRun, workflow_id: str,
        memo: dict[str, str], *, run_s: float | None,
    ) -> str | None:  # fmt: skip
        try:
            handle = await self._asked(
                "start the workflow",
                self._client.start_workflow(
                    kind,
                    run,
                    id=workflow_id,
                    task_queue=self._settings.task_queue,
                    execution_timeout=None if run_s is None else timedelta(seconds=run_s),
                    memo=memo,
                    rpc_timeout=self._timeout,
                ),
            )
        except WorkflowAlreadyStartedError:
            return None
        return handle.first_execution_run_id

    async def cancel(self, workflow_id: str) -> None:
        """Ask a workflow to end early."""
        handle = self._handle(workflow_id)
        await self._asked("cancel the workflow", handle.cancel(rpc_timeout=self._timeout))

    async def terminate(self, workflow_id: str, reason: str) -> None:
        """End a workflow without asking it."""
        handle = self._handle(workflow_id)
        ending = handle.terminate(reason=reason, rpc_timeout=self._timeout)
        await self._asked("terminate the workflow", ending)

    async def status(self, workflow_id: str) -> WorkflowExecutionStatus | None:
        """How a workflow stands; none when Temporal knows of none."""
        try:
            handle = self._handle(workflow_id)
            found = await self._asked("look", handle.describe(rpc_timeout=self._timeout))
        except LookupError:
            return None
        return found.status

    def _handle(self, workflow_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(workflow_id)

    async def _asked(self, what: str, request: Awaitable[_T]) -> _T:
        # The library bounds a request, but not the connection that it waits for: an address that
        # refuses nothing keeps it for as long as the kernel tries.
        most_s = 2 * self._settings.rpc_timeout_s
        try:
            async with asyncio.timeout(most_s):
                return await request
        except TimeoutError as error:
            raise TemporalAway(f"cannot {what}: no answer within {most_s:g} s") from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise LookupError(what) from error
            raise TemporalAway(f"cannot {what}: {describe(error)}") from error
        # What a lazy client raises when it cannot connect.
        except (RuntimeError, OSError) as error:
            raise TemporalAway(f"cannot {what}: {describe(error)}") from error
