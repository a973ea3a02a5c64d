"""A host: opened when first asked, shared, put right after a user that died, closed with its run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from harness_core.bridge import Loop
from harness_core.errors import BadInput, HarnessError, NotReady, Unavailable
from harness_core.evidence import Evidence, open_evidence
from harness_core.hosting import HeldHost, Line, ask, find_runs, hold_host
from harness_core.process import Run
from harness_core.wait import until_blocking


class Thing:
    """An environment of one part, which can be broken."""

    def __init__(self) -> None:
        self.broken = False

    def describe(self) -> Mapping[str, Any]:
        """Whether it is broken."""
        return {"parts": [], "broken": self.broken}

    async def act(self, part: str, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Break it, or raise what a caller must see."""
        if verb == "fail":
            raise NotReady("start it", observed="nothing", stage="port", tail=("last words",))
        if verb == "assert":
            raise AssertionError("the product is wrong")
        if verb == "crash":
            raise RuntimeError("a bug")
        if verb == "hang":
            begun, ended = arguments["begun"], arguments["ended"]
            Path(begun).touch()
            try:
                await trio.sleep_forever()
            finally:
                Path(ended).touch()
        self.broken = verb == "break"
        return {"part": part, **arguments}

    async def mend(self) -> Sequence[str]:
        """Make it whole."""
        found = ["it was broken"] if self.broken else []
        self.broken = False
        return found


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs of a test are nobody else's; the path is too long for a socket on purpose."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(deep))
    return deep


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Where the runs of a test write."""
    return open_evidence(tmp_path / "evidence")


@contextmanager
def held(
    evidence: Evidence, events: list[str], *, open_: Callable[[], None] = lambda: None
) -> Iterator[HeldHost]:
    """A host of a thing; ``events`` tells its life."""

    @asynccontextmanager
    async def opener(run: Run, loop: Loop) -> AsyncIterator[Thing]:
        open_()
        events.append("opened")
        try:
            yield Thing()
        finally:
            events.append("closed")

    with hold_host(opener, title="thing", evidence=evidence, say=events.append) as host:
        yield host


def test_it_is_opened_once_when_first_asked_and_closed_at_the_end(evidence: Evidence) -> None:
    """Nothing is booted that nobody uses; several users get the same thing."""
    events: list[str] = []
    with held(evidence, events) as host:
        assert [] == events
        assert ask(host.path, "describe", only_if_open=True) is None
        with Line(host.path) as one, Line(host.path) as two:
            one.ask("act", part="x", verb="break", arguments={})

            assert True is two.ask("describe")["broken"]
        assert ["opened"] == events

    assert ["opened", "closed"] == events


def test_one_that_nobody_used_is_never_opened(evidence: Evidence) -> None:
    """A host without users costs nothing."""
    events: list[str] = []
    with held(evidence, events):
        pass

    assert [] == events


def test_a_failure_to_open_is_told_to_every_user_and_tried_once(evidence: Evidence) -> None:
    """Workers do not boot again what one of them saw fail."""
    tries: list[str] = []

    def fail() -> None:
        tries.append("tried")
        raise BadInput("subject.toml", key="argv", found=1, expected="a list")

    with held(evidence, [], open_=fail) as host:
        for _ in range(2):
            with pytest.raises(BadInput) as caught:
                ask(host.path, "describe")

            assert "argv" == caught.value.key

    assert ["tried"] == tries


def test_errors_arrive_as_what_they_were(evidence: Evidence) -> None:
    """A harness error keeps its fields, a failed assertion stays one, a bug names itself."""
    with held(evidence, []) as host:
        with pytest.raises(NotReady) as not_ready:
            ask(host.path, "act", part="x", verb="fail", arguments={})
        with pytest.raises(AssertionError, match="the product is wrong"):
            ask(host.path, "act", part="x", verb="assert", arguments={})
        with pytest.raises(HarnessError, match="RuntimeError"):
            ask(host.path, "act", part="x", verb="crash", arguments={})
        with pytest.raises(BadInput, match="dance"):
            ask(host.path, "dance")

    assert ("port", ("last words",)) == (not_ready.value.stage, not_ready.value.tail)


def test_what_a_dead_user_broke_is_put_right_before_the_next_turn(evidence: Evidence) -> None:
    """SIGKILL to a worker alone with the environment: mended, then the next one enters."""
    events: list[str] = []
    program = (
        "import sys; from pathlib import Path; from harness_core.hosting import Line\n"
        "line = Line(Path(sys.argv[1])); line.ask('enter', alone=True)\n"
        "line.ask('act', part='x', verb='break', arguments={})\n"
        "print('broken', flush=True); sys.stdin.read()"
    )
    with held(evidence, events) as host:
        with subprocess.Popen(
            [sys.executable, "-c", program, str(host.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdout is not None
            assert "broken\n" == worker.stdout.readline()
            with Line(host.path) as line:
                assert True is line.ask("describe")["broken"]
                worker.send_signal(signal.SIGKILL)
                line.ask("enter", alone=False)

                assert False is line.ask("describe")["broken"]

        assert ["opened"] == events
    assert "closed" == events[-1]
    assert any("it was broken" in event for event in events)


def test_what_is_asked_for_ends_with_its_asker(evidence: Evidence, caller, tmp_path: Path) -> None:
    """A deadline and Ctrl-C end what the host does for a user, before that user goes on."""
    with held(evidence, []) as host:

        def files(name: str) -> dict[str, str]:
            return {
                "begun": str(tmp_path / f"{name}-begun"),
                "ended": str(tmp_path / f"{name}-ended"),
            }

        async def hang(name: str) -> None:
            with Line(host.path) as line:
                await line.ask_in_task("act", part="x", verb="hang", arguments=files(name))

        def interrupt() -> None:
            until_blocking(
                lambda: Path(files("ctrl-c")["begun"]).exists() or None, seconds=5, action="see it"
            )
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        async def late() -> None:
            with pytest.raises(TimeoutError):
                await caller.within(0.1, lambda: hang("late"))

        with Line(host.path) as other:
            caller.run(late)
            assert Path(files("late")["ended"]).exists()
            watching = threading.Thread(target=interrupt)
            watching.start()
            with pytest.raises(KeyboardInterrupt):
                caller.run(lambda: hang("ctrl-c"))
            watching.join()
            assert Path(files("ctrl-c")["ended"]).exists()

            assert {"part": "y"} == other.ask("act", part="y", verb="whole", arguments={})


def test_only_this_user_may_ask(evidence: Evidence) -> None:
    """The socket is nobody else's."""
    with held(evidence, []) as host:
        assert 0o600 == host.path.stat().st_mode & 0o777


