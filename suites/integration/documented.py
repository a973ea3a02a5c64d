"""Ordinary work by the API of a service, each answer held to its document: episodes, flows, a backup, a session."""

from typing import Any

import trio
from workbench_contract.batches import BatchRequest
from workbench_contract.episodes import EpisodeRequest
from workbench_contract.execution import ExecuteRequest
from workbench_contract.files import ListRequest
from workbench_contract.flows import BenchmarkRequest, FlowRequest
from workbench_contract.handover import SubmitRequest

from harness_core.base.slowness import patience
from harness_core.doubles.turns import Turn, fail, say, use
from suites.integration.bundles import PLAN
from suites.integration.comparing import expect_same
from suites.integration.conforming import Conforming
from suites.integration.episodes import FINAL, Episodes
from suites.integration.flows import flow_at_work
from suites.integration.messages import OPERATIONS, sent
from suites.integration.patience import COMMAND_S, EPISODE_S, SOON_S, eventually
from suites.integration.planners import expect_accepted, handover, planner_at_work
from suites.integration.refusals import OUTSIDE, expect_refused

__all__ = [
    "ENTRY",
    "SIGNED",
    "WORK_S",
    "ended",
    "hands_over",
    "run_of_a_backup",
    "run_of_a_session",
    "run_of_episodes",
    "run_of_flows",
]


#: Episodes of one batch, besides their tasks: no two are alike in anything.
BATCH: tuple[dict[str, Any], ...] = (
    {"role": "coder", "seed": 0, "variant": "eins", "metadata": {"n": 1, "größe": [0.5]}},
    {"role": "reviewer", "seed": 7, "variant": "zwei/2", "metadata": {"n": 2}},
    {"role": "planner", "purpose": "benchmark", "seed": 2**31 - 1, "variant": "三", "metadata": {}},
)


#: Of the right form, and of nothing.
UNKNOWN = "00000000-0000-4000-8000-000000000028"


#: An operation of the worker that builds or simulates: seconds, most of them imports.
WORK_S = 60.0


SCENE = (
    '<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .2"><freejoint/>'
    '<geom type="box" size=".05 .05 .05"/></body></worldbody></mujoco>'
)


#: What is refused for its signature before anything else is looked at.
SIGNED = "/callbacks/{job_id}"


#: An entry of a journal, as it is taken.
ENTRY = {
    "intent": "to see",
    "result": "seen",
    "reflection": "it holds",
    "next_step": "none",
    "observations": [{"source": "worker", "seq": 1}],
}


async def run_of_episodes(asking: Conforming, episodes: Episodes, token: str) -> None:
    """An episode that completes with an asset, one that fails, a batch, and every refusal."""
    await rehearsed(
        episodes,
        f"{token}-good",
        use("fs_write", path="assets/note.txt", content=f"asset {token}"),
        use("execute", command="echo done"),
    )
    await rehearsed(episodes, f"{token}-bad", fail(400))
    batch = [{"task": f"{token}-batch-{number}", **each} for number, each in enumerate(BATCH)]
    for each in batch:
        searches = [use("search_catalogue", q="m4")] if each["role"] == "planner" else []
        await rehearsed(episodes, each["task"], *searches, say("There is nothing to do."))
    good = await submitted(asking, f"{token}-good")
    assert "completed" == await ended(asking, good), f"episode {good} did not complete"
    bad = await submitted(asking, f"{token}-bad")
    assert "failed" == await ended(asking, bad), f"episode {bad} did not fail"
    await interrupted(asking, episodes, f"{token}-waits")
    await batch_interrupted(asking, episodes, f"{token}-batch-waits")
    requests = [EpisodeRequest.model_validate(each) for each in batch]
    answer = await asking.ask("POST", "/episodes/batch", json=sent(BatchRequest(episodes=requests)))
    assert 202 == answer.status, f"a batch: {answer}"
    made = answer.json()["episodes"]
    ids = ("episode_id", "session_id", "workflow_id", "trace_id")
    for field in ids:
        values = {each[field] for each in made}
        assert len(made) == len(values) == len(batch), (
            f"expected {len(batch)} with a {field} each, found {answer}"
        )
    for each, asked in zip(made, batch, strict=True):
        status = await ended(asking, each["episode_id"])
        assert "completed" == status, f"expected each of a batch to complete, found {status}"
        found = (await asking.ask("GET", f"/episodes/{each['episode_id']}")).json()
        await asking.ask("GET", f"/episodes/{each['episode_id']}/events")
        told = {key: each[key] for key in ids} | asked
        expect_same(
            told, {key: found[key] for key in told}, what="an episode of a batch, by itself"
        )
    batch_id = answer.json()["batch_id"]
    answer = await asking.ask("GET", f"/batches/{batch_id}")
    assert 200 == answer.status, f"a batch that has ended: {answer}"
    expect_refused(await asking.ask("POST", f"/batches/{batch_id}/interrupt"), 409)
    for identity in (good, bad):
        for part in ("", "/events", "/assets"):
            answer = await asking.ask("GET", f"/episodes/{identity}{part}")
            assert 200 == answer.status, f"{part or 'itself'} of an episode: {answer}"
        expect_refused(await asking.ask("POST", f"/episodes/{identity}/interrupt"), 409)
        expect_refused(await asking.ask("GET", f"/episodes/{identity}/assets/nothing.txt"), 404)
    assets = (await asking.ask("GET", f"/episodes/{good}/assets")).json()["assets"]
    assert ["note.txt"] == [each["path"].rpartition("/")[2] for each in assets], (
        f"expected one asset, note.txt, found {assets}"
    )
    answer = await asking.ask("GET", f"/episodes/{good}/assets/{assets[0]['path']}")
    assert (200, f"asset {token}") == (answer.status, answer.text), f"the asset: {answer}"
    for query in ({}, {"limit": 1}, {"status": "failed"}, {"offset": 10_000}):
        answer = await asking.ask("GET", "/episodes", params=query)
        assert 200 == answer.status, f"the list with {query}: {answer}"
    for query in ({"limit": -1}, {"limit": "x"}, {"status": "asleep"}):
        expect_refused(await asking.ask("GET", "/episodes", params=query), 422)
    answer = await asking.ask("GET", "/skills")
    assert 200 == answer.status, f"the skills, also where there are none: {answer}"
    for query in ({}, {"q": "m4", "limit": 25}, {"spec": "torque_n_m>=99"}):
        answer = await asking.ask("GET", "/cots/search", params=query)
        assert 200 == answer.status, f"a search of the catalogue with {query}: {answer}"
    for query in ({"limit": 0}, {"limit": "x"}, {"spec": "colour=red"}, {"cursor": "x"}):
        expect_refused(await asking.ask("GET", "/cots/search", params=query), 400, 422)


