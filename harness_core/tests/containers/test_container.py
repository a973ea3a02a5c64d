"""One container of a run: whose it is, what goes wrong with it, and that nothing of it is left."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import pytest
import trio

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.errors import ChildExited, HarnessError, NotReady, Unavailable
from harness_core.base.wait import deadline
from harness_core.infrastructure.containers import (
    ContainerSpec,
    ImageChoice,
    engine_client,
    host_id,
    image_tag,
    open_container,
    provide_image,
    sweep_container,
)
from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import open_postgres
from harness_core.infrastructure.services._in_container import ContainerServer
from harness_core.infrastructure.services._postgres_protocol import greet
from harness_core.infrastructure.services._readiness import Readiness
from harness_core.process import open_run, state_root, sweep

pytestmark = [pytest.mark.docker, pytest.mark.requires("docker")]


@asynccontextmanager
async def run_with_postgres(evidence):
    """A run of its own, and a server in a container of it."""
    async with (
        open_run(evidence=evidence) as run,
        open_postgres(run, evidence=evidence, provider="container") as service,
    ):
        yield run, service


SLEEPER = ("sh", "-c", "trap 'exit 0' TERM; echo started; while :; do sleep 0.1; done")
CONFLICT = b'{"message":"Conflict. The container name \\"/x\\" is already in use by container y"}'


def conflict() -> bytes:
    """An engine's answer to a name that is taken."""
    head = f"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: {len(CONFLICT)}"
    return f"{head}\r\n\r\n".encode() + CONFLICT


def sleeper(base: str, **changes: object) -> ContainerSpec:
    """A container that does nothing until it is asked to end."""
    return ContainerSpec(
        **{"name": "sleeper", "image": base, "port": 1, "command": SLEEPER} | changes
    )


async def test_it_says_whose_it_is(run, engine, base, evidence):
    """Labels name run, machine, process and its start; the ledger names the container."""
    async with open_container(run, sleeper(base), engine=engine, evidence=evidence) as container:
        with engine_client(engine) as client:
            labels = client.containers.get(container.name).labels
        entries = [entry for entry in run.ledger.entries() if entry["kind"] == "container"]

    assert (run.id, host_id(), str(os.getpid())) == (
        labels["staging-harness.run"],
        labels["staging-harness.host"],
        labels["staging-harness.pid"],
    )
    assert int(labels["staging-harness.start"]) > 0
    assert [(container.name, engine.url)] == [(row["name"], row["engine"]) for row in entries]


