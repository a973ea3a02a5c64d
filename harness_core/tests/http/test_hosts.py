"""A request for another host: the space of such requests, and servers of ours that refuse them."""

import pytest
import trio

from harness_core.base.errors import BadInput
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import (
    Answer,
    HttpClient,
    OwnHosts,
    Rule,
    Unanswered,
    directed,
    misdirected,
    open_recorder,
)

PORT = 8103
OWN = {f"127.0.0.1:{PORT}", f"localhost:{PORT}"}


@pytest.mark.parametrize("seed", range(5))
def test_no_request_of_the_space_is_for_the_server(seed) -> None:
    """Each is there once, in hundreds, and none has a Host that is the server's own, and only it."""
    space = misdirected(PORT, seed=seed)

    assert 400 < len(space)
    assert len(space) == len({each.what for each in space})
    assert [] == [
        each.what
        for each in space
        if len(each.hosts) == 1 and each.hosts[0].strip(" \t").lower() in OWN and not each.origin
    ]


def test_what_is_drawn_is_drawn_again() -> None:
    """The same seed gives the same requests, another one others."""
    first, again, other = (misdirected(PORT, seed=seed) for seed in (1, 1, 2))

    assert first == again
    assert {each.what for each in first} != {each.what for each in other}


def test_a_server_that_does_not_know_its_port_may_take_any() -> None:
    """Its own names with another port are left out, and foreign ones are not."""
    found = {host for each in misdirected(PORT, seed=1, any_port=True) for host in each.hosts}

    assert set() == found & {"127.0.0.1", "127.0.0.1:80", "localhost:", f"localhost:{PORT + 1}"}
    assert {"evil.example", f"evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}"} <= found


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1:8103", None),
        (b"localhost:8103", None),
        (b"LocalHost:8103", None),
        (b"llm:80", None),
        (b"llm", 421),
        (b"localhost.:8103", 421),
        (b"[::1]:8103", 421),
        (b"127.0.0.1", 421),
        (b"", 421),
    ],
)
def test_a_name_of_its_own_is_one_in_any_case_and_else_exactly(host, status) -> None:
    """Names are compared as DNS does; no dot, no port and no address is added or taken away."""
    refused = OwnHosts(PORT, further=["llm:80"]).refuse(target=b"/", hosts=[host])

    assert status == (refused.status if refused else None)


@pytest.mark.parametrize("name", ["llm", ":80", "llm:", "llm:eighty", ""])
def test_a_further_name_without_a_port_is_refused(name) -> None:
    """A port is part of what a caller writes."""
    with pytest.raises(BadInput, match="expected HOST:PORT"):
        OwnHosts(PORT, further=[name])


async def test_a_recorder_refuses_what_is_for_another_host(tmp_path) -> None:
    """Every such request is answered 400 or 421 and recorded as a problem; no rule answers it."""
    evidence = open_evidence(tmp_path)
    counted = Rule(answer=Answer(json={}), name="any")
    async with open_recorder("api", evidence=evidence, rules=[counted]) as recorder:
        client = HttpClient(recorder.url)
        space = misdirected(recorder.port, seed=7)
        served = [
            f"{each.what}: {answer.status}"
            for each in space
            if (answer := await client.send(each, "POST", "/x", json={})).status not in {400, 421}
        ]

        assert [] == served
        assert len(space) == sum(bool(request.problem) for request in recorder.requests)
        assert [] == recorder.matching()
        for each in directed(recorder.port):
            answer = await client.send(each, "POST", "/x", json={})
            assert 200 == answer.status, f"{each.what}: {answer}"
        assert len(directed(recorder.port)) == len(recorder.matching())


async def test_a_recorder_answers_to_the_name_it_is_given(tmp_path) -> None:
    """In a network of containers it is known by the name of its service."""
    async with open_recorder(
        "langfuse", evidence=open_evidence(tmp_path), rules=[Rule()], hosts=["langfuse:3000"]
    ) as recorder:
        client = HttpClient(recorder.url)
        answers = [
            (await client.get("/", headers={"host": host})).status
            for host in ("langfuse:3000", "langfuse", "langfuse:80", "langfuse.evil.example:3000")
        ]

    assert [200, 421, 421, 421] == answers


async def test_a_request_that_is_not_answered_says_so(tmp_path) -> None:
    """A server that hangs up on a strange request has not answered it."""

    async def hang_up(stream) -> None:
        async with stream:
            await stream.receive_some(65_536)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, hang_up, [listener])
        port = listener.socket.getsockname()[1]
        client = HttpClient(f"http://127.0.0.1:{port}", evidence=open_evidence(tmp_path))

        with pytest.raises(Unanswered, match="found none: RemoteProtocolError"):
            await client.send(misdirected(port, seed=1)[0], "GET", "/")
        nursery.cancel_scope.cancel()
    written = (tmp_path / "http.exchanges.jsonl").read_text(encoding="utf-8")
    assert "evil.example" in written
