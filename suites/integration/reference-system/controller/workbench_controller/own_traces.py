"""Every episode has a trace of its own: one that a flow or a batch begins leaves theirs."""

from __future__ import annotations

from typing import Any

from temporalio import client, worker
from temporalio.converter import PayloadConverter
from temporalio.worker import (
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ChildWorkflowHandle

from workbench_controller.run import Run
from workbench_foundation import tracing

#: Where Temporal's own interceptor has the parent of what a workflow does.
_HEADER = "_tracer-data"


class OwnTraces(client.Interceptor, worker.Interceptor):
    """Hangs the workflow of an episode below the episode's first span; stands before Temporal's own."""

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        """As Temporal asks for it."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    async def start_child_workflow(
        self, input: StartChildWorkflowInput
    ) -> ChildWorkflowHandle[Any, Any]:
        for each in input.args:
            if isinstance(each, Run):
                parent = PayloadConverter.default.to_payload(tracing.parent_of(each.trace_id))
                input.headers = {**input.headers, _HEADER: parent}
        return await super().start_child_workflow(input)
