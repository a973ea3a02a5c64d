"""INT-028: every answer of a real run is what the live OpenAPI document says it is."""

import itertools
import json
from functools import partial
from typing import Any

import openapi_spec_validator
import pytest
import trio
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError
from workbench_contract.batches import BatchRequest
from workbench_contract.episodes import EpisodeRequest
from workbench_contract.execution import ExecuteRequest
from workbench_contract.files import ListRequest
from workbench_contract.flows import BenchmarkRequest, FlowRequest
from workbench_contract.handover import SubmitRequest

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import Turn, fail, say, use
from suites.integration.bundles import PLAN
from suites.integration.comparing import expect_same, expect_unchanged
from suites.integration.conforming import Conforming
from suites.integration.document import OPEN_PATHS, Document, Operation, live_document
from suites.integration.episodes import FINAL, Episodes
from suites.integration.flows import flow_at_work
from suites.integration.messages import OPERATIONS, sent
from suites.integration.patience import COMMAND_S, EPISODE_S, SOON_S, eventually
from suites.integration.planners import expect_accepted, handover, planner_at_work
from suites.integration.refusals import OUTSIDE, expect_refused
from suites.integration.sessions import new_session

#: What the contract names, and the statuses each must be documented with.
CRITICAL = {
    "controller": {
        "GET /health": {200, 503},
        "POST /episodes": {202, 401, 422},
        "POST /episodes/batch": {202, 401, 422},
        "GET /episodes": {200, 401},
        "GET /episodes/{episode_id}": {200, 401, 404},
        "POST /episodes/{episode_id}/interrupt": {202, 401, 404, 409},
        "GET /episodes/{episode_id}/events": {200, 401, 404},
        "GET /episodes/{episode_id}/assets": {200, 401, 404},
        "GET /episodes/{episode_id}/assets/{path}": {200, 401, 404},
        "GET /cots/search": {200, 401, 422},
        "GET /batches/{batch_id}": {200, 401, 404},
        "POST /batches/{batch_id}/interrupt": {202, 401, 404, 409},
        "POST /benchmarks": {202, 401, 422},
        "GET /benchmarks/{flow_id}": {200, 401, 404},
        "POST /flows": {202, 401, 404, 409, 422},
        "GET /flows": {200, 401},
        "GET /flows/{flow_id}": {200, 401, 404},
        "POST /flows/{flow_id}/interrupt": {202, 401, 404, 409},
        "GET /skills": {200, 401},
        "GET /decisions": {200, 401, 422},
        "POST /ops/backup": {202, 401, 409},
        "GET /ops/backups/{backup_id}": {200, 401, 404},
        "GET /handovers/{handover_id}": {200, 401, 404},
        "GET /handovers/{handover_id}/files/{path}": {200, 401, 404},
    },
    "worker": {
        "GET /health": {200, 503},
        **{
            f"POST /fs/{name}": {200, 401, 404, 422}
            for name in ("ls", "read", "view", "write", "edit", "grep", "delete")
        },
        "POST /git/init": {200, 401, 422},
        "POST /git/commit": {200, 401, 422},
        "POST /runtime/execute": {200, 401, 422},
        "POST /lint": {200, 401, 404, 422},
        "POST /benchmark/validate": {200, 401, 404, 422},
        "POST /benchmark/analyze": {200, 401, 404, 422},
        "POST /benchmark/simulate": {200, 401, 404, 422},
        "POST /benchmark/preview": {200, 401, 404, 422},
        "POST /benchmark/submit": {200, 401, 422},
        "GET /assets/{path}": {200, 401, 404},
        "POST /jobs/{job_id}/cancel": {200, 401, 404},
    },
}

#: Bodies that no operation takes: no JSON, or no object.
NO_OBJECTS = (
    *(b"", b"{", b"[]", b'"text"', b"null", b"5", b"true", b"\xff\xfe", b"[" * 500, b"{}{}"),
    *(b"[" * 200_000, b"'{}'", b"{'a': 1}", b"NaN", b'{"a":1,}', b"\0"),
    *(b'{"\\ud800": 1}', b'{"x": 1' + b"0" * 6000 + b"}", b'{"x": "\xe4"}'),
)

#: Values of JSON, or nearly, that no field of ours can have.
NO_VALUES = (b"NaN", b"-Infinity", b'"\\ud800"', b'"\\udfff\\ud800x"', b"{}", b"[[]]")

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