def test_runs_are_found_with_what_they_hold(evidence: Evidence) -> None:
    """`harness ps` sees a host from any process of the user, and no more when it is closed."""
    with held(evidence, []) as host:
        (seen,) = find_runs()

        assert ("thing", os.getpid(), True) == (seen.title, seen.pid, seen.alive)
        assert host.path == seen.socket
        assert seen.command

    assert () == find_runs()


def test_a_host_that_ended_is_named(evidence: Evidence) -> None:
    """Asking a host that is gone says so, and how to see what runs."""
    with held(evidence, []) as host, Line(host.path) as line:
        path = host.path
    with pytest.raises(Unavailable, match="harness ps"):
        Line(path)
    with pytest.raises(HarnessError, match="has ended"):
        line.ask("describe")


def test_asked_to_stop_it_says_so_to_its_holder(evidence: Evidence) -> None:
    """What `harness down` asks for is what the holding process waits for."""
    with held(evidence, []) as host:
        ask(host.path, "stop")
        host.wait_until_stopped()

        assert host.path.exists()
    assert not host.path.exists()


def test_garbage_is_refused_and_the_host_lives(evidence: Evidence) -> None:
    """A line that is no JSON object is one error; the next one is answered."""
    with held(evidence, []) as host, Line(host.path) as line:
        line._socket.sendall(b"nonsense\n")

        assert "error" in json.loads(line._socket.recv(65536))
        assert [] == line.ask("describe")["parts"]
