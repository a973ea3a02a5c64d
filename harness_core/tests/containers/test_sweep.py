"""What a dead run left in an engine goes, and nothing else does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from harness_core.base import limits
from harness_core.base.wait import until_blocking
from harness_core.infrastructure.containers import (
    engine_client,
    run_labels,
    sweep_network,
    sweep_volume,
)
from harness_core.process import RunLedger, open_run

pytestmark = [pytest.mark.docker, pytest.mark.requires("docker")]

#: Opens a run, starts containers for ever, each in the middle of its start when it is killed.
RUNNER = """
import sys, trio
from pathlib import Path
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.infrastructure.services import open_postgres

async def main():
    evidence = open_evidence(Path(sys.argv[1]))
    async with open_run(evidence=evidence) as run, trio.open_nursery() as nursery:
        async def hold(number):
            async with open_postgres(
                run, evidence=evidence.child(str(number)), provider="container"
            ):
                await trio.sleep_forever()
        for number in range(4):
            nursery.start_soon(hold, number)

trio.run(main)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state directory of this test's own."""
    path = tmp_path / "state"
    monkeypatch.setenv("HARNESS_STATE_DIR", str(path))
    return path


@pytest.mark.parametrize("moment", ["create", "start", "several"])
def test_sigkill_in_mid_start_leaves_nothing(images, state, tmp_path, names, sweep_now, moment):
    """Whenever the runner dies, the sweep finds every container that the engine still made."""
    before = names()
    with subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path / "evidence")]) as runner:
        try:
            until_blocking(
                lambda: reached(moment, state, names() - before), seconds=60, action="see a start"
            )
        finally:
            runner.send_signal(signal.SIGKILL)
    swept = sweep_now()

    assert 0 == swept.returncode, swept.stdout + swept.stderr
    assert "1 dead run(s) swept" in swept.stdout
    assert before == names()
    assert [] == list((state / "runs").iterdir())


def reached(moment, state, made):
    """Whether the runner is where it is to be killed."""
    if moment == "create":  # the ledger names one; the engine may not have heard of it
        return any('"container"' in path.read_text() for path in state.glob("runs/*/ledger.jsonl"))
    return len(made) >= (1 if moment == "start" else 4)


def test_a_killed_runner_loses_no_log(images, state, tmp_path, sweep_now):
    """What containers had written when the runner was killed is in the evidence."""
    logs = tmp_path / "evidence"
    serving = "database system is ready to accept connections"

    def serving_ones() -> list[str]:
        return [path.name for path in logs.rglob("postgres-*.log") if serving in path.read_text()]

    with subprocess.Popen([sys.executable, "-c", RUNNER, str(logs)]) as runner:
        try:
            until_blocking(
                lambda: len(serving_ones()) == 4, seconds=60, action="see four servers' logs"
            )
        finally:
            runner.send_signal(signal.SIGKILL)
    swept = sweep_now()

    assert 0 == swept.returncode, swept.stdout + swept.stderr
    assert 4 == len(serving_ones())


def dead_run(state):
    """A ledger whose owner is gone: a process that made it and ended."""
    made = subprocess.run(
        [
            sys.executable,
            "-c",
            "from harness_core.process import RunLedger, open_run; print(RunLedger.create().id)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return RunLedger(state / "runs" / made.stdout.strip())


@pytest.fixture
def whose(engine, base, state, names):
    """Containers, one of a dead run and others that look like it; and that run's ledger."""
    ledger = dead_run(state)
    ours = run_labels(ledger.id)
    labelled = {
        "nobodys": {},
        "live": run_labels("another-run"),
        "elsewhere": ours | {"staging-harness.host": "another-machine"},
        "unlisted": ours,
        "ours": ours,
    }
    with engine_client(engine) as client:
        tag = str(os.getpid())
        made = {
            name: client.containers.create(base, "true", name=f"sweep-{name}-{tag}", labels=labels)
            for name, labels in labelled.items()
        }
        for name, container in made.items():
            if name != "unlisted":
                entry = {"name": container.name, "engine": engine.url, "run": ledger.id, "at": 0.0}
                ledger.record("container", **entry)
        try:
            yield (
                ledger,
                lambda: {name for name, container in made.items() if container.name in names()},
            )
        finally:
            for container in made.values():
                if container.name in names():
                    container.remove(force=True)


FOREIGN = {"nobodys", "live", "elsewhere", "unlisted"}


def test_foreign_containers_survive(whose, sweep_now):
    """A container that is not of that run, by its labels, its machine or the ledger, stays."""
    ledger, left = whose
    swept = sweep_now()

    assert 0 == swept.returncode, swept.stdout + swept.stderr
    assert left() == FOREIGN
    assert f"removed container sweep-ours-{os.getpid()}" in swept.stdout
    assert not ledger.directory.exists()


async def test_the_next_run_sweeps_containers_too(whose, evidence):
    """A run removes what dead ones left in an engine without being asked, and nothing else."""
    ledger, left = whose
    async with open_run(evidence=evidence):
        pass  # so short a run waits for it

    assert left() == FOREIGN
    assert not ledger.directory.exists()
    assert f"removed container sweep-ours-{os.getpid()}\n" in (
        evidence.path / "sweep.log"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("engine_is", ["gone", "silent"])
async def test_no_engine_keeps_a_run_waiting(state, evidence, tmp_path, engine_is):
    """An engine that is gone, or accepts and says nothing, is left to a later sweep."""
    ledger = dead_run(state)
    path = tmp_path / "engine.sock"
    ledger.record("container", name="x", engine=f"unix://{path}", run=ledger.id, at=0.0)
    with socket.socket(socket.AF_UNIX) as silent:
        if engine_is == "silent":
            silent.bind(str(path))
            silent.listen()
        began = time.monotonic()
        async with open_run(evidence=evidence) as run:
            opened_s = time.monotonic() - began
            run.directory("work")
        closed_s = time.monotonic() - began

    assert opened_s < 1
    assert closed_s < limits.SWEEP_BESIDE_S + 1
    assert ledger.path.is_file()


def test_networks_and_volumes_of_a_dead_run_go(engine, base, state):
    """They carry the same labels and are held to the same rule."""
    with engine_client(engine) as client:
        name = f"sweep-{os.getpid()}"
        client.networks.create(name, labels=run_labels("dead"))
        client.volumes.create(name, labels=run_labels("dead"))
        client.volumes.create(f"{name}-foreign", labels={})
        try:
            entry = {"name": name, "engine": engine.url, "run": "dead", "at": time.time()}
            swept = (sweep_network(entry), sweep_volume(entry))
            foreign = sweep_volume(entry | {"name": f"{name}-foreign"})
            left = {each.name for each in client.volumes.list()}
        finally:
            client.volumes.get(f"{name}-foreign").remove()

    assert (f"network {name}", f"volume {name}") == swept
    assert "" == foreign
    assert f"{name}-foreign" in left


def test_a_silent_engine_keeps_the_ledger(state, sweep_now):
    """What cannot be looked for is reported, and looked for again next time."""
    ledger = dead_run(state)
    url = f"unix://{state}/gone.sock"
    ledger.record("container", name="x", engine=url, run=ledger.id, at=0.0)
    swept = sweep_now()

    assert 1 == swept.returncode
    assert "gone.sock" in swept.stderr
    assert ledger.path.is_file()