@pytest.mark.covers("INT-028")
@pytest.mark.integration_p0
@pytest.mark.parametrize("service", ["controller", "worker"])
async def test_int_028_answers_are_what_the_document_says(
    service, stack, client_of, episodes, token
):
    """Successes, refusals and malformed requests get documented statuses, media types and bodies.

    The model provider is a stand-in, the gateway with what was rehearsed: what an agent does here
    must not depend on a model's mood.
    """
    client = client_of(stack, service)
    document = await live_document(client)
    try:
        openapi_spec_validator.validate(document.content)
    except OpenAPIValidationError as error:
        raise AssertionError(
            f"expected a document of OpenAPI, found a mistake: {error.message}"
        ) from error
    is_critical(document)
    asking = Conforming(client, document)
    answer = await asking.ask("GET", "/health", headers={"x-api-key": None})
    assert answer.status == 200, f"health of a sound stack: {answer}"

    await hands_over(asking, episodes)
    if service == "controller":
        await run_of_episodes(asking, episodes, token)
        await run_of_flows(asking, episodes, token)
        await run_of_a_backup(asking)
    else:
        asking.client = new_session(client).client
        await run_of_a_session(asking, token)
    for operation in document.operations:
        await malformed_requests(asking, operation)

    for name, statuses in CRITICAL[service].items():
        met = {status for operation, status in asking.seen if operation == name}
        unmet = (statuses & {200, 202, 401, 404, 422}) - met - UNPROVOKED.get(name, set())
        assert not unmet, f"{name} was never answered with {unmet}, so nothing is proven of it"


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

#: What a sound request cannot be answered with here.
UNPROVOKED: dict[str, set[int]] = {"POST /fs/write": {404}}


def is_critical(document: Document) -> None:
    """Every endpoint of the contract is documented, with its statuses and its key."""
    known = {each.name: each for each in document.operations}
    for name, statuses in CRITICAL[document.service].items():
        assert name in known, f"the document has no {name}; it has {', '.join(known)}"
        missing = {str(status) for status in statuses} - set(known[name].responses)
        assert not missing, f"{name} does not document {missing}"
    schemes = document.content.get("components", {}).get("securitySchemes", {}).values()
    keys = [each for each in schemes if each.get("type") == "apiKey" and each.get("in") == "header"]
    assert ["x-api-key"] == [each["name"].lower() for each in keys], f"security schemes: {schemes}"


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


async def malformed_requests(asking: Conforming, operation: Operation) -> None:
    """What no operation can take is refused as documented; nothing of it is a failure inside."""
    if operation.path == "/health":
        return
    answer = await asking.ask(operation.method, operation.target(), headers={"x-api-key": "wrong"})
    expect_refused(answer, 401)
    if "{" in operation.path and "404" in operation.responses:
        answer = await asking.ask(operation.method, operation.target())
        expect_refused(answer, 404, 422)
    content = asking.document.body_of(operation)
    if content is None:
        return
    for body in NO_OBJECTS:
        answer = await asking.ask(
            operation.method,
            operation.target(),
            content=body,
            headers={"content-type": "application/json"},
        )
        assert answer.status in {400, 422}, f"{operation.name} with {body[:20]!r}: {answer}"
    required = content.get("required", [])
    for wrong in ({"undeclared": 1}, *wrongly_typed(content)):
        answer = await asking.ask(operation.method, operation.target(), json=wrong)
        assert answer.status in {400, 422}, f"{operation.name} with {wrong}: {answer}"
        names = [*(name for name in required if name not in wrong), *wrong]
        unnamed = [name for name in names if name not in answer.text]
        assert not unnamed, (
            f"{operation.name} refuses {wrong}, and does not name {unnamed}: {answer}"
        )
    properties = content.get("properties", {})
    for name, value in itertools.product(properties, NO_VALUES):
        if value != b"{}" or not takes_any(properties[name]):
            body = b'{"%b": %b}' % (name.encode(), value)
            answer = await asking.ask(
                operation.method,
                operation.target(),
                content=body,
                headers={"content-type": "application/json"},
            )
            assert answer.status in {400, 422}, f"{operation.name} with {body!r}: {answer}"
    await beyond_limits(asking, operation, content)


#: Bodies that the operations take; the rest of a request whose one field is beyond its limit.
SOUND: dict[str, dict[str, Any]] = {
    "/episodes": {"task": "of limits"},
    "/fs/read": {"path": "nowhere"},
    "/fs/write": {"path": "limits.txt", "content": "x"},
    "/fs/edit": {"path": "nowhere", "old": "a", "new": "b"},
    "/fs/grep": {"pattern": "x"},
    "/fs/delete": {"path": "nowhere"},
    "/git/commit": {"message": "x"},
    "/runtime/execute": {"command": "true"},
    "/lint": {"path": "nowhere"},
    "/benchmark/validate": {"model": "nowhere.xml"},
    "/benchmark/analyze": {"model": "nowhere.py"},
    "/benchmark/simulate": {"model": "nowhere.xml"},
    "/benchmark/preview": {"model": "nowhere.py"},
    "/benchmark/submit": {},
}


