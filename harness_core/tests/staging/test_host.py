"""The control socket of what is staged: who may ask, what is answered, what is refused."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.evidence import Message, open_evidence
from harness_core.base.wait import deadline
from harness_core.process import open_run
from harness_core.system.staging import Offer, Way, _host
from harness_core.system.staging._host import Host, ask, open_host
from harness_core.system.staging._runs import runs_seen


class Thing:
    """An environment of one part."""

    def describe(self) -> dict[str, Any]:
        """The part."""
        return {"parts": [{"name": "x"}]}


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs of a test are its own; the path is too long for a socket on purpose."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(deep))
    return deep


async def within(folder: Path, use: Callable[[Host], Any]) -> Any:
    """What ``use`` sees, in a thread, of a host that is open."""
    evidence = open_evidence(folder / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_host(run, title="thing", root=folder) as host,
    ):
        host.environment = Thing()
        return await trio.to_thread.run_sync(use, host)


async def test_it_describes_what_it_holds(tmp_path):
    """To as many as ask."""
    seen = await within(tmp_path, lambda host: [ask(host.path, "describe") for _ in range(2)])

    assert [{"parts": [{"name": "x"}]}] * 2 == seen


async def test_while_it_boots_there_is_nothing_to_describe(tmp_path):
    """``harness ps`` says then that it boots."""

    def look(host: Host) -> Any:
        host.environment = None
        return ask(host.path, "describe")

    assert await within(tmp_path, look) is None


async def test_asked_to_stop_it_says_so_to_its_holder(tmp_path):
    """What `harness down` asks for is what the holding process waits for."""

    def stop(host: Host) -> bool:
        ask(host.path, "stop")
        return host.stopping.is_set()

    assert await within(tmp_path, stop)


async def test_a_word_that_it_does_not_know_is_refused(tmp_path):
    """With those that it knows."""

    def dance(host: Host) -> None:
        with pytest.raises(
            HarnessError, match="found 'dance', expected one of describe, stop, act"
        ):
            ask(host.path, "dance")

    await within(tmp_path, dance)


class Acting(Thing):
    """An environment whose part takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.done = trio.Event(), trio.Event(), []

    async def act(self, name: str, verb: str) -> None:
        """Wait, then note it."""
        self.begun.set()
        await self.go_on.wait()
        self.done.append((name, verb))


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[tuple[Host, Acting]]:
    """A host that a person holds, with such an environment."""
    evidence = open_evidence(folder / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_host(run, title="thing", root=folder, staged=True) as host,
    ):
        host.environment = acting = Acting()
        yield host, acting


def request(word: str, **about: str) -> bytes:
    """A line to the host."""
    return json.dumps({"ask": word, **about}).encode()


async def test_one_thing_at_a_time_is_done_to_a_part(tmp_path):
    """What is under way is described; a second verb for the same part is refused, another part's is not."""
    async with staged(tmp_path) as (host, acting), trio.open_nursery() as nursery:
        nursery.start_soon(host.answer, request("act", part="x", verb="stop"))
        await acting.begun.wait()

        assert {"x": "stop"} == (await host.answer(request("describe")))["answer"]["busy"]
        with (
            pytest.raises(HarnessError, match="stop of it is not done yet"),
            deadline("hear that it is busy", seconds=30),
        ):
            await host.answer(request("act", part="x", verb="kill"))
        nursery.start_soon(host.answer, request("act", part="y", verb="kill"))
        acting.go_on.set()
    assert {("x", "stop"), ("y", "kill")} == set(acting.done)


async def test_nothing_is_done_to_parts_that_are_taken_down(tmp_path):
    """What is under way is cut off first, and nothing is begun any more."""
    async with staged(tmp_path) as (host, acting):
        errors: list[HarnessError] = []

        async def act() -> None:
            try:
                await host.answer(request("act", part="x", verb="start"))
            except HarnessError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(act)
            await acting.begun.wait()
            with deadline("see all of it cut off", seconds=30):
                await host.settle()
            with pytest.raises(HarnessError, match="it is ending"):
                await host.answer(request("act", part="y", verb="start"))
            acting.go_on.set()  # for one that was not
    assert [] == acting.done
    assert ["it is ending"] == [error.observed for error in errors]


class Talking:
    """What can be sent to it."""

    def __init__(self, *, free_text: bool) -> None:
        self.free_text, self.sent = free_text, []

    def offers(self) -> list[Offer]:
        """One."""
        return [Offer(id="tea", title="Tea", text="a pound of tea")]

    async def send(self, offer: str, text: str) -> str:
        """Note it."""
        self.sent.append((offer, text))
        return "1"

    async def way(self, message: str) -> Way:
        """It has arrived."""
        return Way(story=(Message(id=message, text="tea"),), ended=True)


