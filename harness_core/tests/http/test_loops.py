"""Client and recorder in each kind of loop: they belong to none."""

import signal
import threading

import pytest

from harness_core.base.bridge import open_loop
from harness_core.base.errors import NotReady
from harness_core.base.evidence import open_evidence
from harness_core.base.wait import until_blocking
from harness_core.doubles.http import Answer, HttpClient, Rule, Silence, Unanswered, open_recorder

RULES = [Rule(path="/never", answer=Answer(drop="silent")), Rule(answer=Answer(json={"ok": True}))]


@pytest.fixture
def recorder(tmp_path):
    """A server in a loop of its own; one path of it never answers."""
    evidence = open_evidence(tmp_path / "evidence")
    with (
        open_loop() as loop,
        loop.hold(open_recorder("api", evidence=evidence, rules=RULES)) as opened,
    ):
        yield opened


def test_requests_are_answered_and_seen(caller, recorder):
    """A request and a wait for it, from any loop."""
    client = HttpClient(recorder.url)

    async def body():
        assert {"ok": True} == (await client.get("/x")).json()
        (seen,) = await recorder.wait_for("/x", seconds=5)
        assert "GET" == seen.method
        with pytest.raises(NotReady):
            await recorder.wait_for("/y", seconds=0.01)
        with pytest.raises(Unanswered) as late:
            await client.get("/never", seconds=0.01)
        assert Silence.LATE is late.value.how

    caller.run(body)


def test_a_request_without_an_answer_ends_with_its_caller(caller, recorder):
    """A deadline, and Ctrl-C in the middle."""
    client = HttpClient(recorder.url)

    async def body():
        with pytest.raises(TimeoutError):
            await caller.within(0.05, lambda: client.get("/never"))

    caller.run(body)
    before = recorder.mark()

    def watch() -> None:
        until_blocking(lambda: recorder.mark() > before or None, seconds=5, action="see it")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    watching = threading.Thread(target=watch)
    watching.start()
    with pytest.raises(KeyboardInterrupt):
        caller.run(lambda: client.get("/never"))
    watching.join()
