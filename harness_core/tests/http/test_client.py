"""The HTTP client of tests: what it sends, answers and records, and how an answer fails to come."""

import json
from functools import partial

import pytest
import trio

from harness_core.base.errors import BadInput
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import Answer, HttpClient, Rule, Silence, Unanswered, open_recorder


@pytest.fixture
def evidence(tmp_path):
    """A directory of the test's own."""
    return open_evidence(tmp_path / "evidence")


async def test_a_request_arrives_as_it_was_asked_for(evidence):
    """Method, path, query, headers and JSON body, and no header that was not asked for."""
    async with open_recorder(
        "server", evidence=evidence, rules=[Rule(answer=Answer(json={}))]
    ) as server:
        client = HttpClient(server.url, headers={"X-API-Key": "k"})
        await client.request("POST", "/a b/ü", params={"q": "1 2"}, json={"x": [1]})

    (seen,) = server.requests
    assert ("POST", "/a%20b/%C3%BC?q=1+2") == (seen.method, seen.target)
    assert {"x": [1]} == seen.json()
    assert {"host", "x-api-key", "content-type", "content-length", "connection"} == {
        name for name, _ in seen.headers
    }


async def test_an_answer_is_whole(evidence):
    """Status, headers, body as bytes, text and JSON, and how long it took."""
    rules = [Rule(answer=Answer(status=418, json={"a": 1}, headers={"X-One": "1"}))]
    async with open_recorder("server", evidence=evidence, rules=rules) as server:
        answer = await HttpClient(server.url).get("/x")

    assert (418, False, True) == (answer.status, answer.ok, answer.refused)
    assert ({"a": 1}, "1", "application/json") == (
        answer.json(),
        answer.header("x-one"),
        answer.content_type,
    )
    assert 0 < answer.duration_s < 30
    assert f'GET {server.url}/x -> 418 {{"a": 1}}' == str(answer)


async def test_a_body_that_is_no_json_is_the_servers_failure(evidence):
    """What was expected and what came."""
    rules = [Rule(answer=Answer(body="<html>"))]
    async with open_recorder("server", evidence=evidence, rules=rules) as server:
        answer = await HttpClient(server.url).get("/")

    with pytest.raises(AssertionError, match=r"expected JSON from GET .* found '<html>'"):
        answer.json()


async def test_a_header_can_be_left_out_or_changed(evidence):
    """``having`` makes another client; the first stays what it was."""
    async with open_recorder("server", evidence=evidence, rules=[Rule(answer=Answer())]) as server:
        client = HttpClient(server.url, headers={"X-API-Key": "right"})
        await client.having(x_api_key=None).get("/none")
        await client.having(x_api_key="", x_other="o").get("/empty")
        await client.get("/right")

    none, empty, right = server.requests
    assert "x-api-key" not in dict(none.headers)
    assert ("", "o") == (dict(empty.headers)["x-api-key"], empty.header("x-other"))
    assert "right" == right.header("x-api-key")


async def test_every_exchange_is_evidence_and_secrets_are_not(evidence, tmp_path):
    """One line per exchange; headers that are secrets by name are not readable."""
    rules = [Rule(answer=Answer(json={"token": "t"}))]
    async with open_recorder("server", evidence=evidence, rules=rules) as server:
        client = HttpClient(
            server.url, name="shop", headers={"x-api-key": "hush"}, evidence=evidence
        )
        await client.post("/buy", {"what": "tea"})
        url = server.url
    with pytest.raises(Unanswered):
        await client.get("/closed")

    lines = (evidence.path / "shop.exchanges.jsonl").read_text().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert ("POST", f"{url}/buy", {"what": "tea"}) == (
        first["method"],
        first["url"],
        first["body"],
    )
    assert 200 == first["answer"]["status"]
    assert "connection refused" == second["problem"]
    assert "hush" not in "".join(lines)


@pytest.mark.parametrize(
    ("drop", "how"),
    [("unanswered", Silence.BROKEN), ("cut", Silence.BROKEN), ("silent", Silence.LATE)],
)
async def test_an_answer_that_does_not_come_is_a_failed_assertion(drop, how, evidence):
    """It says in which way, and names the server."""
    rules = [Rule(answer=Answer(body="x" * 100, drop=drop))]
    async with open_recorder("server", evidence=evidence, rules=rules) as server:
        client = HttpClient(server.url, name="shop")
        with pytest.raises(Unanswered, match="from shop, found none") as error:
            await client.get("/x", seconds=0.3)

    assert how is error.value.how
    assert isinstance(error.value, AssertionError)


async def test_a_port_without_a_listener_refuses(evidence):
    """Which is another failure than no answer in time."""
    async with open_recorder("server", evidence=evidence) as server:
        url = server.url

    with pytest.raises(Unanswered, match="connection refused") as error:
        await HttpClient(url).get("/")

    assert Silence.REFUSED is error.value.how


async def test_what_is_no_http_is_broken(evidence):
    """Something listens there and speaks another protocol."""

    async def speak(stream):
        await stream.receive_some(1)
        await stream.send_all(b"SSH-2.0-OpenSSH\r\n\r\n")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, speak, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(Unanswered) as error:
            await HttpClient(f"http://127.0.0.1:{port}").get("/")
        nursery.cancel_scope.cancel()

    assert Silence.BROKEN is error.value.how


@pytest.mark.parametrize("url", ["https://x", "127.0.0.1:1", "http://x/path", ""])
def test_a_base_url_that_could_not_be_asked_is_refused(url):
    """Where it is given, not at the first request."""
    with pytest.raises(BadInput, match="base_url"):
        HttpClient(url)
