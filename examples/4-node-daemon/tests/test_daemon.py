"""The daemon from outside: its answers, its refusals, and what is left of it after a crash."""

import json
import socket

import pytest

pytestmark = pytest.mark.requires("node")


@pytest.fixture
def counter(process):
    """A counter of this test's own."""
    return process.sync.start("counter")


def ask(counter, *lines, seconds=10):
    """Send lines on a connection of their own and return an answer for each."""
    with socket.create_connection(("127.0.0.1", counter.port), timeout=seconds) as link:
        link.sendall("".join(f"{line}\n" for line in lines).encode())
        answers = link.makefile()
        return [json.loads(answers.readline()) for _ in lines]


def add(word):
    """A request."""
    return json.dumps({"op": "add", "word": word})


def test_it_counts(counter):
    """Each word by itself, on one connection or several."""
    assert [{"count": 1}, {"count": 1}, {"count": 2}] == ask(counter, *map(add, ["a", "b", "a"]))
    assert [{"count": 3}] == ask(counter, add("a"))


@pytest.mark.parametrize(
    "line", ["no json", "7", "{}", '{"op": "add", "word": "a b"}', '{"op": "rm", "word": "a"}']
)
def test_what_is_refused_changes_nothing(counter, line):
    """It says why, on a connection that goes on."""
    refusal, after = ask(counter, line, add("a"))

    assert refusal["error"]
    assert {"count": 1} == after


def test_what_it_promised_survives_a_crash(counter):
    """Killed after its answer, it knows the word when it is started again; nothing outlives it."""
    ask(counter, *[add("a")] * 50)
    with counter.outage("kill"), pytest.raises(ConnectionRefusedError):
        ask(counter, add("a"))

    assert [{"count": 51}] == ask(counter, add("a"))


def test_a_client_notices_a_daemon_that_hangs(counter):
    """A paused daemon keeps its connections open and answers nothing; afterwards it goes on."""
    with counter.outage("pause"), pytest.raises(TimeoutError):
        ask(counter, '{"op": "get", "word": "a"}', seconds=0.5)

    assert [{"count": 1}] == ask(counter, add("a"))


def test_it_ends_when_it_is_asked_to(counter):
    """SIGTERM is enough: it ends with status 0, and has said where it was."""
    counter.sync.stop()

    assert 0 == counter.sync.wait()
    assert (f"counting on {counter.port}",) == counter.logs()
