"""From a network of containers to a server of this process."""

import socket

import pytest

from harness_core.base.errors import Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.doubles.http import Answer, HttpClient, Rule, Silence, Unanswered, open_recorder
from harness_core.system.compose._relay import open_relay


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_relay_passes_on_both_ways_and_follows_the_server(tmp_path):
    """Requests arrive, large answers come back; without the server connections are closed."""
    evidence, port = open_evidence(tmp_path), free_port()
    rules = [Rule(answer=Answer(body=b"x" * 1_000_000))]
    async with (
        open_recorder(
            "server", evidence=evidence, rules=rules, hosts=[f"127.0.0.2:{port}"]
        ) as server,
        open_relay("127.0.0.2", port, to=server.port, name="server"),
    ):
        answer = await HttpClient(f"http://127.0.0.2:{port}").get("/through")
    async with open_relay("127.0.0.2", port, to=server.port, name="server"):
        with pytest.raises(Unanswered) as error:
            await HttpClient(f"http://127.0.0.2:{port}").get("/gone")

    assert 1_000_000 == len(answer.body)
    assert ["/through"] == [request.target for request in server.requests]
    assert Silence.BROKEN is error.value.how


async def test_an_address_of_another_machine_is_refused():
    """The engine is somewhere else: the error says what a stack with a gateway needs."""
    with pytest.raises(Unavailable, match="needs an engine on this machine"):
        async with open_relay("192.0.2.77", 8080, to=1, name="llm"):
            """Not reached."""


async def test_a_port_that_is_taken_is_said_so():
    """Something else listens on all addresses of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"End what listens on port {port}"):
            async with open_relay("127.0.0.1", port, to=1, name="llm"):
                """Not reached."""
