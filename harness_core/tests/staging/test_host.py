"""The control socket of what is staged: who may ask, what is answered, what is refused."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.staging import _host
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
        with pytest.raises(HarnessError, match="found 'dance', expected describe or stop"):
            ask(host.path, "dance")

    await within(tmp_path, dance)


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
