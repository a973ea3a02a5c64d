"""INT-028: every answer of a real run is what the live OpenAPI document says it is."""

import json

import openapi_spec_validator
import pytest
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError
from workbench_contract.episodes import EpisodeRequest

from suites.integration.comparing import expect_same
from suites.integration.conforming import Conforming
from suites.integration.document import Document, live_document
from suites.integration.documented import (
    hands_over,
    run_of_a_backup,
    run_of_a_session,
    run_of_episodes,
    run_of_flows,
)
from suites.integration.malformed import malformed_requests
from suites.integration.messages import sent
from suites.integration.refusals import expect_refused
from suites.integration.sessions import new_session
from suites.integration.shares import shares

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


@pytest.mark.covers("INT-028")
@pytest.mark.integration_p0
@pytest.mark.parametrize("share", shares(3))
@pytest.mark.parametrize("service", ["controller", "worker"])
async def test_int_028_answers_are_what_the_document_says(
    service, share, stack, client_of, episodes, token
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
    for place, operation in enumerate(document.operations):
        turn = slice((share.start + place) % share.step, None, share.step)
        await malformed_requests(asking, operation, turn)

    for name, statuses in CRITICAL[service].items():
        met = {status for operation, status in asking.seen if operation == name}
        unmet = (statuses & {200, 202, 401, 404, 422}) - met - UNPROVOKED.get(name, set())
        assert not unmet, f"{name} was never answered with {unmet}, so nothing is proven of it"


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
