"""Planners and coders at work: the episode of each runs, its model is held, and the test does its work.

What it hands over is judged over HTTP; answers are read by the models of the contract.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from workbench_contract.design import DesignJudged
from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import (
    Handover,
    SubmissionRefused,
    Submitted,
)

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import Turn
from suites.integration.bundles import FILES, TODO, Bundle, sound
from suites.integration.episodes import Episodes, new_token
from suites.integration.patience import SOON_S, eventually
from suites.integration.sessions import Session

__all__ = [
    "Coder",
    "Planner",
    "at_work",
    "coder_at_work",
    "expect_accepted",
    "expect_found",
    "handover",
    "planner_at_work",
    "reviewer_at_work",
]

#: An event of the worker is at the controller in less than a second.
_KEPT_S: Final = 10.0

#: A verdict on files of the largest size that is read.
_VERDICT_S: Final = 30.0

#: An operation that builds: seconds, most of them imports.
_BUILT_S: Final = 60.0


@dataclasses.dataclass(slots=True, kw_only=True)
class Planner:
    """A planner whose episode runs.

    Attributes:
        episode_id: of the episode.
        session: its session on the worker.
        issued: its list, as it was when it began.
        number: of the sound bundle that is its own.
        given: the objectives that it was given.
        left: what was left last, so that :meth:`judged` writes only what differs.
    """

    episode_id: str
    session: Session
    issued: str
    number: int
    given: dict[str, Any] | None = None
    left: dict[str, str | None] = dataclasses.field(default_factory=dict)

    def sound(self, **options: Any) -> Bundle:
        """A bundle of its own that nothing is wrong with."""
        return sound(self.issued, number=self.number, objectives=self.given, **options)

    async def leave(self, files: Mapping[str, str | None]) -> None:
        """Write files of its session; those that are ``None`` are not there."""
        self.left |= files
        for path, text in files.items():
            if text is not None:
                await self.session.write(path, text)
                continue
            answer = await self.session.post("/fs/delete", path=path)

            assert answer.status in {200, 404}, f"expected {path} to be removed, found {answer}"

    async def submit(self, *, job_id: str | None = None) -> Response:
        """Submit what is there; the answer, whatever it is."""
        return await self.session.post(
            "/benchmark/submit", job_id=job_id, seconds=patience(_VERDICT_S)
        )

    async def price(self) -> Response:
        """Have the estimate priced by the script; the answer, whatever it is."""
        return await self.session.post(
            "/benchmark/validate_costing_and_price", seconds=patience(_VERDICT_S)
        )

    async def judged(self, bundle: Bundle, **files: str | None) -> Response:
        """Leave a bundle, with some files otherwise (by the name before the dot), and submit it."""
        names = {name.partition(".")[0]: name for name in FILES}
        wanted = bundle.files() | {names[key]: text for key, text in files.items()}
        nothing = object()
        other = {
            path: text for path, text in wanted.items() if self.left.get(path, nothing) != text
        }
        await self.leave(other)
        return await self.submit()


@asynccontextmanager
async def planner_at_work(
    episodes: Episodes,
    *turns: Turn,
    number: int,
    given: dict[str, Any] | None = None,
    **request: Any,
) -> AsyncIterator[Planner]:
    """A planner whose model is held for as long as the block lasts; then its episode completes.

    Args:
        episodes: of the stack.
        turns: what the model does when it is let go.
        number: of its bundle; no two planners of a test have the same.
        given: the objectives that it is given by what ``request`` names.
        request: of the episode, besides its role.
    """
    async with at_work(episodes, *turns, role="planner", **request) as (accepted, session, issued):
        yield Planner(
            episode_id=accepted["episode_id"],
            session=session,
            issued=issued,
            number=number,
            given=given,
        )


@dataclasses.dataclass(slots=True, kw_only=True)
class Coder:
    """A coder whose episode runs, and who was handed a plan.

    Attributes:
        bundle: that it was handed.
    """

    episode_id: str
    session: Session
    bundle: Bundle

    async def validated(self, model: str = "model.py") -> Response:
        """Have the design validated and priced; the answer, whatever it is."""
        return await self.session.post(
            "/benchmark/validate_and_price", model=model, seconds=patience(_BUILT_S)
        )

    async def judged(self, script: str) -> DesignJudged:
        """Write the design's script and have it judged."""
        await self.session.write("model.py", script)
        answer = await self.validated()

        assert 200 == answer.status, f"expected a verdict on a design, found {answer}"
        return DesignJudged.model_validate_json(answer.body)

    async def simulate(self, model: str = "model.py") -> Response:
        """Simulate the design; the answer, whatever it is."""
        return await self.session.post(
            "/benchmark/simulate", model=model, duration_s=0.1, seed=7, seconds=patience(_BUILT_S)
        )

    async def submit(self) -> Response:
        """Submit what is there; the answer, whatever it is."""
        return await self.session.post("/benchmark/submit", seconds=patience(_BUILT_S))


