"""A subject's process in a container has the handle of a process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness_core.base.errors import ChildExited
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.containers import ContainerCommand, open_container_child
from harness_core.ports import lease_port

pytestmark = [pytest.mark.docker, pytest.mark.requires("docker")]


@pytest.fixture
def child(run, engine, base, evidence, tmp_path):
    """Opens one that writes a file and waits; the block begins when it has printed its variable."""
    place = tmp_path / "written"
    place.mkdir()
    script = f'echo in >{place}/file; echo "$WORD"; trap "exit 3" TERM; while :; do sleep 0.1; done'

    @asynccontextmanager
    async def opened():
        with lease_port() as lease:
            command = ContainerCommand(
                name="subject",
                image=base,
                argv=("sh", "-c", script),
                env={"WORD": "hello"},
                write=[place],
                port=lease.port,
            )
            async with open_container_child(
                run, command, engine=engine, evidence=evidence, grace_s=5
            ) as made:

                async def printed() -> bool:
                    return ("hello",) == made.tail()

                with deadline("see its output", seconds=10):
                    await until(printed)
                yield made

    return opened


async def test_it_is_frozen_and_asked_to_end(child, tmp_path):
    """It runs with its environment and its directory, survives a pause, and ends when asked."""
    async with child() as subject:
        alive = Path(f"/proc/{subject.pid}").is_dir()
        subject.pause()
        paused = await subject._container.status()
        subject.resume()

    assert (True, "paused") == (alive, paused)
    assert "in\n" == (tmp_path / "written/file").read_text()
    assert (3, False) == (subject.stop_report.returncode, subject.stop_report.killed)
    assert "hello\n" == subject.log.read_text()


async def test_a_crash_is_that_of_a_signal(child):
    """Nothing outlives it, and whoever needs it gets its end and its last lines."""
    async with child() as subject:
        outlived = await subject.crash()
        with pytest.raises(ChildExited) as ended:
            subject.check("send a message")

    assert ((), -9) == (outlived, ended.value.returncode)
    assert ("hello",) == ended.value.tail
