"""Flows of several roles, each turn of them at work for as long as a test wants.

The model provider is the gateway: it holds the model of every role, so that a test does a turn's work in its
session, lets the agent go, and finds the next one held at its beginning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from workbench_contract.design import DesignJudged
from workbench_contract.flows import (
    BenchmarkRequest,
    DecisionList,
    Flow,
    FlowAccepted,
    FlowRequest,
)
from workbench_contract.handover import CONTEXT
from workbench_contract.review import ProofKind

from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import Turn
from suites.integration.bundles import TODO, Bundle, milled, sound
from suites.integration.episodes import FINAL, Episodes, new_token
from suites.integration.messages import sent
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.planners import Coder, Planner
from suites.integration.reviews import REFUSAL, REVIEW, refusal
from suites.integration.sessions import Session

__all__ = [
    "FlowAtWork",
    "TurnAtWork",
    "block_of",
    "coder_of",
    "decisions",
    "design_handed",
    "flow_at_work",
    "plan_handed",
    "plan_refused",
    "planner_of",
    "price_of_the_impossible",
    "steps_of",
    "told_to",
]

#: What the prompt of each role has in its tools, and those of the others have not.
_MARK: Final = {"planner": "search_catalogue", "coder": "analyze", "reviewer": "fs_view"}
#: A step from turn to turn.
_STEP_S: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TurnAtWork:
    """The turn of a role, its model held.

    Attributes:
        todo: its list, as it was when it began.
        ordinal: of the step that began it.
    """

    role: str
    round: int
    episode_id: str
    session: Session
    todo: str
    ordinal: int


class FlowAtWork:
    """A flow whose agents wait at their beginnings.

    Attributes:
        token: in its task; finds the calls of its models in the ledger.
        id: of the flow.
        workflow_id: at Temporal.
    """

    def __init__(self, episodes: Episodes, token: str, accepted: FlowAccepted) -> None:
        self.episodes = episodes
        self.token = token
        self.id = accepted.flow_id
        self.workflow_id = accepted.workflow_id
        self._held: dict[str, AsyncExitStack] = {}
        # The step of the last turn that was expected.
        self._last = 0

    async def get(self) -> Flow:
        """The flow as it is now."""
        answer = await self.episodes.controller.get(f"/flows/{self.id}")

        assert 200 == answer.status, f"expected the flow that was accepted, found {answer}"
        return Flow.model_validate_json(answer.body)

    async def until(self, *statuses: str) -> Flow:
        """The flow when it has one of these statuses.

        Raises:
            AssertionError: it ends otherwise, a turn begins that is not expected, or it takes too long.
        """

        async def there() -> Flow | None:
            found = await self.get()
            begun = [each for each in found.transitions if each.role and each.ordinal > self._last]

            assert not begun, f"expected flow {self.id} {' or '.join(statuses)}, found {begun}"
            ends = f"expected it {' or '.join(statuses)}, found {found.status}: {found.reason}"
            assert found.status not in FINAL or found.status in statuses, ends
            return found if found.status in statuses else None

        found: Flow = await eventually(there, seconds=EPISODE_S, expected=f"the end of {self.id}")
        return found

    @asynccontextmanager
    async def turn(self, role: str, number: int) -> AsyncIterator[TurnAtWork]:
        """The turn of a role, held; at the end of the block its agent finishes.

        Args:
            role: whose turn it has to be.
            number: of its rounds.

        Raises:
            AssertionError: it is somebody else's, or nobody's.
        """
        found = await self._begun(role, number)
        for other in _MARK:
            await self.hold(other)
        self._last = found.ordinal
        yield found
        await self.let_go(role)

    async def hold(self, role: str) -> None:
        """Hold the model of a role from now on."""
        if role not in self._held:
            self._held[role], _ = await self._planted(_MARK[role])

    async def hold_told(self, role: str, words: str) -> int:
        """Hold the model of a role once its prompt has these words; names what :meth:`was_told` asks."""
        await self.let_go(role)
        self._held[role], number = await self._planted(words)
        return number

    async def was_told(self, number: int, words: str) -> None:
        """Assert that a model was asked with these words in its prompt."""
        gateway = self.episodes.stack.gateway.client

        async def there() -> bool:
            return await gateway.fault_met(number) > 0

        await eventually(there, seconds=_STEP_S, expected=f"{words!r} in a prompt of the flow")

    async def _planted(self, also: str) -> tuple[AsyncExitStack, int]:
        stack = AsyncExitStack()
        fault = Fault(kind="hold", contains=self.token, also=also, times=99)
        number = await stack.enter_async_context(self.episodes.stack.gateway.client.fault(fault))
        return stack, number

    async def let_go(self, role: str) -> None:
        """Let the model of a role go on."""
        if role in self._held:
            await self._held.pop(role).aclose()

    async def let_all_go(self) -> None:
        """Let every model go on."""
        for role in list(self._held):
            await self.let_go(role)

    async def rehearse(self, *turns: Turn) -> None:
        """What the model does that is let go next."""
        await self.episodes.rehearse(self.token, *turns)

    async def prompts(self) -> list[str]:
        """What the models of the flow were asked, in order."""
        ledger = await self.episodes.stack.gateway.client.ledger()
        return [call.prompt for call in ledger if self.token in call.prompt]

    async def _begun(self, role: str, number: int) -> TurnAtWork:
        what = f"the turn of the {role}, round {number}, of flow {self.id}"

        async def there() -> TurnAtWork | None:
            flow = await self.get()
            ended = f"expected {what}, found {flow.status}: {flow.reason}"
            assert flow.status not in FINAL, ended
            turns = [each for each in flow.transitions if each.role and each.ordinal > self._last]
            if not turns:
                return None
            last = turns[0]
            found = (str(last.role), last.round)
            assert (role, number) == found, f"expected {what}, found {found}: {last}"
            episode = await self.episodes.get(str(last.episode_id))
            session = self.episodes.session(episode["session_id"])
            answer = await session.read(TODO)
            if answer.status != 200:
                return None
            return TurnAtWork(
                role=role,
                round=number,
                episode_id=episode["episode_id"],
                session=session,
                todo=answer.json()["content"],
                ordinal=last.ordinal,
            )

        found: TurnAtWork = await eventually(there, seconds=_STEP_S, expected=what)
        return found


@asynccontextmanager
async def flow_at_work(
    episodes: Episodes, path: str = "/flows", **request: Any
) -> AsyncIterator[FlowAtWork]:
    """A flow whose models are held; at the end of the block all of them go on.

    Args:
        episodes: of the stack.
        path: that it is submitted to: ``/flows`` or ``/benchmarks``.
        request: besides its task.
    """
    token = new_token()
    await episodes.rehearse(token)
    model = FlowRequest if path == "/flows" else BenchmarkRequest
    flow = FlowAtWork(
        episodes,
        token,
        FlowAccepted(flow_id="", workflow_id="", purpose="benchmark", status="queued"),
    )
    for role in _MARK:
        await flow.hold(role)
    try:
        body = model(task=f"Make the part {token}.", **request)
        answer = await episodes.controller.post(path, sent(body))
        assert 202 == answer.status, f"expected a flow to be accepted with 202, found {answer}"
        accepted = FlowAccepted.model_validate_json(answer.body)
        assert "queued" == accepted.status, f"expected an accepted flow queued, found {accepted}"
        flow.id, flow.workflow_id = accepted.flow_id, accepted.workflow_id
        yield flow
    finally:
        await flow.let_all_go()


async def told_to(turn: TurnAtWork, name: str = REVIEW) -> str:
    """What a role that is asked once more finds in its session about that."""
    answer = await turn.session.read(f"{CONTEXT}/{name}")

    assert 200 == answer.status, f"expected {name} for the {turn.role} asked again, found {answer}"
    content: str = answer.json()["content"]
    return content


def planner_of(turn: TurnAtWork, number: int, given: dict[str, Any] | None = None) -> Planner:
    """The planner whose turn it is."""
    return Planner(
        episode_id=turn.episode_id,
        session=turn.session,
        issued=turn.todo,
        number=number,
        given=given,
    )


def coder_of(turn: TurnAtWork, bundle: Bundle) -> Coder:
    """The coder whose turn it is."""
    return Coder(episode_id=turn.episode_id, session=turn.session, bundle=bundle)


def block_of(number: int, *, at: str = "30, 0, 5") -> str:
    """The script of a block, as :func:`plan_handed` plans it."""
    return (
        f'from build123d import Box, Pos\n\nparts = {{"block-{number}": '
        f"Pos({at}) * Box(40, 30, 10)}}\n"
    )


async def plan_handed(
    turn: TurnAtWork, number: int, given: dict[str, Any] | None = None, *, units: int = 100
) -> Bundle:
    """Plan one block, and hand that over."""
    made = [milled(f"block-{number}", 12_000, (42, 32, 12), units=units)]
    bundle = sound(turn.todo, number=number, made=made, units=units, objectives=given)
    answer = await planner_of(turn, number, given).judged(bundle)

    assert 200 == answer.status, f"expected the plan {number} to be accepted, found {answer}"
    return bundle


async def design_handed(turn: TurnAtWork, bundle: Bundle, script: str) -> str:
    """Build a design, have it judged, and hand it over; its id."""
    coder = coder_of(turn, bundle)
    judged: DesignJudged = await coder.judged(script)

    assert judged.passed, f"expected the design to pass, found {judged.findings}"
    answer: Response = await coder.submit()
    assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
    handover_id: str = answer.json()["handover_id"]
    return handover_id


async def price_of_the_impossible(turn: TurnAtWork, bundle: Bundle, number: int) -> str:
    """The id of a verdict on a design that the plan forbids."""
    heavy = block_of(number).replace("40, 30, 10", "70, 40, 60")
    judged = await coder_of(turn, bundle).judged(heavy)

    assert not judged.passed, f"expected a design over the caps not to pass, found {judged}"
    return judged.price_id


async def plan_refused(
    turn: TurnAtWork, bundle: Bundle, reason: str, *proof: tuple[ProofKind, str]
) -> str:
    """Hand over a refusal of the plan, which must be accepted; its id."""
    await turn.session.write(REFUSAL, refusal(reason, *proof))
    answer = await coder_of(turn, bundle).submit()

    assert 200 == answer.status, f"expected a refusal with {proof} to be accepted, found {answer}"
    body = answer.json()
    assert body["refuses_plan"], f"expected a refusal of the plan, found a design: {answer}"
    handover_id: str = body["handover_id"]
    return handover_id


def steps_of(flow: Flow) -> list[tuple[str, str | None, int | None]]:
    """Cause, role and round of each step."""
    return [
        (each.cause.value, each.role and each.role.value, each.round) for each in flow.transitions
    ]


async def decisions(controller: HttpClient, **wanted: str) -> DecisionList:
    """Decisions as the controller answers them."""
    answer = await controller.get("/decisions", params=wanted)

    assert 200 == answer.status, f"expected the decisions of {wanted}, found {answer}"
    return DecisionList.model_validate_json(answer.body)
