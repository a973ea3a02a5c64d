"""An interrupt reaches the process that works for the episode."""

from __future__ import annotations

from typing import Any, Final

import pytest
import trio
from workbench_contract.flows import FlowRequest

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same, expect_unchanged
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
from suites.integration.patience import COMMAND_S, EPISODE_S, SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.scenes import scene
from suites.integration.sessions import Session, new_session

#: Longer than any run of the suite, so that nothing ends by itself.
_LONG_S = 600

#: At which of many short calls an interruption is asked for.
_SHORT_AT: Final = (0, 3)

#: Writes on in the foreground, in the background, and out of its process group and session.
_BEATING: Final = (
    "beat() { while :; do echo x >> $1; sleep 0.05; done; }; "
    "beat behind & setsid sh -c 'while :; do echo x >> away; sleep 0.05; done' & "
    "trap '' TERM INT HUP; beat beats"
)


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
@pytest.mark.parametrize("work", ["command", "simulation"])
async def test_int_030_interrupt_ends_the_work(episodes: Episodes, work: str) -> None:
    """An interrupted episode has no process any more; rows, events and Temporal agree about it.

    Another episode at the same worker is not ended with it, nor its command. It cannot be
    interrupted again: 409, and its state stays; of two who interrupt at once both are answered, and
    it is interrupted once. The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    busy = {
        "command": use("execute", command=_BEATING, timeout_s=COMMAND_S),
        "simulation": use("simulate", model="scene.xml", duration_s=_LONG_S),
    }[work]
    await episodes.rehearse(
        token,
        use("fs_write", path="scene.xml", content=scene(boxes=40)),
        busy,
        use("fs_write", path="afterwards.txt", content="x"),
    )
    bystander = await _bystander(episodes)
    accepted = await episodes.submit(token)
    episode_id, session_id = accepted["episode_id"], accepted["session_id"]
    await _is_busy(episodes, session_id, work)
    answers = await _interrupted_by_two(episodes, episode_id)

    assert 202 in {each.status for each in answers}, f"expected an interruption, found {answers}"
    for answer in answers:
        if answer.status != 202:
            expect_refused(answer, 409)
        else:
            assert episode_id == answer.json()["episode_id"], f"expected {episode_id}: {answer}"
    episode = await episodes.until(episode_id, "interrupted", seconds=SOON_S)
    told = {each.json()["interrupt_requested_at"] for each in answers if each.status == 202} | {
        episode["interrupt_requested_at"]
    }
    assert len(told) == 1, (
        f"an interruption that was acknowledged stands: expected one time of asking, in each answer and "
        f"on record, found {sorted(told)}"
    )
    if work == "command":
        await _stands_still(episodes, session_id)
    else:
        await _others_may_simulate(episodes)
        results = calls(await episodes.record(session_id), "simulation_result")
        ended = [result for result in results if result["payload"].get("ok") is not False]
        # On a fast machine it may have come to its end: the queue is free then as well.
        assert not ended, f"the interrupted simulation ran to its end: {ended}"
    left = await episodes.session(session_id).files()
    assert "afterwards.txt" not in left, "the agent went on"
    await expect_interrupted(episodes, episode)
    again = await episodes.interrupt(episode_id)
    unknown = await episodes.interrupt("no-such-episode")

    expect_refused(again, 409)
    expect_refused(unknown, 404)
    now = await episodes.get(episode_id)
    expect_unchanged(episode, now, what="the episode after an interruption that was refused")
    await _was_left_alone(episodes, bystander)


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
async def test_int_030_it_is_interrupted_wherever_it_is(episodes: Episodes) -> None:
    """While the model thinks, while its simulation waits for its turn, and beside one of its kind.

    What waits is never run, what waits behind it is; what has ended is refused: 409. The model
    provider is a stand-in: the gateway does the turns, and holds one of them.
    """
    thinks, waits, behind, done = (new_token() for _ in range(4))
    gateway = episodes.stack.gateway.client
    simulates = use("simulate", model="scene.xml", duration_s=0.1)
    write = use("fs_write", path="scene.xml", content=scene())
    await episodes.rehearse(thinks, use("fs_write", path="late.txt", content="x"))
    await episodes.rehearse(waits, write, simulates, use("fs_write", path="late.txt", content="x"))
    await episodes.rehearse(behind, write, simulates)
    ended = await episodes.run(done, use("fs_write", path="a.txt", content="x"))
    first = episodes.session(f"{done}-first")
    await first.write("scene.xml", scene(boxes=40))
    held = gateway.fault(Fault(kind="hold", contains=thinks))
    async with held as number, trio.open_nursery() as nursery:
        nursery.start_soon(_runs_until_cancelled, first)
        await _is_busy(episodes, first.id, "simulation")
        thinking = await episodes.submit(thinks)
        waiting = await episodes.submit(waits)
        await _is_busy(episodes, waiting["session_id"], "simulation")
        following = await episodes.submit(behind)
        await _is_busy(episodes, following["session_id"], "simulation")

        async def asked() -> bool:
            return await gateway.fault_met(number) > 0

        await eventually(asked, seconds=SOON_S, expected="the model to be asked")
        for accepted in (thinking, waiting):
            answer = await episodes.interrupt(accepted["episode_id"])
            assert 202 == answer.status, f"expected an interruption, found {answer}"
        for accepted in (thinking, waiting):
            episode = await episodes.until(accepted["episode_id"], "interrupted")
            await expect_interrupted(episodes, episode)
        still = await episodes.get(following["episode_id"])
        assert "running" == still["status"], f"one that waits behind was ended: {still}"
        answer = await first.post(f"/jobs/{_JOB}/cancel")
        assert 200 == answer.status, f"expected the first simulation cancelled, found {answer}"
    await episodes.until(following["episode_id"], "completed")
    for accepted in (thinking, waiting):
        files = await episodes.session(accepted["session_id"]).files()
        assert "late.txt" not in files, "the agent of an interrupted episode went on"
    results = calls(await episodes.record(waiting["session_id"]), "simulation_result")
    ran = [result for result in results if result["payload"].get("ok") is not False]
    assert not ran, f"a simulation that was cancelled while it waited was run: {ran}"
    expect_refused(await episodes.interrupt(ended["episode_id"]), 409)
    now = await episodes.get(ended["episode_id"])
    expect_unchanged(ended, now, what="a completed episode after an interruption that was refused")


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
async def test_int_030_between_many_short_calls(episodes: Episodes) -> None:
    """An agent that does one short thing after another is interrupted as well, and does not come to its end.

    Each call is over before anybody can cancel it, or while that is on the way. The model provider is a
    stand-in: the gateway does the turns.
    """
    for at in _SHORT_AT:
        agents = []
        for lasting_s in SHORT_S:
            token = new_token()
            await episodes.rehearse(token, short_calls(lasting_s), AFTERWARDS)
            agents.append(await episodes.submit(token))
        for accepted in agents:
            session = episodes.session(accepted["session_id"])

            async def is_at(session: Session = session, at: int = at) -> bool:
                return f"{at}.txt" in await session.files()

            await eventually(is_at, seconds=SOON_S, expected=f"call {at} of many short ones")
            answer = await episodes.interrupt(accepted["episode_id"])
            assert 202 == answer.status, f"expected an interruption, found {answer}"
        for lasting_s, accepted in zip(SHORT_S, agents, strict=True):
            episode = await episodes.until(accepted["episode_id"], "interrupted", seconds=SOON_S)
            await expect_interrupted(episodes, episode)
            files = await episodes.session(accepted["session_id"]).files()
            last = {f"{SHORT_CALLS - 1}.txt", "afterwards.txt"} & files
            assert not last, (
                f"an agent that was interrupted at call {at}, of {lasting_s:g} s each, went on to the end: "
                f"{last}"
            )


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
async def test_int_030_no_work_is_left_when_who_asked_is_gone(breakable: Episodes) -> None:
    """With the controller-worker killed, an interrupted episode's command ends, too.

    So does what was submitted meanwhile, an episode and a flow, and is queued still: interrupted, it was
    never begun. Nothing of it runs on when the controller-worker is back. The model provider is a
    stand-in: the gateway does the turns.
    """
    token, queued = new_token(), new_token()
    busy = use("execute", command=_BEATING, timeout_s=COMMAND_S)
    await breakable.rehearse(token, busy, use("fs_write", path="afterwards.txt", content="x"))
    accepted = await breakable.submit(token)
    await _is_busy(breakable, accepted["session_id"], "command")
    await breakable.rehearse(queued, use("fs_write", path="afterwards.txt", content="x"))
    async with breakable.stack.outage("controller-worker", "kill"):
        waits = await breakable.submit(queued)
        answer = await breakable.controller.post(
            "/flows", sent(FlowRequest(task=f"Make the part {queued}."))
        )
        assert 202 == answer.status, f"expected a flow to be accepted, found {answer}"
        flow = f"/flows/{answer.json()['flow_id']}"
        for path in (*(f"/episodes/{each['episode_id']}" for each in (accepted, waits)), flow):
            answer = await breakable.controller.post(f"{path}/interrupt")
            assert 202 == answer.status, f"expected an interruption of {path}, found {answer}"
        episode = await breakable.until(accepted["episode_id"], "interrupted", seconds=EPISODE_S)
        never = await breakable.until(waits["episode_id"], "interrupted", seconds=EPISODE_S)
        stopped = await _flow_until_interrupted(breakable, flow)
        await _stands_still(breakable, accepted["session_id"])
    await _stands_still(breakable, accepted["session_id"])
    for before in (episode, never):
        now = await breakable.get(before["episode_id"])
        expect_unchanged(
            before, now, what="an interrupted episode once the controller-worker is back"
        )
    now = (await breakable.controller.get(flow)).json()
    expect_same(stopped, now, what="the interrupted flow once the controller-worker is back")
    steps = [step["to_status"] for step in never["transitions"]]
    expect_same(["queued", "interrupted"], steps, what="steps of one interrupted before it began")
    begun = [step for step in stopped["transitions"] if step["episode_id"] is not None]
    expect_same([], begun, what="turns of a flow that was interrupted before it began")
    asked = await breakable.asked(queued)
    assert 0 == asked, f"the model of what was never begun was asked {asked} times, expected none"
    for each in (accepted, waits):
        files = await breakable.session(each["session_id"]).files()
        assert "afterwards.txt" not in files, "the agent went on"


async def _flow_until_interrupted(episodes: Episodes, path: str) -> dict[str, Any]:
    """A flow that was interrupted, when it says so."""
    last: dict[str, Any] = {}

    async def there() -> dict[str, Any] | None:
        last.update((await episodes.controller.get(path)).json())
        return last if last["status"] == "interrupted" else None

    return await eventually(
        there,
        seconds=EPISODE_S,
        expected=f"{path} to be interrupted",
        seen=lambda: {key: last.get(key) for key in ("status", "reason")},
    )


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
@pytest.mark.parametrize("operation", ["validate", "analyze"])
async def test_int_030_what_is_cancelled_has_no_verdict(worker, operation: str) -> None:
    """A model whose check was cancelled is neither good nor bad: the check is refused, 409.

    Nothing of it is recorded as a finding, and the same model is checked afterwards.
    """
    session = new_session(worker)
    await session.write("endless.py", "import time\n\nwhile True:\n    time.sleep(0.05)\n")
    await session.write("good.py", "from build123d import *\n\npart = Box(3, 4, 5)\n")
    answers: list[Response] = []

    async def check() -> None:
        body = {"model": "endless.py", "job_id": "endless"}
        answers.append(await session.post(f"/benchmark/{operation}", **body, seconds=COMMAND_S))

    async def cancelled() -> bool:
        answer = await session.post("/jobs/endless/cancel")
        return answer.status == 200 and answer.json()["was_running"]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(check)
        await eventually(cancelled, seconds=SOON_S, expected=f"the {operation} cancelled")
    expect_refused(answers[0], 409)
    checks = calls(await session.events(), "manufacturability_check")
    assert not checks, f"a check that was cancelled is recorded as one: {checks}"
    again = await session.post(
        f"/benchmark/{operation}", model="good.py", job_id="endless", seconds=COMMAND_S
    )
    assert again.status == 200, f"after a cancelled {operation}, expected a verdict, found {again}"


async def _interrupted_by_two(episodes: Episodes, episode_id: str) -> list[Response]:
    answers: list[Response] = []

    async def one() -> None:
        answers.append(await episodes.interrupt(episode_id))

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(one)
    return answers


_JOB: Final = "the-first"


async def _runs_until_cancelled(session: Any) -> None:
    body = {"model": "scene.xml", "duration_s": _LONG_S, "job_id": _JOB, "variant": "first"}
    answer = await session.post("/benchmark/simulate", **body, seconds=COMMAND_S)
    expect_refused(answer, 409)


async def _bystander(episodes: Episodes) -> dict[str, Any]:
    """An episode whose command runs until it is let go."""
    token = new_token()
    await episodes.rehearse(token, episodes.waiting())
    accepted = await episodes.submit(token)
    await episodes.begun(accepted["session_id"])
    return accepted


async def _was_left_alone(episodes: Episodes, bystander: dict[str, Any]) -> None:
    """The other episode ran on, with its command, to an end of its own."""
    now = await episodes.get(bystander["episode_id"])

    assert "running" == now["status"], f"another episode was ended as well: {now['transitions']}"
    asked_at = now["interrupt_requested_at"]
    assert asked_at is None, f"another episode was asked to end as well, at {asked_at}"
    await episodes.release(bystander["session_id"])
    await episodes.until(bystander["episode_id"], "completed")
    assert await episodes.was_whole(bystander["session_id"]), (
        "the command of another episode was ended as well"
    )


async def _is_busy(episodes: Episodes, session_id: str, work: str) -> None:
    async def there() -> bool:
        session = episodes.session(session_id)
        if work == "simulation":
            return bool(calls(await session.events(), "simulation_request"))
        return {"beats", "behind", "away"} <= await session.files()

    await eventually(there, seconds=SOON_S, expected=f"the {work} of {session_id} to run")


async def _stands_still(episodes: Episodes, session_id: str) -> None:
    """The files that processes wrote to do not grow while another process watches them."""
    command = "wc -c beats behind away; sleep 0.5; wc -c beats behind away"
    watched = await episodes.session(session_id).execute(command)
    lines = watched["stdout"].splitlines()
    before, after = lines[: len(lines) // 2], lines[len(lines) // 2 :]

    assert len(before) == 4, f"expected the sizes of three files, found {watched}"
    assert before == after, (
        f"the process of the interrupted episode still writes: {before}, {after}"
    )


async def _others_may_simulate(episodes: Episodes) -> None:
    """The queue is free: the simulation of another session is run at once."""
    session = episodes.session(new_token())
    await session.write("scene.xml", scene())
    answer = await session.post(
        "/benchmark/simulate", model="scene.xml", duration_s=0.1, seconds=patience(SOON_S)
    )

    assert 200 == answer.status, f"expected the queue to be free, found {answer}"
