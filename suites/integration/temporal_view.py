"""What Temporal itself has on record of a workflow, by its own client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import trio

from harness_core.base.evidence import Moment
from harness_core.base.slowness import patience
from harness_core.system.compose import Stack
from suites.integration.patience import SOON_S, eventually

__all__ = [
    "WorkflowSeen",
    "at_work_since",
    "closed_workflow",
    "describe_workflow",
    "end_workflow",
    "history_of",
]

_ANSWER_S: Final = 10.0
#: What a workflow may take that nobody carries out.
_OUTLASTED_S: Final = 0.5
#: Longer than what waits for nobody takes on an idle machine.
_A_WHILE: Final = timedelta(seconds=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSeen:
    """A workflow as Temporal has it.

    Attributes:
        status: in lower case: ``running``, ``completed``, ``failed``, ``canceled``, ``terminated``.
        memo: what it was started with for people to see.
        begun: when each attempt began that Temporal has given to a worker and that has not ended.
        parent: id of the workflow that began it; empty for none.
        limit_s: how long it may take in all; 0 where Temporal does not end it.
    """

    run_id: str
    status: str
    memo: dict[str, Any]
    begun: tuple[datetime, ...] = ()
    parent: str = ""
    limit_s: float = 0.0


async def describe_workflow(
    stack: Stack, workflow_id: str, *, namespace: str = "default"
) -> WorkflowSeen | None:
    """A workflow by its id; ``None`` when Temporal has none."""
    describing = _describe(stack.address("temporal"), workflow_id, namespace=namespace)
    # Temporal's client is for asyncio, the tests are for trio.
    return await trio.to_thread.run_sync(asyncio.run, describing)


async def closed_workflow(stack: Stack, workflow_id: str) -> WorkflowSeen:
    """A workflow once Temporal has closed it, a moment after its last step was recorded.

    Raises:
        AssertionError: Temporal has none, or it is not closed in time.
    """

    async def there() -> WorkflowSeen | None:
        seen = await describe_workflow(stack, workflow_id)

        assert seen is not None, f"Temporal has no workflow {workflow_id}"
        return seen if seen.status != "running" else None

    found: WorkflowSeen = await eventually(
        there, seconds=SOON_S, expected=f"{workflow_id} closed at Temporal"
    )
    return found


async def at_work_since(
    stack: Stack, workflow_id: str, since: datetime, *, seconds: float, expected: str
) -> None:
    """Wait until a workflow has been at one activity for half a second that began after a time.

    Args:
        stack: whose Temporal it is.
        workflow_id: of the workflow.
        since: what began before does not count.
        seconds: how long it may take.
        expected: what is waited for, in a few words.
    """

    async def there() -> bool:
        seen = await describe_workflow(stack, workflow_id)
        assert seen is not None, f"Temporal has no workflow {workflow_id}"
        assert seen.status == "running", f"expected {expected}, found the workflow {seen.status}"
        return any(since < begun <= datetime.now(UTC) - _A_WHILE for begun in seen.begun)

    await eventually(there, seconds=seconds, expected=expected)


async def end_workflow(stack: Stack, workflow_id: str, how: str) -> None:
    """End a workflow at Temporal itself, as its operator may.

    Args:
        stack: whose Temporal it is.
        workflow_id: of the workflow.
        how: ``cancel``, ``terminate``, ``delete``, after which Temporal knows of none, or ``outlast``, after
            which it has one of that id that has taken longer than it may.
    """
    ending = _end(stack.address("temporal"), workflow_id, how)
    await trio.to_thread.run_sync(asyncio.run, ending)


async def history_of(stack: Stack, workflow_id: str) -> list[Moment]:
    """What Temporal has on record of a workflow, for a report; empty where it does not say.

    It may wait for ever for one that hangs; who asks ends that.
    """
    reading = _history(stack.address("temporal"), workflow_id)
    return await trio.to_thread.run_sync(asyncio.run, reading, abandon_on_cancel=True)


async def _history(address: str, workflow_id: str) -> list[Moment]:
    from temporalio.api.enums.v1 import EventType
    from temporalio.client import Client
    from temporalio.service import RPCError

    try:
        client = await Client.connect(address, namespace="default")
        found = await client.get_workflow_handle(workflow_id).fetch_history()
    except (RPCError, RuntimeError):  # Temporal is away, or knows of none
        return []
    moments = []
    for event in found.events:
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        bad = any(word in kind for word in ("failed", "timed_out", "terminated"))
        at = event.event_time.ToDatetime(tzinfo=UTC).timestamp()
        what = "error" if bad else "event"
        text = f"{event.event_id} {kind.replace('_', ' ')}"
        named = {"workflow_id": workflow_id}  # by which it belongs to the episode
        moments.append(Moment(at=at, lane="temporal", what=what, text=text, data=named))
    return moments


async def _end(address: str, workflow_id: str, how: str) -> None:
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
    from temporalio.client import Client
    from temporalio.common import WorkflowIDConflictPolicy

    client = await Client.connect(address, namespace="default")
    if how == "delete":
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = DeleteWorkflowExecutionRequest(namespace="default", workflow_execution=execution)
        await client.workflow_service.delete_workflow_execution(request)
        return
    if how == "outlast":
        await client.start_workflow(
            "nobody-does",
            id=workflow_id,
            task_queue="nobody-looks",
            id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
            execution_timeout=timedelta(seconds=_OUTLASTED_S),
        )
        return
    handle = client.get_workflow_handle(workflow_id)
    await (handle.cancel() if how == "cancel" else handle.terminate(reason="by an operator"))


async def _describe(address: str, workflow_id: str, *, namespace: str) -> WorkflowSeen | None:
    from temporalio.api.enums.v1 import PendingActivityState
    from temporalio.client import Client
    from temporalio.service import RPCError, RPCStatusCode

    client = await Client.connect(address, namespace=namespace)
    try:
        handle = client.get_workflow_handle(workflow_id)
        found = await handle.describe(rpc_timeout=timedelta(seconds=patience(_ANSWER_S)))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    status = found.status.name.lower() if found.status else "unknown"
    begun = tuple(
        each.last_started_time.ToDatetime(tzinfo=UTC)
        for each in found.raw_description.pending_activities
        if each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    )
    limit = found.raw_description.execution_config.workflow_execution_timeout
    return WorkflowSeen(
        run_id=found.run_id,
        status=status,
        memo=dict(await found.memo()),
        begun=begun,
        parent=found.parent_id or "",
        limit_s=limit.ToTimedelta().total_seconds(),
    )
