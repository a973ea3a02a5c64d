"""INT-029: only the right key opens a protected endpoint, and before anything is done."""

import random

import pytest
from workbench_contract.episodes import EpisodeRequest
from workbench_contract.execution import ExecuteRequest
from workbench_contract.files import WriteRequest

from harness_core.doubles.http import HttpClient
from suites.integration.document import OPEN_PATHS, Operation, live_document
from suites.integration.messages import sent
from suites.integration.refusals import expect_refused
from suites.integration.sessions import new_session
from suites.integration.shares import shares

#: Of what is open, or of documentation that frameworks add, and yet neither.
LOOKALIKES = (
    *(
        "/health/",
        "//health",
        "/HEALTH",
        "/Health",
        "/health/x",
        "/healthz",
        "/health%2f",
        "/healt",
    ),
    *("/health%00", "/x/../health", "/./health", "/%2e/health", "/openapi.json/", "/openapi.yaml"),
    *("/openapi", "/OPENAPI.JSON", "/openapi.json/../episodes", "/docs", "/redoc"),
    *("/docs/oauth2-redirect", "/metrics", "/", "/favicon.ico", "/no/such/path"),
)

METHODS = ("HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")

#: Those that HTTP itself has; any other may be refused as no method.
KNOWN = frozenset({"GET", *METHODS} - {"BREW"})
UNKNOWN_METHOD = frozenset({400, 405, 501})

#: Of the methods, for each path, besides GET.
FEW = 2


def wrong_keys(key: str) -> dict[str, dict[str, str]]:
    """Ways not to present the key: what it is → the headers."""
    return {
        "no key": {},
        "an empty key": {"x-api-key": ""},
        "another key": {"x-api-key": "another-key-of-a-good-length"},
        "the beginning of the key": {"x-api-key": key[:-1]},
        "the first letter": {"x-api-key": key[:1]},
        "more than the key": {"x-api-key": f"{key}x"},
        "the end of the key": {"x-api-key": key[1:]},
        "the key in capitals": {"x-api-key": key.upper()},
        "a scheme before it": {"x-api-key": f"Bearer {key}"},
        "the key as a token": {"authorization": f"Bearer {key}"},
        "two keys in one": {"x-api-key": f"{key}, {key}"},
        "the key and more after a space": {"x-api-key": f"{key} {key}"},
        "the key in quotes": {"x-api-key": f'"{key}"'},
        "a character of the key changed": {
            "x-api-key": f"{key[:-2]}{chr(ord(key[-2]) ^ 1)}{key[-1]}"
        },
        "a key of letters beyond ASCII": {"x-api-key": f"{key[:-1]}\u00fc"},
        "the key under another name": {"x-api-keys": key, "api-key": key, "x-apikey": key},
        "the key as a password": {"authorization": f"Basic {key}"},
        "the key as a cookie": {"cookie": f"x-api-key={key}; api_key={key}"},
    }


@pytest.mark.covers("INT-029")
@pytest.mark.integration_p0
@pytest.mark.parametrize("service", ["controller", "worker"])
async def test_int_029_no_path_is_open_by_its_look(service, stack, client_of, api_key):
    """Whatever a path looks like, and whatever the method: without the key it is 401, open ones aside."""
    await _is_closed(client_of(stack, service), api_key)


@pytest.mark.covers("INT-029")
@pytest.mark.integration_p0
async def test_int_029_the_controller_worker_asks_for_it_too(stack, client_of, api_key):
    """The third service with an HTTP side has health open, and nothing else."""
    right = client_of(stack, "controller-worker")
    health = await right.having(x_api_key=None).get("/health")

    assert health.status == 200, f"health needs no key: {health}"
    await _is_closed(right, api_key)
    answer = await right.get("/no/such/path")
    assert answer.status == 404, f"the right key is refused for what is not there: {answer}"


async def _is_closed(right: HttpClient, api_key: str) -> None:
    """No request without the key, or with a wrong one, is answered but with 401."""
    bare = right.having(x_api_key=None)
    document = await live_document(right)
    known = {each.target() for each in document.operations} - OPEN_PATHS
    shapes = ("{}", "{}/", "/{}", "{}%2f..%2f..%2fhealth", "{};/health")
    paths = {shape.format(path) for path in known for shape in shapes} | set(LOOKALIKES)
    for path in sorted(paths):
        for method in ("GET", *random.sample(METHODS, FEW)):
            headers = random.choice(({}, {"x-api-key": f"{api_key} x"}))
            answer = await bare.request(method, path, headers=headers)
            # Who knows no such method may say so before anything else.
            unknown = answer.status in UNKNOWN_METHOD and method not in KNOWN
            assert answer.status == 401 or unknown, (
                f"expected 401 for {method} {path} without the right key, found {answer}"
            )