async def test_what_is_offered_is_sent_and_followed(tmp_path):
    """With the names of its story; any text only where something understands it."""
    async with staged(tmp_path) as (host, _):
        host.messages = talking = Talking(free_text=False)
        offers = (await host.answer(request("offers")))["answer"]
        sent = (await host.answer(request("send", offer="tea")))["answer"]
        way = (await host.answer(request("way", message=sent)))["answer"]

        assert ["tea"] == [offer["id"] for offer in offers["offers"]]
        assert (True, "message") == (way["ended"], way["story"][0]["tells"])
        with pytest.raises(HarnessError, match="--llm live"):
            await host.answer(request("send", text="whatever"))
        talking.free_text = True
        await host.answer(request("send", text="whatever"))
        with pytest.raises(HarnessError, match="--llm live"):
            await host.answer(request("send", text="  "))
    assert [("tea", ""), ("", "whatever")] == talking.sent


@pytest.mark.parametrize("word", ["act", "offers", "send", "way", "spent"])
async def test_what_a_test_run_holds_is_not_touched(tmp_path, word):
    """It may be looked at from another terminal, as ever, and nothing is done to it."""

    def touch(host: Host) -> str:
        with pytest.raises(HarnessError) as refused:
            ask(host.path, word)
        return str(refused.value)

    assert "a test run holds it" in await within(tmp_path, touch)


async def test_where_nothing_can_be_done_that_is_said(tmp_path):
    """An environment without parts to take away, or without messages, goes on as it is."""
    async with staged(tmp_path) as (host, _):
        host.environment = Thing()

        assert {"answer": None} == await host.answer(request("offers"))
        assert {"answer": None} == await host.answer(request("spent"))
        with pytest.raises(HarnessError, match="with a method `act`"):
            await host.answer(request("act", part="x", verb="stop"))
        with pytest.raises(HarnessError, match=r"suite\.toml has `messages`"):
            await host.answer(request("send", offer="x"))


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b'{"no": "word"}\n', b"x" * 5000, b""])
async def test_garbage_is_refused_and_the_host_lives(tmp_path, line):
    """A line that is no request is one error; the next one is answered."""

    def speak(host: Host) -> None:
        with socket.socket(socket.AF_UNIX) as stream:
            directory = os.open(host.path.parent, os.O_PATH)
            stream.connect(f"/proc/self/fd/{directory}/{host.path.name}")
            os.close(directory)
            stream.sendall(line)
            stream.shutdown(socket.SHUT_WR)

            assert "expected a JSON object" in json.loads(stream.makefile("rb").readline())["error"]
        assert ask(host.path, "describe")

    await within(tmp_path, speak)


async def test_a_mistake_in_a_description_takes_nothing_down(tmp_path):
    """It is reported to the terminal that asked; what is held goes on, and may be asked to stop."""

    class Broken:
        def describe(self) -> dict[str, Any]:
            raise LookupError("no such part")

    def look(host: Host) -> bool:
        host.environment = Broken()
        with pytest.raises(HarnessError, match="LookupError: no such part"):
            ask(host.path, "describe")
        ask(host.path, "stop")
        return host.stopping.is_set()

    assert await within(tmp_path, look)


async def test_runs_are_found_with_what_they_hold(tmp_path):
    """From any process of the user, by a socket of that user alone; and no more afterwards."""

    def look(host: Host) -> None:
        host.environment = None
        (seen,) = runs_seen()

        assert ("thing", os.getpid(), "booting") == (seen.holds, seen.pid, seen.state)
        assert seen.command
        assert 0o600 == host.path.stat().st_mode & 0o777

    await within(tmp_path, look)

    assert () == runs_seen()


async def test_one_that_does_not_answer_holds_up_no_terminal(tmp_path, monkeypatch):
    """Its process may be stopped, by Ctrl-Z or in a debugger: that is shown, beside the other runs."""

    async def hang(self: Host, stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    def look(host: Host) -> None:
        with pytest.raises(NotReady, match="no answer within"):
            ask(host.path, "describe")
        (seen,) = runs_seen()

        assert ("thing", "silent", ()) == (seen.holds, seen.state, seen.parts)

    monkeypatch.setattr(Host, "serve", hang)
    monkeypatch.setattr(_host, "_ANSWER_S", 0.1)
    with trio.fail_after(60):
        await within(tmp_path, look)


async def test_a_host_that_ended_is_named(tmp_path):
    """Asking a host that is gone says so, and how to see what runs."""
    path = await within(tmp_path, lambda host: host.path)

    with pytest.raises(Unavailable, match="harness ps"):
        ask(path, "describe")
