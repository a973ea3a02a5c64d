"""No caller reaches a butler under a name that is not its own: no page that rebinds its name to 127.0.0.1.

Requests are sent as bytes, over the whole space of hosts that a filter may take for the right one.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest

from harness_core.base import limits
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline
from harness_core.doubles.http import Addressed, HttpClient, directed, misdirected
from harness_core.front.skips import not_run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import streams_events
from suites.e2e.ecosystem.subject_file import tables_of

pytestmark = pytest.mark.covers("E2E-HOSTS")

#: Statuses that say: this is not for me.
REFUSED: Final = frozenset({400, 403, 421})

#: Endpoints that servers of this kind have, are thought to have, or do not have at all.
PATHS: Final = (
    *("/sse", "/messages", "/messages/", "/mcp", "/", "/health", "/openapi.json", "/docs"),
    *("/status", "/nothing/here", "//sse", "/sse/", "/.well-known/oauth-protected-resource"),
)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def drawn(port: int, count: int) -> list[Addressed]:
    """Some requests for another host; the seed of the run draws others in another run."""
    return random.sample(misdirected(port, seed=random.getrandbits(32)), count)


def client_of(butler: Butler, evidence: Evidence, **headers: str) -> HttpClient:
    """A client of one butler, which adds no header of its own."""
    return HttpClient(
        f"http://127.0.0.1:{butler.port}", name=butler.name, evidence=evidence, headers=headers
    )


def need_stream(ecosystem: Ecosystem) -> None:
    """What a GET of the endpoint is answered is known of HTTP/SSE alone."""
    if not streams_events(ecosystem.switchboard.url):
        not_run("subject", "its tools are not reached over HTTP/SSE")


async def test_every_endpoint_refuses_a_host_that_is_not_its_own(
    ecosystem: Ecosystem, evidence: Evidence
) -> None:
    """Foreign, similar, missing and doubled hosts are refused by each butler, method and path."""
    taken = []
    butlers = tuple(ecosystem.butlers.values())
    seed = random.getrandbits(32)
    for number, butler in enumerate(butlers):
        client = client_of(butler, evidence)
        own = urlsplit(butler.url).path
        # Between them they are asked for all of the space, and each on every path in every way.
        share = misdirected(butler.port, seed=seed)[number :: len(butlers)]
        asked = [("GET", own, each) for each in share]
        ways = [(method, path) for path in dict.fromkeys((own, *PATHS)) for method in METHODS]
        others = drawn(butler.port, len(ways))
        asked += [(*way, each) for way, each in zip(ways, others, strict=True)]
        for method, path, each in asked:
            body = {} if method in {"POST", "PUT", "PATCH"} else None
            answer = await client.send(each, method, path, json=body)
            if answer.status not in REFUSED:
                taken.append(f"{butler.name}: {method} {path} for {each.what}: {answer.status}")
    listed = "\n".join(taken[:20])

    assert not taken, f"{len(taken)} requests for another host were let in:\n{listed}"


async def test_its_own_host_is_answered(ecosystem: Ecosystem, evidence: Evidence) -> None:
    """By both names of this machine, whatever other headers claim, a butler opens its stream."""
    need_stream(ecosystem)
    for butler in ecosystem.butlers.values():
        client = client_of(butler, evidence)
        for each in directed(butler.port):
            answer = await client.send(each, "GET", urlsplit(butler.url).path)

            assert 200 == answer.status, f"{butler.name} for {each.what}: {answer}"


async def test_what_is_for_another_host_is_not_done(
    ecosystem: Ecosystem, subject: Subject, evidence: Evidence, token: str
) -> None:
    """In a session that is open, calls for another host leave no row; the same call for it does."""
    need_stream(ecosystem)
    if tables_of(subject).tools.transport != "mcp":
        not_run("subject", f"{subject.name}: its tools are not called over MCP")
    butler = ecosystem["general"]
    client = client_of(butler, evidence)
    async with stream_of(butler) as path:
        await client.post(path, rpc("initialize", number=0, **HELLO))
        await client.post(path, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, each in enumerate(drawn(butler.port, 20), start=1):
            calls = (
                rpc_call("state_set", number=number, key=f"{token}-{number}", value=each.what),
                rpc_call("trigger", number=number + 1000, prompt=f"set {token} for {each.what}"),
            )
            for call in calls:
                answer = await client.send(each, "POST", path, json=call)

                assert answer.status in REFUSED, f"a call for {each.what}: {answer}"
        await client.post(path, rpc_call("state_set", number=500, key=f"{token}-own", value=1))
        await butler.database.expect_row(
            "state", where={"key": f"{token}-own"}, columns={"value": 1}
        )
    keys = await butler.database.rows("SELECT key FROM state WHERE starts_with(key, %s)", (token,))
    sessions = await butler.database.rows(
        "SELECT prompt FROM sessions WHERE strpos(prompt, %s) > 0", (token,)
    )

    assert [{"key": f"{token}-own"}] == keys, "calls for another host were carried out"
    assert [] == sessions, "calls for another host began sessions"


async def test_a_page_of_another_origin_is_refused(
    ecosystem: Ecosystem, evidence: Evidence
) -> None:
    """MCP has a server check ``Origin`` too: a page of its own may call it, another may not."""
    need_stream(ecosystem)
    for butler in ecosystem.butlers.values():
        own = f"127.0.0.1:{butler.port}"
        origins = {f"http://{own}": 200, f"http://localhost:{butler.port}": 200}
        foreign = ("http://evil.example", f"http://evil.example:{butler.port}", "null")
        foreign += (f"http://{own}.evil.example", f"http://evil.example/{own}", f"https://x@{own}")
        for origin in (*origins, *foreign):
            client = client_of(butler, evidence, origin=origin)
            answer = await client.send(directed(butler.port)[0], "GET", urlsplit(butler.url).path)

            assert origins.get(origin, 403) == answer.status, f"origin {origin}: {answer}"


HELLO: Final[Mapping[str, Any]] = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def rpc(method: str, *, number: int, **params: Any) -> dict[str, Any]:
    """A request of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def rpc_call(tool: str, *, number: int, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    return rpc("tools/call", number=number, name=tool, arguments=arguments)


@asynccontextmanager
async def stream_of(butler: Butler) -> AsyncIterator[str]:
    """Open a session and keep its stream; the path that its messages are posted to."""
    timeout = httpx2.Timeout(patience(limits.MCP_CALL_S))
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=timeout) as http,
        http.stream("GET", butler.url) as stream,
    ):
        lines = stream.aiter_lines()
        with deadline(f"read the endpoint of {butler.url}", seconds=limits.MCP_CALL_S):
            while not (line := await anext(lines)).startswith("data:"):
                pass
        endpoint = urlsplit(urljoin(butler.url, line.removeprefix("data:").strip()))
        yield f"{endpoint.path}?{endpoint.query}"