@pytest.mark.covers("INT-029")
@pytest.mark.integration_p0
@pytest.mark.parametrize("share", shares(2))
@pytest.mark.parametrize("service", ["controller", "worker"])
async def test_int_029_only_the_right_key_opens_an_endpoint(
    service, share, stack, client_of, api_key, token, subject
):
    """Every operation but health and the document refuses every wrong key with 401, and does nothing."""
    right = client_of(stack, service)
    bare = right.having(x_api_key=None, x_session_id=new_session(right).id)
    document = await live_document(right)
    protected = [each for each in document.operations if each.path not in OPEN_PATHS]

    assert protected, f"no operation of the {service} needs a key: {document.content}"
    wrong = dict([*wrong_keys(api_key).items()][share])
    for operation in protected:
        for what, headers in wrong.items():
            await refuses(bare, operation, headers, what=what)
        await refuses(
            bare,
            operation,
            {},
            what="the key in the query",
            query=f"?api_key={api_key}&key={api_key}",
        )
        await takes(right, operation)
    for path in ("/docs", "/redoc"):
        answer = await bare.get(path)
        assert answer.status in {401, 404}, f"{path} is neither protected nor absent: {answer}"
    health = await bare.get("/health")
    assert health.status == 200, f"health needs no key: {health}"
    if service == "controller" and "episodes" in subject.capabilities:
        await nothing_was_submitted(right, wrong, token)
    if service == "worker" and "files" in subject.capabilities:
        await nothing_was_written(right, wrong, token, recorded="record" in subject.capabilities)


async def refuses(
    bare: HttpClient, operation: Operation, headers: dict[str, str], *, what: str, query: str = ""
) -> None:
    """A request that is malformed besides is refused for its key."""
    answer = await bare.request(
        operation.method, operation.target() + query, headers=headers, content=b"{"
    )

    assert answer.status == 401, f"{operation.name} with {what}: expected 401, found {answer}"
    expect_refused(answer, 401)


async def takes(right: HttpClient, operation: Operation) -> None:
    """With the right key the same malformed request is judged by its content."""
    session = new_session(right)
    answer = await session.client.request(operation.method, operation.target(), content=b"{")

    assert answer.status not in {401, 403}, f"{operation.name} refuses the right key: {answer}"
    assert answer.status < 500, f"{operation.name} fails inside on a malformed request: {answer}"


async def nothing_was_submitted(
    right: HttpClient, wrong: dict[str, dict[str, str]], token: str
) -> None:
    """An episode that a wrong key submitted is nowhere; the right key submits it."""
    for number, (what, headers) in enumerate(wrong.items()):
        body = sent(EpisodeRequest(task=f"do nothing {token}-{number}"))
        answer = await right.having(x_api_key=None).request(
            "POST", "/episodes", json=body, headers=headers
        )
        expect_refused(answer, 401)
        assert token not in (await episodes(right)), f"an episode was made with {what}"
    answer = await right.post("/episodes", sent(EpisodeRequest(task=f"do nothing {token}-right")))
    assert answer.status == 202, f"the right key submits no episode: {answer}"
    listed = await episodes(right)
    assert f"{token}-right" in listed, f"the right key's episode is not listed: {listed[:400]}"


async def episodes(right: HttpClient) -> str:
    """The latest episodes, as text."""
    answer = await right.get("/episodes", params={"limit": 100})

    assert answer.status == 200, f"expected a list of episodes, found {answer}"
    return answer.text


async def nothing_was_written(
    right: HttpClient, wrong: dict[str, dict[str, str]], token: str, *, recorded: bool
) -> None:
    """What a wrong key wrote or ran has left nothing in the session; the right key writes."""
    session = new_session(right)
    bare = session.client.having(x_api_key=None)
    for number, headers in enumerate(wrong.values()):
        name = f"{token}-{number}.txt"
        body = sent(WriteRequest(path=name, content="written with a wrong key"))
        expect_refused(await bare.request("POST", "/fs/write", json=body, headers=headers), 401)
        body = sent(ExecuteRequest(command=f"echo run > run-{name}"))
        expect_refused(
            await bare.request("POST", "/runtime/execute", json=body, headers=headers), 401
        )
    left = {path for path in await session.files() if token in path}
    assert not left, f"files were written with wrong keys: {sorted(left)}"
    events = await session.events() if recorded else []
    done = [event for event in events if token in str(event)]
    assert not done, f"work was done with wrong keys: {done}"
    await session.write(f"{token}.txt", "written with the right key")
    read = await session.read(f"{token}.txt")
    assert read.json()["content"] == "written with the right key", f"what it wrote: {read}"