async def run_of_flows(asking: Conforming, episodes: Episodes, token: str) -> None:
    """A flow and a benchmark whose planners hand nothing over, one that is interrupted, and refusals."""
    made = {}
    for path in ("/flows", "/benchmarks"):
        task = f"{token}{path}"
        await rehearsed(episodes, task)
        body = BenchmarkRequest(task=task, metadata={"of": path})
        answer = await asking.ask("POST", path, json=sent(body))
        assert 202 == answer.status, f"a submission to {path}: {answer}"
        made[path] = f"{path}/{answer.json()['flow_id']}"
    for path in made.values():

        async def failed(path: str = path) -> bool:
            answer = await asking.ask("GET", path)
            return answer.json()["status"] == "failed"

        await eventually(failed, seconds=EPISODE_S, expected=f"{path} to fail")
    identity = made["/benchmarks"].rpartition("/")[2]
    expect_refused(await asking.ask("POST", f"/flows/{identity}/interrupt"), 409)
    for unfit, status in ((identity, 409), (UNKNOWN, 404)):
        request = FlowRequest(task=f"goes on {token}", benchmark_id=unfit)
        expect_refused(await asking.ask("POST", "/flows", json=sent(request)), status)
    async with flow_at_work(episodes) as flow, flow.turn("planner", 1):
        answer = await asking.ask("POST", f"/flows/{flow.id}/interrupt")
        assert 202 == answer.status, f"an interruption of a flow: {answer}"
        await flow.until("interrupted")
    for path in (f"/flows/{UNKNOWN}", f"/benchmarks/{UNKNOWN}", f"/benchmarks/{flow.id}"):
        expect_refused(await asking.ask("GET", path), 404)
    expect_refused(await asking.ask("POST", f"/flows/{UNKNOWN}/interrupt"), 404)
    for path in ("/flows", "/decisions"):
        for query in ({}, {"limit": 1}, {"offset": 10_000}):
            answer = await asking.ask("GET", path, params=query)
            assert 200 == answer.status, f"{path} with {query}: {answer}"
        expect_refused(await asking.ask("GET", path, params={"limit": 0}), 422)


async def run_of_a_backup(asking: Conforming) -> None:
    """A backup to its end, and beside others on record."""
    answer = await asking.ask("POST", "/ops/backup")
    assert 202 == answer.status, f"a backup is begun: {answer}"
    path = f"/ops/backups/{answer.json()['backup_id']}"

    async def ended() -> bool:
        return (await asking.ask("GET", path)).json()["status"] == "completed"

    await eventually(ended, seconds=EPISODE_S, expected=f"{path} to be completed")
    answer = await asking.ask("GET", "/ops/backups", params={"limit": 1})
    assert 200 == answer.status, f"backups on record: {answer}"
    expect_refused(await asking.ask("GET", "/ops/backups", params={"limit": 0}), 422)
    expect_refused(await asking.ask("GET", f"/ops/backups/{UNKNOWN}"), 404)