async def beyond_limits(asking: Conforming, operation: Operation, content: dict[str, Any]) -> None:
    """What the document says is the limit of a field is its limit: one more is refused, for it."""
    sound = SOUND.get(operation.path)
    if sound is None:
        return
    for name, schema in content.get("properties", {}).items():
        for within, value in limits_of(schema):
            # A submission that is taken would be an episode that runs; it is taken elsewhere.
            if within and operation.path == "/episodes":
                continue
            answer = await asking.ask(
                operation.method,
                operation.target(),
                json=sound | {name: value},
                seconds=patience(WORK_S),
            )
            shown = f"{operation.name} with {name} of {str(value)[:40]!r} ({len(str(value))})"
            if within:
                assert answer.status not in {400, 422}, f"{shown} is at its limit: {answer}"
            else:
                assert answer.status in {400, 422}, f"{shown} is beyond its limit: {answer}"
                assert name in answer.text, f"{shown} is refused for something else: {answer}"


def limits_of(schema: dict[str, Any]) -> list[tuple[bool, object]]:
    """Values at the documented limits of a field, and one beyond: whether it is within, and which."""
    kinds = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    found: list[tuple[bool, object]] = []
    for kind in kinds:
        whole = kind.get("type") == "integer"
        step: float = 1 if whole else 0.001
        if kind.get("type") == "string" and "pattern" not in kind:
            least, most = kind.get("minLength"), kind.get("maxLength")
            found += [(True, "x" * most), (False, "x" * (most + 1))] if most else []
            found += [(False, "x" * (least - 1))] if least else []
        found += [(False, kind["minimum"] - step)] if "minimum" in kind else []
        found += [(True, kind["minimum"])] if "minimum" in kind else []
        found += [(False, kind["maximum"] + step)] if "maximum" in kind else []
        found += [(False, kind["exclusiveMinimum"])] if "exclusiveMinimum" in kind else []
        found += [(False, kind["exclusiveMaximum"])] if "exclusiveMaximum" in kind else []
        if whole and "exclusiveMaximum" in kind:
            found.append((True, kind["exclusiveMaximum"] - 1))
    return found


@pytest.mark.covers("INT-028")
@pytest.mark.integration_p0
async def test_int_028_what_is_accepted_is_kept_as_it_is(controller, token):
    """Whatever JSON holds is there afterwards, whole; what cannot be kept is refused: 422.

    A batch with one submission that is refused submits none. There is no model here: nobody says what
    these agents do, and how they end is not looked at.
    """
    kept = {
        "escaped": "\\u0000 and \\\\u0000 and \\",
        "ünï 日 😀\u2028": ["\u007f", "", " ", "\r\n\t", 0, -1, 2**53, 1.5e-7, True, False, None],
        "deep": {"a": [{"b": [[[]], {}]}]},
        "long": "y" * 70_001,
    }
    body = EpisodeRequest(task=f"ä😀 {token}", metadata=kept)
    answer = await controller.post("/episodes", sent(body))
    assert 202 == answer.status, f"expected an episode, found {answer}"
    identity = answer.json()["episode_id"]
    found = (await controller.get(f"/episodes/{identity}")).json()
    expect_same(kept, found["metadata"], what="metadata, as they were submitted")
    assert f"ä😀 {token}" == found["task"], f"expected the task as submitted, found {found['task']}"
    sound = {"task": f"sound {token}-refused"}
    for wrong in (
        b'{"task": "nul \\u0000 %b-refused"}',
        b'{"task": "%b-refused", "metadata": {"x": NaN}}',
        b'{"task": "%b-refused", "metadata": {"x": 1e999}}',
        b'{"task": "%b-refused", "metadata": {"x": "\\ud800"}}',
        b'{"task": "%b-refused", "metadata": {"\\ud800": 1}}',
        b'{"task": "%b-refused", "metadata": {"x": "\\u0000"}}',
        b'{"task": "%b-refused", "variant": "a\\u0000b"}',
        b'{"task": "%b-refused", "role": "boss"}',
        b'{"task": "%b-refused", "seed": 2147483648}',
    ):
        single = wrong.replace(b"%b", token.encode())
        several = b'{"episodes": [%b, %b]}' % (json.dumps(sound).encode(), single)
        for path, body in (("/episodes", single), ("/episodes/batch", several)):
            refused = await controller.request(
                "POST", path, content=body, headers={"content-type": "application/json"}
            )
            expect_refused(refused, 400, 422)
    for wrong_batch in ([], [sound] * 51, [sound, None], sound):
        refused = await controller.post("/episodes/batch", {"episodes": wrong_batch})
        expect_refused(refused, 400, 422)
    listed = await controller.get("/episodes", params={"limit": 500})
    assert f"{token}-refused" not in listed.text, (
        f"submissions that were refused are there: {listed}"
    )


