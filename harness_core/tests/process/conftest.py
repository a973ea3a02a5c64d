"""Runs of the tests of supervision: state in a directory of their own, and a runner to kill."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness_core.base.evidence import Evidence, open_evidence
from harness_core.base.wait import until_blocking
from harness_core.process import Run, _warden, open_run

#: A child that leaves a process in its session, one in a session of its own, and a daemon with two
#: forks, an empty environment and a listening port. Each says who it is.
TREE = """
import os, signal, socket, sys
def say(what):
    os.write(1, f"{what} {os.getpid()}\\n".encode())
say("leader")
if os.fork() == 0:
    say("same-session")
    signal.pause()
if os.fork() == 0:
    os.setsid()
    say("own-session")
    signal.pause()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.set_inheritable(True)
    say(f"port {listener.getsockname()[1]}")
    say("daemon")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execve(sys.executable, ["daemon", "-Sc", "import signal; signal.pause()"], {})
signal.pause()
"""

RUNNER = """
import sys
from pathlib import Path
import trio
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.base.wait import until

async def main():
    async with open_run(evidence=open_evidence(Path(sys.argv[1]))) as run:
        print("run", run.id)
        print("disk", run.directory("data"))
        print("memory", run.directory("data", in_memory=True))
        for entry in run.ledger.entries():
            if entry["kind"] == "warden":
                print("warden", entry["pid"])
        async with run.child([sys.executable, "-Sc", sys.argv[2]], name="tree") as child:
            async def complete():
                return any(line.startswith("daemon") for line in child.tail()) and len(child.tail()) == 5
            await until(complete)
            print(*child.tail(), sep="\\n")
            print("ready", flush=True)
            await trio.sleep_forever()

trio.run(main)
"""


@dataclasses.dataclass
class Runner:
    """A harness process that holds a run with a tree of children.

    Attributes:
        said: what it printed, word → rest of the line.
        starts: pid → start time of every process concerned.
    """

    process: subprocess.Popen[str]
    said: dict[str, str]
    starts: dict[int, int | None]

    def pid(self, what: str) -> int:
        """The pid of one of its processes."""
        return int(self.said[what])

    def alive(self) -> list[str]:
        """Which of its processes still run."""
        return [
            what
            for what in ("warden", "leader", "same-session", "own-session", "daemon")
            if (start := self.starts[self.pid(what)]) and _warden.runs(self.pid(what), start)
        ]

    def wait_until_gone(self, *, seconds: float = 5) -> None:
        """Wait until none of its processes runs any more."""
        until_blocking(lambda: not self.alive(), seconds=seconds, action=f"see {self.alive()} end")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of this test alone, for itself and the processes it starts."""
    path = tmp_path / "state"
    monkeypatch.setenv("HARNESS_STATE_DIR", str(path))
    return path


@pytest.fixture
def logs(tmp_path: Path) -> Evidence:
    """The evidence directory of this test's run."""
    return open_evidence(tmp_path / "evidence")


@pytest.fixture
async def run(state: Path, logs: Evidence) -> AsyncIterator[Run]:
    """An open run with its ledger in a directory of this test alone."""
    async with open_run(evidence=logs) as opened:
        yield opened


@pytest.fixture
def start_runner(tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    """Start a harness process with a tree of children and wait until all of them are there."""
    started: list[Runner] = []

    def start(**env: str) -> Runner:
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(tmp_path / "runner-evidence"), TREE],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        said: dict[str, str] = {}
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            said[words[0]] = words[1] if len(words) > 1 else ""
            if words[0] == "ready":
                break
        whats = ("warden", "leader", "same-session", "own-session", "daemon")
        starts = {int(said[what]): _warden.start_time(int(said[what])) for what in whats}
        started.append(Runner(process=process, said=said, starts=starts))
        return started[-1]

    yield start
    for runner in started:
        runner.process.kill()
        runner.process.wait()
        assert runner.process.stdout is not None
        runner.process.stdout.close()
        for pid, begun in runner.starts.items():
            if begun is not None and _warden.runs(pid, begun):
                os.kill(pid, 9)
