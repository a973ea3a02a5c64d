"""A real engine that is stopped, or killed, while a run uses it: one clear error, nothing left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from harness_core.base import limits
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.wait import deadline, until_blocking
from harness_core.infrastructure.containers import ContainerSpec, engine_client, open_container
from harness_core.infrastructure.engine import Engine, engine_reason, find_engine
from harness_core.process import command_line, open_run

pytestmark = [
    pytest.mark.docker,
    pytest.mark.requires("docker", "dockerd"),
    pytest.mark.slow,
]


class OwnEngine:
    """A dockerd of this test's own, on a socket and in directories of its own, without a network."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = f"unix://{home}/s"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._forget_containerd()
        # In a network namespace of its own: without a bridge it would remove the machine's docker0.
        argv = ["unshare", "--net", "dockerd", "--host", self.url, "--pidfile", f"{self.home}/p"]
        argv += ["--data-root", f"{self.home}/d", "--exec-root", f"{self.home}/x"]
        argv += ["--bridge=none", "--iptables=false", "--ip6tables=false"]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        until_blocking(
            lambda: not engine_reason(), seconds=60, action="start an engine of the test's own"
        )

    def _forget_containerd(self) -> None:
        """What a killed engine recorded of its containerd: it died with it, and may not be reaped yet.

        The next engine would take the dead process for a live one, and wait for it.
        """
        noted = self.home / "x/containerd/containerd.pid"
        if noted.is_file():
            pid = int(noted.read_text())
            until_blocking(
                lambda: not self._runs(pid),
                seconds=20,
                action="see containerd end with its engine",
            )
            noted.unlink()

    def _runs(self, pid: int) -> bool:
        """Whether a process is this engine's, by the directory on its command line."""
        return f"{self.home}/" in " ".join(command_line(pid))

    def end(self, number: signal.Signals) -> None:
        """Signal it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Stop it; end what a killed one left: its containerd, the shims of its containers."""
        self.end(signal.SIGTERM)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._runs(int(entry.name)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry.name), signal.SIGKILL)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if f"{self.home}/" in line.split()[1]:
                subprocess.run(["umount", "-l", line.split()[1]], check=False)
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture
def own_engine(engine: Engine, base: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    """An engine to be stopped, with our lowest image in it; everything of the test goes to it."""
    # Its sockets' paths must be short.
    made = OwnEngine(Path(tempfile.mkdtemp(prefix="hs-dk-")))
    monkeypatch.setenv("DOCKER_HOST", made.url)
    # Its ledgers are not among the user's own runs.
    monkeypatch.setenv("HARNESS_STATE_DIR", str(made.home / "state"))
    try:
        made.start()
        with engine_client(engine) as source, engine_client(find_engine()) as target:
            image = source.images.get(base)
            (loaded,) = target.images.load(b"".join(image.save()))
            loaded.tag(*base.split(":"))
        yield made
    finally:
        made.close()


#: Runs until its container is ended, and the engine with it.
RUNNER = """
import sys, trio
from pathlib import Path
from harness_core.infrastructure.containers import ContainerSpec, open_container
from harness_core.infrastructure.engine import find_engine
from harness_core.base.evidence import open_evidence
from harness_core.process import command_line, open_run

async def main():
    evidence = open_evidence(Path(sys.argv[1]))
    spec = ContainerSpec(
        name="sleeper", image=sys.argv[2], port=1, shared_network=True,
        command=("sh", "-c", "echo started; exec sleep 1000"),
    )
    async with open_run(evidence=evidence) as run:
        async with open_container(
            run, spec, engine=find_engine(), evidence=evidence
        ) as container:
            print("up", flush=True)
            await trio.to_thread.run_sync(sys.stdin.readline)
            print("status", await container.status(), flush=True)

trio.run(main)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_an_engine_that_ends_in_mid_run(
    own_engine: OwnEngine, base: str, tmp_path: Path, sweep_now, how: signal.Signals
) -> None:
    """The run ends in time with one error that names the engine; later a sweep leaves nothing."""
    argv = [sys.executable, "-c", RUNNER, str(tmp_path / "evidence"), base]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        assert "up\n" == runner.stdout.readline()
        own_engine.end(how)
        began = time.monotonic()
        output, error = runner.communicate("go on\n", timeout=120)
        ended_s = time.monotonic() - began
    left = list((own_engine.home / "state/runs").iterdir())
    absent = sweep_now()
    own_engine.start()
    swept = sweep_now()
    with engine_client(find_engine()) as client:
        containers = client.containers.list(all=True)

    assert "" == output
    assert runner.returncode != 0
    assert "the engine does not answer" in error.splitlines()[-1], error
    assert ended_s < limits.CONTAINER_REMOVE_S
    assert 1 == len(left)
    assert 1 == absent.returncode
    assert "the engine that holds it does not answer" in absent.stderr
    assert 0 == swept.returncode, swept.stdout + swept.stderr
    assert "removed container sleeper-" in swept.stdout
    assert [] == containers
    assert [] == list((own_engine.home / "state/runs").iterdir())


async def test_teardown_of_a_frozen_engine_has_a_deadline(
    own_engine: OwnEngine, base: str, evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that hangs holds up the end of a run for one deadline, and is named as the reason."""
    monkeypatch.setattr(limits, "CONTAINER_REMOVE_S", 2.0)
    spec = ContainerSpec(
        name="sleeper",
        image=base,
        port=1,
        shared_network=True,
        command=("sh", "-c", "echo started; exec sleep 1000"),
    )
    pid = int((own_engine.home / "p").read_text())
    began = 0.0
    with pytest.raises(HarnessError) as refused:  # noqa: PT012 - the error is of leaving the block
        async with (
            open_run(evidence=evidence) as run,
            open_container(run, spec, engine=find_engine(), evidence=evidence) as container,
        ):
            with deadline("see its log", seconds=30):
                while not container.log.read_text():
                    await trio.lowlevel.checkpoint()
            os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
    ended_s = time.monotonic() - began
    os.kill(pid, signal.SIGCONT)

    assert not isinstance(refused.value, Unavailable)
    assert "gave no answer in time" in refused.value.observed
    assert "harness sweep" in refused.value.next_step
    assert ended_s < 10
    assert [run.id] == [path.name for path in (own_engine.home / "state/runs").iterdir()]