async def test_its_port_is_published_to_this_machine_alone(run, engine, base, evidence):
    """On loopback, when the engine is here: the server's password is not the only guard."""
    async with open_container(run, sleeper(base), engine=engine, evidence=evidence) as container:
        with engine_client(engine) as client:
            published = client.containers.get(container.name).attrs["HostConfig"]["PortBindings"]

    assert {"1/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(container.port)}]} == published


async def test_its_log_is_kept_and_it_is_gone(run, engine, base, evidence, names):
    """At the end its output is in the evidence, and the engine knows it no more."""
    async with open_container(run, sleeper(base), engine=engine, evidence=evidence) as container:
        while not await container.tail():
            await trio.lowlevel.checkpoint()
        assert container.name in names()

    assert "started\n" == (evidence.path / f"{container.name}.log").read_text()
    assert container.name not in names()


async def test_its_log_is_written_while_it_runs(run, engine, base, evidence):
    """Every life of it is in the log, once and in order, without waiting for its end."""
    async with open_container(run, sleeper(base), engine=engine, evidence=evidence) as container:
        await logged(container, "started\n")
        await container.kill()
        await container.start()
        await logged(container, "started\nstarted\n")
        await container.stop()
        await container.start()
        await logged(container, "started\nstarted\nstarted\n")


async def logged(container, expected):
    """Wait until the log reads exactly so."""
    with deadline("read the log", seconds=10, observed=container.log.read_text):
        while container.log.read_text() != expected:
            await trio.lowlevel.checkpoint()


async def test_secrets_are_in_no_log(run, engine, base, evidence):
    """What is registered as a secret is replaced on its way, also in the last, unfinished line."""
    evidence.redactor.add("a-registered-secret")
    command = ("sh", "-c", "echo it is a-registered-secret; printf 'and a-registered-secret'")
    async with open_container(
        run, sleeper(base, command=command), engine=engine, evidence=evidence
    ) as container:
        await logged(container, "it is [redacted]\n")

    assert "it is [redacted]\nand [redacted]" == container.log.read_text()


async def test_a_log_is_bounded(run, engine, base, evidence, monkeypatch):
    """A container that floods its log fills no disk; its last lines are kept."""
    monkeypatch.setattr(limits, "CONTAINER_LOG_BYTES", 1000)
    command = ("sh", "-c", "yes | head -n 100000; echo the very end; exec sleep 1000")
    async with open_container(
        run, sleeper(base, command=command), engine=engine, evidence=evidence
    ) as container:
        while "the very end" not in await container.tail():
            await trio.lowlevel.checkpoint()

    log = container.log.read_text()
    assert log.startswith("y\n" * 500)
    assert log.endswith("y\ny\nthe very end\n")
    assert "… (199013 bytes more; the last lines of them:)" in log
    assert len(log) < 1200


async def test_pause_and_kill_act_on_the_container(run, engine, base, evidence):
    """What the engine says of it follows what is done to it."""
    async with open_container(run, sleeper(base), engine=engine, evidence=evidence) as container:
        await container.pause()
        paused = await container.status()
        await container.resume()
        await container.kill()
        killed = (await container.status(), await container.exit_code())
        await container.start()

        assert "paused" == paused
        assert ("exited", 137) == killed
        assert "running" == await container.status()


async def test_a_missing_image_is_one_clear_error(engine, monkeypatch):
    """An image that is neither there nor can be pulled is named, with the way to get one."""
    monkeypatch.setenv("HARNESS_POSTGRES_IMAGE", "registry.invalid/nothing:1")
    choice = ImageChoice(variable="HARNESS_POSTGRES_IMAGE", prepared=(), public="postgres:17")
    with pytest.raises(Unavailable) as refused:
        await blocking(provide_image, engine, choice)

    assert (
        "registry.invalid/nothing:1 is not at hand and cannot be pulled" in refused.value.observed
    )
    assert "harness images build" in refused.value.next_step


async def test_a_full_disk_is_one_clear_error(run, engine, images, evidence):
    """A server that finds no room for its data is reported so, with its last words."""
    spec = ContainerSpec(
        name="postgres",
        image=image_tag("postgres"),
        port=5432,
        env={"POSTGRES_PASSWORD": "x", "PGDATA": "/small/data"},
        tmpfs={"/small": "size=8m,mode=1777"},
    )
    readiness = Readiness(probe=greet, seconds=30)
    with pytest.raises(ChildExited) as refused:
        async with open_container(run, spec, engine=engine, evidence=evidence) as container:
            await ContainerServer(container, name="postgres", readiness=readiness).ready()

    assert "its disk is full" in refused.value.observed
    assert any("No space left on device" in line for line in refused.value.tail)


async def test_a_name_conflict_is_met_with_another_name(run, relay, base, evidence):
    """The engine refuses the first name: the start succeeds with a second one."""
    refusals = [conflict()]
    relay.answer = lambda line: (
        refusals.pop() if refusals and "/containers/create" in line else None
    )
    async with open_container(
        run, sleeper(base), engine=find_engine(), evidence=evidence
    ) as container:
        assert "running" == await container.status()

    assert 2 == sum("/containers/create" in line for line in relay.seen)


async def test_starts_are_tried_a_bounded_number_of_times(run, relay, base, evidence):
    """An engine that refuses every name is reported after the last attempt, in its words."""
    relay.answer = lambda line: conflict() if "/containers/create" in line else None
    with pytest.raises(HarnessError, match="already in use by container"):
        async with open_container(run, sleeper(base), engine=find_engine(), evidence=evidence):
            pass

    assert limits.CONTAINER_STARTS == sum("/containers/create" in line for line in relay.seen)


async def test_an_engine_stopped_in_mid_run_is_one_clear_error(  # noqa: PLR0917 - fixtures
    relay, engine, images, evidence, names, tmp_path, monkeypatch
):
    """The service says that the engine is gone; what it left is swept once the engine is back."""
    # Its ledger stays, since its engine (the relay) is never back: not among the user's own runs.
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    before = names()
    with pytest.raises(Unavailable) as refused:  # noqa: PT012 - the error is of the inner line
        async with run_with_postgres(evidence) as (run, service):
            relay.stop()
            await service.stop()

    assert "the engine does not answer" in refused.value.observed
    left = names() - before
    assert 1 == len(left)
    entry = {"name": left.pop(), "engine": engine.url, "run": run.id}
    assert f"container {entry['name']}" == sweep_container(entry)
    assert before == names()


# The call that is given up keeps its socket until the interpreter collects it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_teardown_has_a_deadline_and_hands_over(  # noqa: PLR0917 - fixtures
    relay, engine, base, evidence, monkeypatch, names, tmp_path
):
    """An engine that never answers a removal: reported in time, kept in the ledger, then swept."""
    monkeypatch.setattr(limits, "CONTAINER_REMOVE_S", 0.5)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    relay.answer = lambda line: b"" if line.startswith("DELETE") else None
    with pytest.raises(HarnessError) as refused:
        async with (
            open_run(evidence=evidence) as run,
            open_container(
                run, sleeper(base), engine=find_engine(), evidence=evidence
            ) as container,
        ):
            pass
    kept = [path.name for path in (state_root() / "runs").iterdir()]

    assert f"remove container {container.name}" == refused.value.action
    assert "harness sweep" in refused.value.next_step
    assert [run.id] == kept
    assert container.name in names()
    entry = {"name": container.name, "engine": engine.url, "run": run.id}
    assert f"container {container.name}" == await blocking(sweep_container, entry)
    # The run's owner is this process, which lives: only its end makes the run a dead one.
    assert (run.id,) == sweep().live_runs


@pytest.mark.slow
async def test_twenty_starts_at_once(run, images, evidence, engine, names):
    """Twenty servers started at once serve, or fail with a reason that names what happened."""
    outcomes: list[str] = []
    before = names()

    async def start(number: int) -> None:
        try:
            async with open_postgres(
                run, evidence=evidence.child(str(number)), provider="container"
            ) as service:
                async with Database(service.url()) as database:
                    await database.rows("select 1")
                outcomes.append("serves")
        except (NotReady, Unavailable, ChildExited) as error:
            outcomes.append(str(error))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(start, number)

    assert 20 == len(outcomes)
    assert [] == [
        outcome for outcome in outcomes if outcome != "serves" and not outcome.startswith("cannot ")
    ]
    assert 0 < outcomes.count("serves")
    assert before == names()