@pytest.mark.covers("INT-028")
@pytest.mark.integration_p0
async def test_int_028_without_a_database_each_answer_is_documented(
    breakable_stack, client_of, token
):
    """With the database away every operation of the controller says so as documented: 503, and why.

    What was refused is not there when it is back, and what was there is as it was.
    """
    client = client_of(breakable_stack, "controller")
    document = await live_document(client)
    asking = Conforming(client, document)
    made = await client.post("/episodes", sent(EpisodeRequest(task=f"before {token}")))
    assert 202 == made.status, f"expected an episode, found {made}"
    identity = made.json()["episode_id"]
    ended_as = await ended(asking, identity)
    before = await client.get(f"/episodes/{identity}")
    async with breakable_stack.outage("postgres", "kill"):
        for operation in document.operations:
            if operation.path in {*OPEN_PATHS, SIGNED}:
                continue
            body = {"task": f"never {token}"}
            bodies = {
                "/episodes": body,
                "/episodes/batch": {"episodes": [body, body]},
                "/benchmarks": body,
                "/flows": body,
                "/episodes/{episode_id}/jobs": {"operation": "analyze", "arguments": {}},
                "/episodes/{episode_id}/journal": ENTRY,
                "/episodes/{episode_id}/traces/{trace_id}/feedback": {"score": 0.5},
            }
            json_body = bodies.get(operation.path) if operation.method == "POST" else None
            target = operation.target(episode_id=identity)
            answer = await asking.ask(
                operation.method,
                target,
                json=json_body,
                params=document.query_of(operation),
                seconds=patience(WORK_S),
            )
            assert 503 == answer.status, f"{operation.name} without a database: {answer}"
            expect_refused(answer, 503)
        unknown = await asking.ask("GET", "/health", headers={"x-api-key": None})
        assert 503 == unknown.status, f"health without a database: {unknown}"
    after = await client.get(f"/episodes/{identity}")
    expect_unchanged(before.json(), after.json(), what=f"an episode, {ended_as}, after the outage")
    for path in ("/episodes", "/flows"):
        listed = await client.get(path, params={"limit": 500})
        assert f"never {token}" not in listed.text, f"what was refused is there: {listed}"


@pytest.mark.covers("INT-028")
@pytest.mark.integration_p0
async def test_int_028_without_temporal_each_answer_is_documented(
    breakable_stack, client_of, token
):
    """With Temporal away whatever asks for a workflow is answered as documented, taken or refused."""
    client = client_of(breakable_stack, "controller")
    document = await live_document(client)
    asking = Conforming(client, document)
    body = {"task": f"never {token}"}
    bodies = {
        "/episodes": body,
        "/episodes/batch": {"episodes": [body, body]},
        "/benchmarks": body,
        "/flows": body,
    }
    async with breakable_stack.outage("temporal", "kill"):
        for path, sent in bodies.items():
            answer = await asking.ask("POST", path, json=sent, seconds=patience(WORK_S))
            assert answer.status in {202, 503}, f"{path} without Temporal: {answer}"
        health = await asking.ask("GET", "/health", headers={"x-api-key": None})
        assert 503 == health.status, f"health without Temporal: {health}"
    for path in ("/episodes", "/flows"):
        await eventually(
            partial(_all_ended, client, path, token),
            seconds=SOON_S,
            expected=f"what {path} took without Temporal to end",
        )


async def _all_ended(client: HttpClient, path: str, token: str) -> bool:
    """Whether no row of the token is under way."""
    rows = (await client.get(path, params={"limit": 500})).json()[path.removeprefix("/")]
    return all(row["status"] in FINAL for row in rows if token in row.get("task", ""))


def wrongly_typed(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """For each property a value that is none of its types; what takes any object has none."""
    properties = schema.get("properties", {})
    return [{name: {"wrong": [1]}} for name, each in properties.items() if not takes_any(each)]


def takes_any(schema: dict[str, Any]) -> bool:
    """Whether a property takes an object with any fields."""
    kinds = schema.get("anyOf", [schema])
    return any(each.get("type") == "object" and not each.get("properties") for each in kinds)
