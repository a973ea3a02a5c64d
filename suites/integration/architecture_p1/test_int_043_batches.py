"""Batches: episodes that are submitted together, begin in order, and have nothing to do with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest
from workbench_contract.batches import (
    Batch,
    BatchAccepted,
    BatchInterruptAccepted,
    BatchRequest,
    BatchStatus,
)
from workbench_contract.episodes import EpisodeRequest, EpisodeStatus, Purpose
from workbench_contract.findings import Stage
from workbench_contract.handover import GEOMETRY

from harness_core.doubles.http import Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import Turn, fail, use
from suites.integration.bundles import FILES, OBJECTIVES, PLAN, TODO
from suites.integration.comparing import expect_same, utc
from suites.integration.environments import expect_handed, hand_over, planned
from suites.integration.episodes import (
    AFTERWARDS,
    SHORT_CALLS,
    SHORT_S,
    Episodes,
    calls,
    new_token,
    short_calls,
)
from suites.integration.interrupted import expect_interrupted
from suites.integration.messages import sent
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.planners import expect_found, planner_at_work
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session
from suites.integration.simulating import EMPTY_SCENE
from suites.integration.temporal_view import WorkflowSeen, describe_workflow

pytestmark = [pytest.mark.covers("INT-043"), pytest.mark.integration_p1]

#: At which of many short calls an interruption is asked for, as often as there are lengths of them.
_SHORT_AT: Final = (3, 0, 2)

#: Members of a batch: more than a controller lets run at once by itself.
_MANY: Final = 12

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """An episode of a batch, with what is its own alone."""

    token: str
    seed: int
    variant: str
    name: str

    @property
    def request(self) -> EpisodeRequest:
        return EpisodeRequest(
            task=f"Make the part {self.token}.",
            seed=self.seed,
            variant=self.variant,
            metadata={"who": self.name},
        )


def _members(count: int) -> list[_Member]:
    names = ("Ångström", "bé", "γάμμα", "дельта", "ε", "zêta", "八")
    return [
        _Member(token=new_token(), seed=31 * n + 5, variant=f"{name} {n}", name=name)
        for n in range(count)
        for name in [names[n % len(names)]]
    ]


class _Batches:
    """Batches of the stack, followed by their ids."""

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes

    async def submit(self, members: Sequence[_Member], **more: Any) -> BatchAccepted:
        """Submit a batch, which must be accepted; each episode in its place."""
        request = BatchRequest(episodes=[each.request for each in members], **more)
        body = request.model_dump(mode="json", exclude_none=True)
        answer = await self.episodes.controller.post("/episodes/batch", body)

        assert 202 == answer.status, f"expected the batch to be accepted, found {answer}"
        accepted = BatchAccepted.model_validate_json(answer.body)
        assert len(members) == len(accepted.episodes), f"expected {len(members)}, found {accepted}"
        return accepted

    async def get(self, batch_id: str) -> Batch:
        """A batch as it is now; its sums must be those of its episodes."""
        answer = await self.episodes.controller.get(f"/batches/{batch_id}")

        assert 200 == answer.status, f"expected the batch that was accepted, found {answer}"
        batch = Batch.model_validate_json(answer.body)
        found = Counter(each.status for each in batch.episodes)
        sums = {status: found[status] for status in EpisodeStatus}
        expect_same(sums, batch.counts, what=f"counts of batch {batch_id} beside its episodes")
        ended = all(status.final for status in found)
        assert ended == (batch.status is BatchStatus.ENDED) == (batch.ended_at is not None), (
            f"a batch has ended when its last episode has: expected {ended}, found {batch}"
        )
        return batch

    async def until(self, batch_id: str, *wanted: str) -> Batch:
        """The batch when its episodes have these statuses, in order."""
        seen: list[str] = []

        async def there() -> Batch | None:
            batch = await self.get(batch_id)
            seen[:] = [each.status.value for each in batch.episodes]
            return batch if seen == list(wanted) else None

        found: Batch = await eventually(
            there,
            seconds=EPISODE_S,
            expected=f"a batch whose episodes are {wanted}",
            seen=lambda: seen,
        )
        return found

    async def ended(self, batch_id: str) -> Batch:
        """The batch when all of its episodes have ended."""

        async def there() -> Batch | None:
            batch = await self.get(batch_id)
            return batch if batch.status is BatchStatus.ENDED else None

        found: Batch = await eventually(
            there, seconds=EPISODE_S, expected=f"the batch {batch_id} to end"
        )
        return found

    async def interrupt(self, batch_id: str) -> Response:
        """Interrupt a batch; the answer, whatever it is."""
        return await self.episodes.controller.post(f"/batches/{batch_id}/interrupt")


async def _waits(episodes: Episodes, members: Sequence[_Member], *turns: Turn) -> None:
    """Each writes what is its own alone, takes some turns, and waits until it is let go."""
    for each in members:
        await episodes.rehearse(
            each.token,
            use("fs_write", path="assets/mine.txt", content=f"{each.name} {each.token}"),
            *turns,
            episodes.waiting(),
        )


async def test_int_043_as_many_as_it_may(episodes: Episodes) -> None:
    """Two of five run at once, in the order of submission; each with data, files and assets of its own.

    Another batch beside it has a limit of its own. The model provider is a stand-in: the gateway does
    the turns.
    """
    batches = _Batches(episodes)
    members, others = _members(5), _members(2)
    simulating = (
        use("fs_write", path="scene.xml", content=EMPTY_SCENE),
        use("simulate", model="scene.xml", duration_s=0.1),
    )
    await _waits(episodes, [*members, *others], *simulating)
    accepted = await batches.submit(members, concurrency=2)
    beside = await batches.submit(others, concurrency=1)
    assert (2, 1) == (accepted.concurrency, beside.concurrency), (
        f"limits that were asked for: expected 2 and 1, found {accepted.concurrency}, {beside.concurrency}"
    )
    ids = [each.episode_id for each in accepted.episodes]
    sessions = [each.session_id for each in accepted.episodes]
    for number in (0, 1):
        await episodes.begun(sessions[number])
    await episodes.begun(beside.episodes[0].session_id)
    await batches.until(accepted.batch_id, *["running"] * 2, *["queued"] * 3)
    await batches.until(beside.batch_id, "running", "queued")
    # The second goes first: its place is the third's, and nobody else's.
    await episodes.release(sessions[1])
    await episodes.begun(sessions[2])
    await batches.until(accepted.batch_id, "running", "completed", "running", *["queued"] * 2)
    for number in (0, 2, 3, 4):
        await episodes.begun(sessions[number])
        await episodes.release(sessions[number])
    batch = await batches.until(accepted.batch_id, *["completed"] * 5)
    for each in beside.episodes:
        await episodes.begun(each.session_id)
        await episodes.release(each.session_id)
    await batches.until(beside.batch_id, *["completed"] * 2)

    expect_same(ids, [each.episode_id for each in batch.episodes], what="episodes in their order")
    for values in (ids, sessions, [each.trace_id for each in accepted.episodes]):
        assert 5 == len(set(values)), f"ids of five episodes are five: found {values}"
    spans = []
    for each, summary in zip(members, batch.episodes, strict=True):
        told = (summary.seed, summary.variant, summary.metadata, summary.batch_id)
        given = (each.seed, each.variant, {"who": each.name}, accepted.batch_id)
        expect_same(given, told, what="seed, variant, metadata and batch of an episode")
        answer = await episodes.controller.get(f"/episodes/{summary.episode_id}/assets/mine.txt")
        assert (200, f"{each.name} {each.token}") == (answer.status, answer.text), (
            f"an episode's asset holds what it wrote: found {answer}"
        )
        events = await episodes.events(summary.episode_id)
        [tracked] = [event["payload"] for event in calls(events, "seed_variant")]
        found = (tracked["seed"], tracked["variant"])
        expect_same((each.seed, each.variant), found, what="seed and variant of a member's run")
        executed = [
            event for event in calls(events, "tool_call") if "execute" in str(event["payload"])
        ]
        assert 1 == len(executed), f"one command was run for {each.name}: found {executed}"
        episode = await episodes.get(summary.episode_id)
        seen = await describe_workflow(episodes.stack, episode["workflow_id"])
        assert seen is not None, f"Temporal has no workflow of {each.name}, found none"
        ids = {key: episode[key] for key in ("episode_id", "trace_id")}
        memo = {key: seen.memo.get(key) for key in ids}
        expect_same(ids, memo, what=f"ids that Temporal has of {each.name}")
        await _has_time(episodes, seen, rounds=3)
        times = {
            step["to_status"]: utc(step["at"], what="a transition")
            for step in episode["transitions"]
        }
        spans.append((times["running"], times["completed"]))
    for at, _ in spans:
        running = [span for span in spans if span[0] <= at < span[1]]
        assert len(running) <= 2, f"at most two run at once: found {len(running)} at {at}: {spans}"
    assert batch.ended_at == max(end for _, end in spans), (
        f"a batch ends with its last episode: expected {max(end for _, end in spans)}, found {batch}"
    )


async def _has_time(episodes: Episodes, member: WorkflowSeen, *, rounds: int) -> None:
    """What begins the members of a batch may take as long as they may, one after the other."""
    if not member.parent or not member.limit_s:
        return
    whole = await describe_workflow(episodes.stack, member.parent)
    assert whole is not None, f"Temporal has no workflow {member.parent}, which has begun others"
    assert not whole.limit_s or whole.limit_s >= rounds * member.limit_s, (
        f"expected {rounds} times {member.limit_s:g} s, which each member may take, for what begins "
        f"{rounds} of them one after the other, found {whole.limit_s:g} s"
    )


async def test_int_043_who_names_no_limit_has_the_controllers(episodes: Episodes) -> None:
    """A batch without a limit of its own has one of the controller's, which does not hang on its size.

    The model provider is a stand-in: the gateway does the turns.
    """
    batches = _Batches(episodes)
    few, many = _members(1), _members(_MANY)
    await _waits(episodes, [*few, *many])
    small, large = await batches.submit(few), await batches.submit(many)
    expect_same(small.concurrency, large.concurrency, what="limits of batches that name none")
    assert large.concurrency < _MANY, f"a batch that names no limit has none: found {large}"
    for each in [*small.episodes, *large.episodes[: large.concurrency]]:
        await episodes.begun(each.session_id)
    waiting = ["queued"] * (_MANY - large.concurrency)
    await batches.until(large.batch_id, *["running"] * large.concurrency, *waiting)
    for each in (small, large):
        answer = await batches.interrupt(each.batch_id)
        assert 202 == answer.status, f"expected the interruption accepted, found {answer}"
        await batches.ended(each.batch_id)


async def test_int_043_what_becomes_of_one(episodes: Episodes) -> None:
    """One that fails, one that is interrupted at work and one before its turn leave the others alone.

    What was interrupted before its turn never asks the model. The model provider is a stand-in: the
    gateway does the turns.
    """
    batches = _Batches(episodes)
    members = _members(6)
    await _waits(episodes, members[1:])
    await episodes.rehearse(members[0].token, fail(400))
    accepted = await batches.submit(members, concurrency=2)
    ids = [each.episode_id for each in accepted.episodes]
    sessions = [each.session_id for each in accepted.episodes]
    await episodes.begun(sessions[1])
    await episodes.begun(sessions[2])
    await batches.until(accepted.batch_id, "failed", *["running"] * 2, *["queued"] * 3)
    for number in (3, 1):
        answer = await episodes.interrupt(ids[number])
        assert 202 == answer.status, f"expected the interruption accepted, found {answer}"
    await episodes.begun(sessions[4])
    await batches.until(
        accepted.batch_id, "failed", "interrupted", "running", "interrupted", "running", "queued"
    )
    expect_refused(await episodes.interrupt(ids[3]), 409)
    for number in (2, 4, 5):
        await episodes.begun(sessions[number])
        await episodes.release(sessions[number])
    ended = await batches.until(
        accepted.batch_id,
        *("failed", "interrupted", "completed", "interrupted", "completed", "completed"),
    )

    never = ended.episodes[3]
    asked = await episodes.asked(members[3].token)
    assert 0 == asked, f"an episode that never began asks no model: expected 0 calls, found {asked}"
    steps = [step["to_status"] for step in (await episodes.get(never.episode_id))["transitions"]]
    expect_same(["queued", "interrupted"], steps, what="steps of an episode that never began")
    assert ended.episodes[0].reason != ended.episodes[1].reason, (
        f"each end has a reason of its own: found {ended.episodes[0].reason!r} twice"
    )
    for number in (2, 4, 5):
        assert await episodes.was_whole(sessions[number]), (
            f"episode {number} did not come to its end"
        )
    expect_refused(await batches.interrupt(accepted.batch_id), 409)


async def test_int_043_all_of_it_is_interrupted(episodes: Episodes) -> None:
    """An interrupted batch begins nothing more; what had ended stays as it was, another batch goes on.

    The model provider is a stand-in: the gateway does the turns.
    """
    batches = _Batches(episodes)
    members, others = _members(5), _members(1)
    await _waits(episodes, [*members, *others])
    accepted = await batches.submit(members, concurrency=2)
    beside = await batches.submit(others)
    sessions = [each.session_id for each in accepted.episodes]
    await episodes.begun(sessions[0])
    await episodes.release(sessions[0])
    await episodes.begun(sessions[1])
    await episodes.begun(sessions[2])
    await episodes.begun(beside.episodes[0].session_id)
    await batches.until(accepted.batch_id, "completed", *["running"] * 2, *["queued"] * 2)
    answer = await batches.interrupt(accepted.batch_id)
    assert 202 == answer.status, f"expected the interruption accepted, found {answer}"
    first = BatchInterruptAccepted.model_validate_json(answer.body)
    left = {each.episode_id for each in accepted.episodes[1:]}
    assert set(first.episode_ids) == left, (
        f"what had not ended is interrupted: expected {left}, found {first.episode_ids}"
    )
    again = await batches.interrupt(accepted.batch_id)
    if again.status != 202:
        expect_refused(again, 409)
    batch = await batches.until(accepted.batch_id, "completed", *["interrupted"] * 4)

    expect_same(
        first.interrupt_requested_at,
        batch.interrupt_requested_at,
        what="when an interruption that was acknowledged, and asked for once more, was asked for",
    )
    asked = [await episodes.asked(each.token) for each in members[3:]]
    assert [0, 0] == asked, f"what had not begun never asks the model: expected none, found {asked}"
    expect_refused(await batches.interrupt(accepted.batch_id), 409)
    await episodes.release(beside.episodes[0].session_id)
    await batches.until(beside.batch_id, "completed")
    for wrong in (0, -1, 51, 1.5):
        body = {"episodes": [members[0].request.model_dump(mode="json")], "concurrency": wrong}
        expect_refused(await episodes.controller.post("/episodes/batch", body), 400, 422)
    expect_refused(await episodes.controller.get(f"/batches/{_UNKNOWN}"), 404)
    expect_refused(await batches.interrupt(_UNKNOWN), 404)


async def test_int_043_it_is_interrupted_between_short_calls(episodes: Episodes) -> None:
    """A batch whose agents do one short thing after another is interrupted, and none comes to its end.

    Each call is over before anybody can cancel it, or while that is on the way; what had not begun asks no
    model. The model provider is a stand-in: the gateway does the turns.
    """
    batches = _Batches(episodes)
    for turn, at in enumerate(_SHORT_AT):
        members = _members(4)
        for place, each in enumerate(members):
            lasting_s = SHORT_S[(turn + place) % len(SHORT_S)]
            await episodes.rehearse(each.token, short_calls(lasting_s), AFTERWARDS)
        accepted = await batches.submit(members, concurrency=2)
        sessions = [episodes.session(each.session_id) for each in accepted.episodes]

        async def is_at(session: Session = sessions[0], at: int = at) -> bool:
            return f"{at}.txt" in await session.files()

        await eventually(is_at, seconds=EPISODE_S, expected=f"call {at} of many short ones")
        answer = await batches.interrupt(accepted.batch_id)
        assert 202 == answer.status, f"expected the interruption accepted, found {answer}"
        batch = await batches.ended(accepted.batch_id)
        statuses = [each.status.value for each in batch.episodes]
        expect_same(["interrupted"] * 4, statuses, what="an interrupted batch's episodes")
        for each, summary, session in zip(members, batch.episodes, sessions, strict=True):
            files = await session.files()
            ends = {f"{SHORT_CALLS - 1}.txt", "afterwards.txt"} & files
            assert not ends, (
                f"an agent of a batch interrupted at call {at} went on to its end: {ends}"
            )
            episode = await episodes.get(summary.episode_id)
            if "running" in [step["to_status"] for step in episode["transitions"]]:
                await expect_interrupted(episodes, episode)
            else:
                asked = await episodes.asked(each.token)
                assert 0 == asked, f"what had not begun never asks the model: found {asked} calls"


async def test_int_043_each_works_at_what_it_was_asked_for(episodes: Episodes) -> None:
    """Role, purpose and hand-over of an episode of a batch are those of its own request, as for a single one.

    Of a benchmark nobody estimates the price; its coder begins with the bytes that were handed over, and is to
    add its geometry. The model provider is a stand-in: the gateway holds the models.
    """
    purpose = Purpose.BENCHMARK
    async with planner_at_work(episodes, number=431, purpose=purpose.value) as planner:
        files = planned(planner.sound().files())
        await planner.leave(files)
        handed = expect_handed(await planner.submit(), {*files}, what="the plan of a benchmark")
    wanted: list[tuple[dict[str, Any], set[str]]] = [
        ({"role": "planner", "purpose": purpose}, {PLAN, TODO, OBJECTIVES}),
        ({"role": "planner"}, {*FILES}),
        ({"role": "coder", "purpose": purpose, "handover_id": handed.handover_id}, {GEOMETRY}),
    ]
    batches, members = _Batches(episodes), _members(len(wanted))
    requests = [
        EpisodeRequest.model_validate(each.request.model_dump() | about, strict=False)
        for each, (about, _) in zip(members, wanted, strict=True)
    ]
    gateway = episodes.stack.gateway.client
    async with AsyncExitStack() as stack:
        for each in members:
            await episodes.rehearse(each.token)
            held = Fault(kind="hold", contains=each.token, times=9)
            await stack.enter_async_context(gateway.fault(held))
        answer = await episodes.controller.post(
            "/episodes/batch", sent(BatchRequest(episodes=requests, concurrency=len(requests)))
        )
        assert 202 == answer.status, f"expected a batch to be accepted, found {answer}"
        accepted = BatchAccepted.model_validate_json(answer.body)
        for summary, (about, lacking) in zip(accepted.episodes, wanted, strict=True):
            session = episodes.session(summary.session_id)

            async def has_begun(session: Session = session) -> bool:
                return (await session.read(TODO)).status == 200

            await eventually(has_begun, seconds=EPISODE_S, expected=f"the list of {about}")
            if about["role"] == "planner":
                for path in FILES:
                    await session.post("/fs/delete", path=path)
            expect_found(
                await hand_over(session), Stage.PRESENT, lacking, what=f"nothing, by {about}"
            )
        for path in (PLAN, OBJECTIVES):
            answer = await episodes.session(accepted.episodes[-1].session_id).read(path)
            assert files[path] == answer.json()["content"], (
                f"an episode of a batch begins with what it was handed: expected {path}, found {answer}"
            )
    await batches.until(accepted.batch_id, *["completed"] * len(wanted))


async def test_int_043_a_batch_outlives_restarts(breakable: Episodes) -> None:
    """Controller and controller-worker are killed in the middle: the limit holds, all end, nothing twice.

    The model provider is a stand-in: the gateway does the turns.
    """
    batches = _Batches(breakable)
    members = _members(4)
    await _waits(breakable, members)
    accepted = await batches.submit(members, concurrency=1)
    sessions = [each.session_id for each in accepted.episodes]
    await breakable.begun(sessions[0])
    async with breakable.stack.outage("controller", "kill"):
        await breakable.release(sessions[0])
        await breakable.begun(sessions[1])
    await batches.until(accepted.batch_id, "completed", "running", *["queued"] * 2)
    await breakable.release(sessions[1])
    await breakable.begun(sessions[2])
    async with breakable.stack.outage("controller-worker", "kill"):
        pass
    await breakable.release(sessions[2])
    await breakable.begun(sessions[3])
    await breakable.release(sessions[3])
    batch = await batches.until(accepted.batch_id, *["completed"] * 4)

    for summary in batch.episodes:
        episode = await breakable.get(summary.episode_id)
        steps = [step["to_status"] for step in episode["transitions"]]
        expect_same(["queued", "running", "completed"], steps, what="steps of an episode")