async def hands_over(asking: Conforming, episodes: Episodes) -> None:
    """A planner is refused, then accepted; what was handed over is there, and nothing else."""
    async with planner_at_work(episodes, number=281) as planner:
        await planner.leave(planner.sound().files() | {PLAN: None})
        if asking.document.service == "worker":
            own, asking.client = asking.client, planner.session.client
            submission = sent(SubmitRequest())
            expect_refused(await asking.ask("POST", "/benchmark/submit", json=submission), 422)
            await planner.leave({PLAN: planner.sound().plan})
            answer = await asking.ask("POST", "/benchmark/submit", json=submission)
            assert 200 == answer.status, f"a sound hand-over: {answer}"
            asking.client = own
            return
        accepted = expect_accepted(await planner.judged(planner.sound()), "a sound hand-over")
        kept = f"/handovers/{(await handover(asking.client, accepted.handover_id)).handover_id}"
    for path in (kept, f"{kept}/files/{PLAN}", f"/episodes/{planner.episode_id}"):
        answer = await asking.ask("GET", path)
        assert 200 == answer.status, f"{path} of what was handed over: {answer}"
    for path in (f"{kept}/files/nothing.md", f"{kept}/files/%00", f"/handovers/{UNKNOWN}"):
        expect_refused(await asking.ask("GET", path), 404)
    body = EpisodeRequest(task="goes on", handover_id=UNKNOWN)
    expect_refused(await asking.ask("POST", "/episodes", json=sent(body)), 404)
    batch = sent(BatchRequest(episodes=[body]))
    expect_refused(await asking.ask("POST", "/episodes/batch", json=batch), 404)


async def interrupted(asking: Conforming, episodes: Episodes, token: str) -> None:
    """An episode at work is interrupted, and every answer on the way is documented."""
    await rehearsed(episodes, token, episodes.waiting())
    identity = await submitted(asking, token)

    async def runs() -> bool:
        answer = await asking.ask("GET", f"/episodes/{identity}")
        return answer.json()["status"] == "running"

    await eventually(runs, seconds=SOON_S, expected=f"episode {identity} to run")
    answer = await asking.ask("POST", f"/episodes/{identity}/interrupt")
    assert 202 == answer.status, f"an interruption: {answer}"
    status = await ended(asking, identity)
    assert "interrupted" == status, f"expected an interrupted episode, found it {status}"


async def batch_interrupted(asking: Conforming, episodes: Episodes, token: str) -> None:
    """The same of a batch: one of it at work, one that has not begun."""
    await rehearsed(episodes, token, episodes.waiting())
    body = {"episodes": [{"task": token}, {"task": token, "seed": 4}], "concurrency": 1}
    answer = await asking.ask("POST", "/episodes/batch", json=body)
    assert 202 == answer.status, f"a batch: {answer}"
    made = answer.json()
    await episodes.begun(made["episodes"][0]["session_id"])
    answer = await asking.ask("POST", f"/batches/{made['batch_id']}/interrupt")
    assert 202 == answer.status, f"an interruption of a batch: {answer}"
    for each in made["episodes"]:
        status = await ended(asking, each["episode_id"])
        assert "interrupted" == status, f"expected an interrupted episode, found it {status}"


async def rehearsed(episodes: Episodes, task: str, *turns: Turn) -> None:
    """What the model does for a task, which is found by itself."""
    await episodes.rehearse(task, *turns, task=task)


async def submitted(asking: Conforming, task: str) -> str:
    """Submit an episode; its id."""
    body = EpisodeRequest(task=task, role="coder", seed=3, metadata={"from": "INT-028"})
    answer = await asking.ask("POST", "/episodes", json=sent(body))

    assert 202 == answer.status, f"a submission: {answer}"
    identity: str = answer.json()["episode_id"]
    return identity


async def ended(asking: Conforming, identity: str) -> str:
    """Poll an episode, checking each answer, until it has ended; its last status."""

    async def final() -> str | None:
        answer = await asking.ask("GET", f"/episodes/{identity}")
        status = answer.json()["status"] if answer.status == 200 else ""
        return status if status in FINAL else None

    ended: str = await eventually(final, seconds=EPISODE_S, expected=f"episode {identity} to end")
    return ended


