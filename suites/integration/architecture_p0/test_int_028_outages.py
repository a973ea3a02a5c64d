"""INT-028: what a controller answers without its database or Temporal is what its document says."""

from functools import partial

import pytest
from workbench_contract.episodes import EpisodeRequest

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient
from suites.integration.comparing import expect_unchanged
from suites.integration.conforming import Conforming
from suites.integration.document import OPEN_PATHS, live_document
from suites.integration.documented import ENTRY, SIGNED, WORK_S, ended
from suites.integration.episodes import FINAL
from suites.integration.messages import sent
from suites.integration.patience import SOON_S, eventually
from suites.integration.refusals import expect_refused


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
