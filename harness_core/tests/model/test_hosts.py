"""A gateway holds keys and money: what is meant for another host reaches nothing behind its door."""

from harness_core.doubles.http import HttpClient, directed, misdirected
from harness_core.tests.model.served import HI, KEY, TOKEN, served

#: Every route, the control API included, and some that there are not.
ROUTES = (
    ("POST", "/v1/messages", HI),
    ("POST", "/v1/messages/count_tokens", HI),
    ("POST", "/v1/chat/completions", HI),
    ("POST", "/v1/responses", {"model": "m", "input": "hi"}),
    ("POST", "/v1/embeddings", {"model": "m", "input": "hi"}),
    ("GET", "/", None),
    ("HEAD", "/", None),
    ("GET", "/api/hello", None),
    ("GET", "/_gateway/health", None),
    ("GET", "/_gateway/ledger", None),
    ("GET", "/_gateway/totals", None),
    ("POST", "/_gateway/scope", {"test": "t"}),
    ("POST", "/_gateway/faults", {"kind": "status", "status": 529}),
    ("POST", "/_gateway/clear", {}),
    ("GET", "/openapi.json", None),
    ("OPTIONS", "/v1/messages", None),
    ("DELETE", "/nothing/here", None),
)


async def test_every_route_refuses_what_is_for_another_host() -> None:
    """With the right key and token, 400 or 421; nothing is in the ledger and no fault is planted."""
    async with served() as (http, control):
        port = http.base_url.port
        headers = {"x-api-key": KEY, "authorization": f"Bearer {TOKEN}"}
        client = HttpClient(f"http://127.0.0.1:{port}", headers=headers)
        space = misdirected(port, seed=3)
        served_to = []
        for number, each in enumerate(space):
            method, path, body = ROUTES[number % len(ROUTES)]
            answer = await client.send(each, method, path, json=body)
            if answer.status not in {400, 421}:
                served_to.append(f"{method} {path} for {each.what}: {answer.status}")

        assert [] == served_to
        for method, path, body in ROUTES:
            answer = await client.send(space[0], method, path, json=body)
            assert 421 == answer.status, f"{method} {path}: {answer}"
        assert () == await control.ledger()
        assert () == await control.waiting_faults()


async def test_a_request_for_it_is_answered() -> None:
    """By both names of this machine, whatever other headers claim."""
    async with served() as (http, control):
        port = http.base_url.port
        client = HttpClient(f"http://127.0.0.1:{port}", headers={"x-api-key": KEY})
        for each in directed(port):
            answer = await client.send(each, "POST", "/v1/messages", json=HI)
            assert 200 == answer.status, f"{each.what}: {answer}"

        assert len(directed(port)) == len(await control.ledger())


async def test_it_answers_to_the_names_it_is_given() -> None:
    """Callers in a network of containers know it by the name of its service."""
    async with served(hosts=("llm:8080",)) as (http, _):
        answers = [
            (await http.get("/", headers={"host": host})).status_code
            for host in ("llm:8080", "llm:80", "xllm:8080")
        ]

    assert [200, 421, 421] == answers
