"""A flow as a workflow: the turns of its roles, each an episode of its own, until a design is approved.

A reviewer's decision says whose turn is next; how often, the bounds say. Everything that happens outside of
Temporal is an activity, or an episode's workflow.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from workbench_contract.benchmark import ReviewDecision
    from workbench_contract.episodes import AgentRole, EpisodeStatus
    from workbench_contract.flows import Cause
    from workbench_controller.retries import KEEP_TRYING
    from workbench_controller.run import (
        FLOW,
        WORKFLOW,
        FlowRun,
        FlowStep,
        Run,
        StageEnd,
        StageToBegin,
    )
    from workbench_controller.workflow import stop_if_cancelled
    from workbench_foundation import faults

#: Decision of a review that sends back → whose turn it is then, and why.
_BACK = {
    ReviewDecision.REJECTED: (AgentRole.CODER, Cause.REJECTED),
    ReviewDecision.CONFIRM_PLAN_REFUSAL: (AgentRole.PLANNER, Cause.PLAN_REFUSAL_CONFIRMED),
    ReviewDecision.REJECT_PLAN_REFUSAL: (AgentRole.CODER, Cause.PLAN_REFUSAL_REJECTED),
}

#: What a bound counts, in words.
_COUNTED = {
    Cause.REJECTED: "a design was rejected",
    Cause.PLAN_REFUSAL_CONFIRMED: "a refusal of the plan was confirmed",
    Cause.PLAN_REFUSAL_REJECTED: "a refusal of the plan was rejected",
}


@dataclass(slots=True)
class _Next:
    """Whose turn it is, and what it starts from."""

    role: AgentRole
    cause: Cause
    reason: str
    given: str | None
    resumed: str | None = None
    context: list[str] = field(default_factory=list)


class _Over(Exception):
    """The flow ends without a result.

    Args:
        status: how.
        cause: why.
    """

    def __init__(self, status: EpisodeStatus, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.cause = cause


@workflow.defn(name=FLOW)
class FlowWorkflow:
    """One flow, from its start to a final status that is written down before it ends."""

    @workflow.run
    async def run(self, flow: FlowRun) -> str:
        """Run the flow; what it has come to."""
        self._flow = flow
        # The first step is the submission.
        self._ordinal = 1
        self._rounds: Counter[AgentRole] = Counter()
        self._back: Counter[Cause] = Counter()
        self._first_design: str | None = None
        try:
            if not await self._step(EpisodeStatus.RUNNING, Cause.TAKEN_UP, "a worker has taken it up"):
                return "it was over before it began"
            handover_id = await self._go_round()
        except _Over as over:
            await self._end(over.status, over.cause, str(over))
            raise ApplicationError(str(over), non_retryable=True) from over
        # Whatever ends the work early is recorded as what it was, at Temporal as well.
        except (ActivityError, ApplicationError, ChildWorkflowError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                reason = "its workflow was cancelled at Temporal"
                await self._end(EpisodeStatus.CANCELLED, Cause.INTERRUPTED, reason)
                raise
            reason = _reason(error)
            await self._end(EpisodeStatus.FAILED, Cause.FAILED, reason)
            raise ApplicationError(reason, non_retryable=True) from error
        reason = "the reviewer has approved"
        await self._end(EpisodeStatus.COMPLETED, Cause.APPROVED, reason, handover_id)
        return handover_id

    async def _go_round(self) -> str:
        """Turn by turn until a design is approved; its hand-over."""
        plan = design = ""
        turn = _Next(AgentRole.PLANNER, Cause.TAKEN_UP, "the planner begins", self._flow.given_id)
        while True:
            end = await self._turn(turn)
            assert end.handover_id is not None
            handed = f"the {turn.role} has handed over"
            if turn.role is AgentRole.PLANNER:
                plan = plan if plan and faults.on("plan-of-first-round") else end.handover_id
                turn = _Next(AgentRole.CODER, Cause.HANDED_OVER, handed, end.handover_id)
            elif turn.role is AgentRole.CODER:
                design = end.handover_id
                if end.refuses_plan:
                    handed = f"the coder refuses the plan: {end.said}"
                if faults.on("flow-unreviewed"):
                    return design
                given = self._chosen(design, "flow-reviews-first-design")
                turn = _Next(AgentRole.REVIEWER, Cause.HANDED_OVER, handed, given)
            elif end.decision is ReviewDecision.APPROVED or self._waved_through():
                return self._chosen(design, "flow-result-of-first-round")
            else:
                turn = self._sent_back(end, plan, design)

    def _sent_back(self, end: StageEnd, plan: str, design: str) -> _Next:
        """Whose turn it is after a decision that is no approval.

        Raises:
            _Over: it was decided so as often as may be.
        """
        assert end.decision is not None
        assert end.handover_id is not None
        role, cause = _BACK[end.decision]
        if faults.on("rejections-in-a-row") and cause is not Cause.REJECTED:
            self._back[Cause.REJECTED] = 0
        self._back[cause] += 1
        most = {
            Cause.REJECTED: self._flow.bounds.rejections,
            Cause.PLAN_REFUSAL_CONFIRMED: self._flow.bounds.confirmed_refusals,
            Cause.PLAN_REFUSAL_REJECTED: self._flow.bounds.rejected_refusals,
        }[cause]
        if self._back[cause] >= most and not faults.on("flow-unbounded"):
            reason = f"{_COUNTED[cause]} {most} times, and may be no oftener: {end.said}"
            raise _Over(EpisodeStatus.FAILED, Cause.ROUNDS_USED_UP, reason)
        reason = f"the reviewer decided {end.decision}: {end.said}"
        if cause is Cause.REJECTED:
            return _Next(role, cause, reason, plan, resumed=design, context=[end.handover_id])
        context = [design, end.handover_id]
        if faults.on("refusal-goes-to-coder"):
            role = AgentRole.CODER
        if role is AgentRole.PLANNER:
            given = None if faults.on("benchmark-lost-at-second-plan") else self._flow.given_id
            return _Next(role, cause, reason, given, resumed=plan, context=context)
        return _Next(role, cause, reason, plan, resumed=design, context=context)

    def _waved_through(self) -> bool:
        """Only for the planted fault `second-review-approves`."""
        return faults.on("second-review-approves") and self._rounds[AgentRole.REVIEWER] > 1

    def _chosen(self, design: str, fault: str) -> str:
        """The design; with a planted fault the first that was handed over."""
        self._first_design = self._first_design or design
        return self._first_design if faults.on(fault) else design

    async def _turn(self, turn: _Next) -> StageEnd:
        """One turn of a role.

        Raises:
            _Over: it has come to nothing that the next role can start from.
        """
        self._rounds[turn.role] += 1
        stage = StageToBegin(
            flow=self._flow,
            ordinal=self._next(),
            role=turn.role,
            round=self._rounds[turn.role],
            cause=turn.cause,
            reason=turn.reason,
            given_id=turn.given,
            resumed_id=turn.resumed,
            context_ids=turn.context,
        )
        run: Run | None = await workflow.execute_activity(
            "begin_stage",
            stage,
            result_type=Run,
            start_to_close_timeout=timedelta(seconds=self._flow.limits.rpc_s),
            retry_policy=KEEP_TRYING,
        )
        if run is None:
            raise _Over(EpisodeStatus.FAILED, Cause.FAILED, "it has been ended")
        ended_itself = await self._episode(run)
        end: StageEnd = await workflow.execute_activity(
            "stage_end",
            run,
            result_type=StageEnd,
            # A hand-over that the worker does not give is waited for, and not for ever.
            schedule_to_close_timeout=timedelta(seconds=self._flow.episode_s),
            start_to_close_timeout=timedelta(seconds=self._flow.limits.rpc_s),
            retry_policy=KEEP_TRYING,
        )
        who = f"the {turn.role} of round {stage.round}"
        if end.status in (EpisodeStatus.INTERRUPTED, EpisodeStatus.CANCELLED):
            raise _Over(end.status, Cause.INTERRUPTED, f"{who} was {end.status}: {end.reason}")
        if end.status is not EpisodeStatus.COMPLETED or not ended_itself:
            raise _Over(EpisodeStatus.FAILED, Cause.STAGE_ENDED, f"{who} has failed: {end.reason}")
        if end.handover_id is None:
            reason = f"{who} ended without handing over"
            raise _Over(EpisodeStatus.FAILED, Cause.STAGE_ENDED, reason)
        return end

    async def _episode(self, run: Run) -> bool:
        """Run the episode of a turn; whether it came to its own end."""
        try:
            await workflow.execute_child_workflow(
                WORKFLOW,
                run,
                id=f"episode-{run.episode_id}",
                execution_timeout=timedelta(seconds=self._flow.episode_s),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                memo={"flow_id": self._flow.flow_id}
                if faults.on("flow-turn-uncorrelated")
                else {"episode_id": run.episode_id, "trace_id": run.trace_id},
            )
        except ChildWorkflowError as error:
            # An interruption of the flow ends it; what became of its episode is read from that.
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                raise
            return False
        stop_if_cancelled()
        return True

    async def _end(
        self, status: EpisodeStatus, cause: Cause, reason: str, handover_id: str | None = None
    ) -> None:
        """Write the end down, whole: an interruption that comes meanwhile comes too late."""
        ending = asyncio.create_task(self._step(status, cause, reason, handover_id))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending

    async def _step(
        self, status: EpisodeStatus, cause: Cause, reason: str, handover_id: str | None = None
    ) -> bool:
        step = FlowStep(
            flow=self._flow,
            ordinal=self._next(),
            status=status,
            cause=cause,
            reason=reason,
            handover_id=handover_id,
        )
        taken: bool = await workflow.execute_activity(
            "flow_step",
            step,
            start_to_close_timeout=timedelta(seconds=self._flow.limits.rpc_s),
            retry_policy=KEEP_TRYING,
        )
        return taken

    def _next(self) -> int:
        self._ordinal += 1
        return self._ordinal


def _reason(error: BaseException) -> str:
    """Why it ended, in the words of what could not do its part."""
    cause = error.cause if isinstance(error, (ActivityError, ChildWorkflowError)) else None
    if isinstance(cause, ApplicationError):
        return cause.message
    return str(cause or error)