async def run_of_a_session(asking: Conforming, token: str) -> None:
    """Every operation of the worker, as it succeeds and as it refuses."""
    expected: list[tuple[int | tuple[int, ...], str, dict[str, Any]]] = [
        (200, "/fs/write", {"path": "src/a.py", "content": f"x = 1  # {token}\n"}),
        (200, "/fs/write", {"path": "bad.py", "content": "import os, sys\nx = undefined\n"}),
        (200, "/fs/write", {"path": "scene.xml", "content": SCENE}),
        (200, "/fs/write", {"path": "broken.xml", "content": "<mujoco><nonsense/></mujoco>"}),
        (
            200,
            "/fs/write",
            {"path": "plan.md", "content": f"A plan of some length, {token}.\n" * 3},
        ),
        (200, "/fs/read", {"path": "src/a.py"}),
        (200, "/runtime/execute", {"command": r"printf '\211PNG\r\n\032\n' > mark.png"}),
        (200, "/fs/view", {"path": "mark.png"}),
        (409, "/fs/view", {"path": "src/a.py"}),
        (200, "/fs/ls", {"path": ".", "recursive": True}),
        (200, "/fs/edit", {"path": "src/a.py", "old": "x = 1", "new": "x = 2"}),
        (409, "/fs/edit", {"path": "src/a.py", "old": "not there", "new": ""}),
        (200, "/fs/grep", {"path": ".", "pattern": token}),
        (200, "/git/init", {}),
        (200, "/git/commit", {"message": token}),
        (200, "/runtime/execute", {"command": "echo out; echo err >&2; exit 3"}),
        (200, "/runtime/execute", {"command": "while :; do :; done", "timeout_s": 0.3}),
        (200, "/lint", {"path": "src/a.py"}),
        (200, "/lint", {"path": "bad.py"}),
        (200, "/benchmark/validate", {"model": "scene.xml"}),
        (200, "/benchmark/validate", {"model": "broken.xml"}),
        (200, "/benchmark/simulate", {"model": "scene.xml", "duration_s": 0.2, "seed": 5}),
        (409, "/benchmark/simulate", {"model": "broken.xml", "duration_s": 0.2}),
        (200, "/fs/delete", {"path": "bad.py"}),
    ]
    part = "from build123d import Box\npart = Box(10, 20, 5)\n"
    expected += [
        (200, "/fs/write", {"path": "part.py", "content": part}),
        (200, "/benchmark/analyze", {"model": "part.py"}),
        (200, "/benchmark/preview", {"model": "part.py"}),
    ]
    missing = {"path": "nowhere.txt"}
    changes = {"/fs/edit": {"old": "a", "new": "b"}, "/fs/grep": {"pattern": "a"}}
    looking = ("/fs/read", "/fs/view", "/fs/ls", "/fs/grep", "/lint")
    for operation in (*looking, "/fs/edit", "/fs/delete"):
        expected.append((404, operation, missing | changes.get(operation, {})))
        outside = {"path": "../../etc/passwd"} | changes.get(operation, {})
        expected.append((OUTSIDE, operation, outside))
    expected += [
        (404, f"/benchmark/{name}", {"model": "nowhere.xml"})
        for name in ("validate", "analyze", "simulate", "preview")
    ]
    expected.append((OUTSIDE, "/fs/write", {"path": "../x", "content": "x"}))
    for status, operation, body in expected:
        takes, _ = OPERATIONS[operation]
        message = sent(takes(**body))
        answer = await asking.ask("POST", operation, json=message, seconds=patience(WORK_S))
        statuses = status if isinstance(status, tuple) else (status,)
        assert answer.status in statuses, f"{operation} {body}: expected {status}, found {answer}"
    answer = await asking.ask("GET", "/assets/plan.md")
    assert 200 == answer.status, f"an asset: {answer}"
    expect_refused(await asking.ask("GET", "/assets/nowhere.md"), 404)
    expect_refused(await asking.ask("POST", "/jobs/unknown/cancel"), 404)
    await cancelled(asking)
    answer = await asking.ask(
        "POST", "/fs/ls", json=sent(ListRequest()), headers={"x-session-id": ".."}
    )
    expect_refused(answer, 422)


async def cancelled(asking: Conforming) -> None:
    """A job that runs is cancelled, and both answers are documented."""
    answers = []

    async def run() -> None:
        command = f"touch begun; sleep {COMMAND_S:g}"
        body = sent(ExecuteRequest(command=command, job_id="to-be-cancelled", timeout_s=COMMAND_S))
        answers.append(await asking.ask("POST", "/runtime/execute", json=body, seconds=COMMAND_S))

    async def begun() -> bool:
        answer = await asking.ask("POST", "/fs/ls", json=sent(ListRequest()))
        return '"begun"' in answer.text

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await eventually(begun, seconds=SOON_S, expected="the job to run")
        answer = await asking.ask("POST", "/jobs/to-be-cancelled/cancel")
        assert 200 == answer.status, f"a cancellation: {answer}"
    assert [200] == [each.status for each in answers], f"a cancelled job: {answers}"