@asynccontextmanager
async def coder_at_work(
    episodes: Episodes,
    *turns: Turn,
    number: int,
    plan: Callable[[Planner], Bundle],
    **request: Any,
) -> AsyncIterator[Coder]:
    """A coder who was handed a planner's bundle, its model held for as long as the block lasts.

    Args:
        episodes: of the stack.
        turns: what the model does when it is let go.
        number: of the planner's bundle.
        plan: what the planner hands over.
        request: of the coder's episode.
    """
    async with planner_at_work(episodes, number=number) as planner:
        bundle = plan(planner)
        accepted = expect_accepted(await planner.judged(bundle), f"the plan {number}")
        await handover(episodes.controller, accepted.handover_id)
    begun = {"role": "coder", "handover_id": accepted.handover_id, **request}
    async with at_work(episodes, *turns, **begun) as (started, session, _):
        yield Coder(episode_id=started["episode_id"], session=session, bundle=bundle)


@asynccontextmanager
async def reviewer_at_work(
    episodes: Episodes, *turns: Turn, handover_id: str
) -> AsyncIterator[tuple[str, Session]]:
    """A reviewer of a hand-over, its model held for as long as the block lasts: episode and session."""
    begun = {"role": "reviewer", "handover_id": handover_id}
    async with at_work(episodes, *turns, **begun) as (started, session, _):
        yield started["episode_id"], session


@asynccontextmanager
async def at_work(
    episodes: Episodes, *turns: Turn, **request: Any
) -> AsyncIterator[tuple[dict[str, Any], Session, str]]:
    """An agent whose model is held; its episode, its session, and the list in it."""
    token = new_token()
    await episodes.rehearse(token, *turns)
    gateway = episodes.stack.gateway.client
    async with gateway.fault(Fault(kind="hold", contains=token, times=9)):
        accepted = await episodes.submit(token, **request)
        session = episodes.session(accepted["session_id"])

        async def begun() -> str | None:
            answer = await session.read(TODO)
            return answer.json()["content"] if answer.status == 200 else None

        issued = await eventually(begun, seconds=SOON_S, expected="the agent's list in its session")
        yield accepted, session, issued
    await episodes.until(accepted["episode_id"], "completed")


def expect_accepted(answer: Response, what: str) -> Submitted:
    """Assert that a hand-over was accepted, with all four files."""
    assert 200 == answer.status, f"expected {what} to be accepted, found {answer}"
    accepted = Submitted.model_validate_json(answer.body)
    found = sorted(each.path for each in accepted.files)

    assert sorted(FILES) == found, f"expected the four files of {what} handed over, found {found}"
    return accepted


def expect_found(
    answer: Response, stage: Stage, files: Collection[str], *, what: str, says: Collection[str] = ()
) -> list[Finding]:
    """Assert that a hand-over was refused at a stage, for these files and no other.

    Args:
        answer: to the submission.
        stage: of all findings.
        files: that have findings.
        what: was handed over.
        says: texts that findings must hold, in their place, what was found, or what is expected.
    """
    assert 422 == answer.status, f"expected {what} to be refused with 422, found {answer}"
    refused = SubmissionRefused.model_validate_json(answer.body)
    stages = {each.stage for each in refused.findings}

    assert {stage} == stages, f"expected findings of {stage} alone for {what}, found {answer}"
    assert stage is refused.stage, f"expected {what} to be refused at stage {stage}, found {answer}"
    found = {each.file for each in refused.findings}
    assert set(files) == found, f"expected findings in {sorted(files)} for {what}, found {answer}"
    told = "\n".join(f"{each.where}: {each.found}; {each.expected}" for each in refused.findings)
    lacking = [text for text in says if text not in told]
    assert not lacking, f"expected findings about {lacking} for {what}, found {told}"
    mute = [each for each in refused.findings if not (each.found.strip() and each.expected.strip())]
    assert not mute, f"findings for {what} that do not say what was found or expected: {mute}"
    return refused.findings


async def handover(controller: HttpClient, handover_id: str) -> Handover:
    """A hand-over as the controller keeps it, once it does."""

    async def there() -> Handover | None:
        answer = await controller.get(f"/handovers/{handover_id}")
        return Handover.model_validate_json(answer.body) if answer.status == 200 else None

    found: Handover = await eventually(
        there, seconds=_KEPT_S, expected=f"hand-over {handover_id} at the controller"
    )
    return found
