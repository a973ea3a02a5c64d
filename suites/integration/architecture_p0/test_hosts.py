"""INT-029: a service of the stack refuses requests for any host but its own."""

import random

import pytest
from workbench_contract.episodes import EpisodeRequest
from workbench_contract.execution import ExecuteRequest
from workbench_contract.files import WriteRequest

from harness_core.doubles.http import Addressed, HttpClient, directed, misdirected
from harness_core.system.compose import Stack
from suites.integration.document import live_document
from suites.integration.messages import sent
from suites.integration.refusals import expect_refused
from suites.integration.sessions import new_session

pytestmark = [pytest.mark.covers("INT-029"), pytest.mark.integration_p0]

SERVICES = ("controller", "worker", "controller-worker")

#: Of the space, for each operation; all of the space goes to the document, which needs no key.
FEW = 5

#: Asked for besides what the document names.
ELSEWHERE = ("/", "/health", "/openapi.json", "/docs", "/nothing/here", "//health")


def space_of(stack: Stack, service: str) -> tuple[Addressed, ...]:
    """Every request that a service must refuse; in a container it cannot know its published port."""
    port = int(stack.address(service).rpartition(":")[2])
    anywhere = stack.access.driver == "docker"
    return misdirected(port, seed=random.getrandbits(32), any_port=anywhere)


async def let_in(
    client: HttpClient, each: Addressed, method: str, path: str, *, json: object = None
) -> str:
    """What is wrong with the answer to a request for another host; empty when it was refused."""
    answer = await client.send(each, method, path, json=json)
    refused = answer.status in {400, 403, 421}
    return "" if refused else f"{method} {path} for {each.what}: {answer.status}"


@pytest.mark.parametrize("service", SERVICES)
async def test_every_endpoint_refuses_a_host_that_is_not_its_own(service, stack, client_of):
    """With the right key, each operation, health and what is not there refuse every other host."""
    client = client_of(stack, service)
    space = space_of(stack, service)
    document = await live_document(client)
    asked = [("GET", "/openapi.json", each) for each in space]
    ways = [(operation.method, operation.target()) for operation in document.operations]
    ways += [(method, path) for path in ELSEWHERE for method in ("GET", "HEAD", "POST", "OPTIONS")]
    for way in ways:
        asked += [(*way, each) for each in random.sample(space, FEW)]
    answers = [await let_in(client, each, method, path) for method, path, each in asked]
    found = [problem for problem in answers if problem]
    listed = "\n".join(found[:20])

    assert not found, f"{service} let in {len(found)} requests for another host:\n{listed}"


@pytest.mark.parametrize("service", SERVICES)
async def test_its_own_host_is_answered(service, stack, client_of):
    """By both names of this machine, whatever other headers claim, health is answered."""
    client = client_of(stack, service)
    for each in directed(int(stack.address(service).rpartition(":")[2])):
        answer = await client.send(each, "GET", "/health")

        assert answer.status == 200, f"{service} for {each.what}: {answer}"


async def test_a_submission_for_another_host_is_not_made(stack, controller, token):
    """The controller refuses it and makes no episode, though the key is right."""
    for number, each in enumerate(random.sample(space_of(stack, "controller"), 20)):
        body = sent(EpisodeRequest(task=f"do nothing {token}-{number}"))
        answer = await controller.send(each, "POST", "/episodes", json=body)

        assert answer.status in {400, 403, 421}, f"a submission for {each.what}: {answer}"
    made = await controller.get("/episodes", params={"limit": 100})
    assert token not in made.text, f"submissions for another host were made: {made}"
    answer = await controller.post(
        "/episodes", sent(EpisodeRequest(task=f"do nothing {token}-own"))
    )
    assert answer.status == 202, f"its own host submits no episode: {answer}"


async def test_work_for_another_host_is_not_done(stack, worker, token):
    """The worker refuses it: neither file nor event is there, though key and session are right."""
    session = new_session(worker)
    for number, each in enumerate(random.sample(space_of(stack, "worker"), 20)):
        name = f"{token}-{number}.txt"
        for path, body in (
            ("/fs/write", WriteRequest(path=name, content="for another host")),
            ("/runtime/execute", ExecuteRequest(command=f"echo run > run-{name}")),
        ):
            answer = await session.client.send(each, "POST", path, json=sent(body))

            assert answer.status in {400, 403, 421}, f"{path} for {each.what}: {answer}"
    left = {path for path in await session.files() if token in path}
    recorded = [event for event in await session.events() if token in str(event)]
    assert not left, f"work for another host was done: it left {sorted(left)}"
    assert not recorded, f"work for another host was done: {recorded}"
    await session.write(f"{token}.txt", "for its own host")
    read = await session.read(f"{token}.txt")
    assert read.json()["content"] == "for its own host", f"what its own host wrote: {read}"


async def test_a_refusal_says_why(stack, controller):
    """A sentence, as every refusal of the stack, with HTTP's own word for it."""
    port = int(stack.address("controller").rpartition(":")[2])
    foreign = Addressed(what="a foreign name", hosts=(f"evil.example:{port}",))
    answer = await controller.send(foreign, "GET", "/episodes")

    why = expect_refused(answer, 421, says="host")
    assert "evil" not in why, f"the refusal repeats what a stranger sent: {answer}"
