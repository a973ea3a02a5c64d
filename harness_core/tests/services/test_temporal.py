"""Temporal by its providers, used by its own command line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.base.machine import find_program
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import build_images
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import (
    TEMPORAL_ADDRESS_VARIABLE,
    TemporalService,
    open_temporal,
)
from harness_core.infrastructure.services._temporal_cli import (
    TemporalRefusedError,
    describe_namespace,
)
from harness_core.process import Run
from harness_core.tests.conformance.services import ServiceState, check_service

pytestmark = pytest.mark.real

Open = Callable[..., AbstractAsyncContextManager[TemporalService]]


@pytest.fixture
def opened(run: Run, evidence: Evidence, provider: str) -> Open:
    """Opens a server of the chosen provider."""
    address = os.environ.get(TEMPORAL_ADDRESS_VARIABLE) if provider == "external" else None

    def opener(*, evidence: Evidence = evidence):
        return open_temporal(run, evidence=evidence, provider=provider, address=address, say=print)

    return opener


@pytest.fixture
def ours(opened: Open, provider: str) -> Open:
    """The same, where the server is ours to fill and to take away."""
    if provider == "external":
        not_run("options", "an external server is not ours to take away")
    return opened


def program() -> Path:
    """Temporal's own command line."""
    return find_program("temporal", variable="HARNESS_TEMPORAL", extra="temporal")


async def temporal(service: TemporalService, *words: str) -> str:
    """A command on this server."""
    done = await blocking(
        subprocess.run,
        [program(), *words, "--address", service.address, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    return done.stdout


async def answers(service: TemporalService) -> None:
    """One round trip."""
    await service.answers()


async def write_mark(service: TemporalService) -> None:
    """Start a workflow, which waits for a worker."""
    words = ("--type", "Kept", "--task-queue", "nobody", "--workflow-id", "mark")
    await temporal(service, "workflow", "start", *words)


async def read_mark(service: TemporalService) -> bool:
    """Whether it still waits."""
    found = json.loads(await temporal(service, "workflow", "describe", "--workflow-id", "mark"))
    status: str = found["workflowExecutionInfo"]["status"]
    return status == "WORKFLOW_EXECUTION_STATUS_RUNNING"


STATE = ServiceState(write=write_mark, read=read_mark)


async def test_the_chosen_provider_passes_the_conformance_check(
    opened: Open, provider: str, leftovers: Callable[[str], list[str]]
) -> None:
    """A server can be taken away and given back in every way, unless it is somebody else's."""
    await check_service(
        opened,
        ask=answers,
        state=STATE,
        leftovers=partial(leftovers, "temporal"),
        controllable=provider != "external",
    )
    async with opened() as service:
        assert "temporal" == service.name


@pytest.mark.docker
@pytest.mark.requires("docker")
async def test_container_passes_the_conformance_check(
    run: Run, evidence: Evidence, leftovers: Callable[[str], list[str]]
) -> None:
    """A server in a container is taken away and given back like a local one, and leaves nothing."""
    await blocking(build_images, find_engine(), names=("temporal",), say=print)
    await check_service(
        lambda: open_temporal(run, evidence=evidence, provider="container"),
        ask=answers,
        state=STATE,
        leftovers=partial(leftovers, "temporal"),
    )


async def test_external_passes_the_conformance_check(run: Run, evidence: Evidence) -> None:
    """A server of somebody else is used, never taken away, and lives on."""
    async with open_temporal(run, evidence=evidence) as theirs:
        await check_service(
            lambda: open_temporal(
                run, evidence=evidence, provider="external", address=theirs.address
            ),
            ask=answers,
            controllable=False,
        )
        await write_mark(theirs)

        assert await read_mark(theirs)


async def test_another_namespace_is_not_served(ours: Open) -> None:
    """Readiness is that of the namespace: one that is not there is told from a server that is not."""
    async with ours() as service:
        with pytest.raises(TemporalRefusedError) as refused:
            await describe_namespace(service.address, "elsewhere", program=program())

        assert "elsewhere" in refused.value.observed


async def test_two_servers_do_not_meet(ours: Open, evidence: Evidence) -> None:
    """Servers of one run have addresses and workflows of their own."""
    async with (
        ours(evidence=evidence.child("a")) as first,
        ours(evidence=evidence.child("b")) as second,
    ):
        await write_mark(first)
        await write_mark(second)  # the same id: refused where it is taken

        assert first.address != second.address


async def test_what_is_no_temporal_is_told_from_nobody(nursery: trio.Nursery) -> None:
    """A server of another protocol listens and is refused; where nobody listens, there is no server."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]

    async def speak(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with suppress(trio.BrokenResourceError):
            while await stream.receive_some():  # until the other side has read it, and left
                pass

    nursery.start_soon(trio.serve_listeners, speak, listeners)
    with pytest.raises(TemporalRefusedError, match=r"HTTP/1\.1"):
        await describe_namespace(f"127.0.0.1:{port}", "default", program=program())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ConnectionRefusedError):
            await describe_namespace(nobody, "default", program=program())


async def test_nothing_of_the_user_is_used(
    ours: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither keys nor TLS of the shell's settings and of the home's profiles."""
    settings = tmp_path / "temporalio"
    settings.mkdir()
    (settings / "temporal.toml").write_text('[profile.default]\nnamespace = "mars"\ntls = true\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    monkeypatch.setenv("TEMPORAL_API_KEY", "theirs")
    async with ours() as service:
        await service.answers()


@pytest.mark.parametrize("provider", ["container", "external", "local"])
async def test_without_the_command_line_it_is_one_clear_error(
    run: Run, evidence: Evidence, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """It is needed for every provider, and said at once: not when a start has taken too long."""
    monkeypatch.setattr(
        "harness_core.base.machine._programs.shutil.which", lambda *_args, **_more: None
    )
    address = "127.0.0.1:9" if provider == "external" else None
    with pytest.raises(Unavailable, match=r"staging-harness\[temporal\]"):
        async with open_temporal(run, evidence=evidence, provider=provider, address=address):
            pass


async def test_a_dead_external_server_is_one_clear_error(run: Run, evidence: Evidence) -> None:
    """Nobody at the address: the error names it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(Unavailable) as caught:
        async with open_temporal(run, evidence=evidence, provider="external", address=address):
            pass

    assert f"reach the external temporal on {address}" == caught.value.action


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        pytest.param({"provider": "cloud"}, "provider", id="unknown-provider"),
        pytest.param({"address": "h:1"}, "address", id="address-for-local"),
        pytest.param({"namespace": "other"}, "namespace", id="namespace-for-local"),
        pytest.param({"provider": "external"}, "address", id="external-without-address"),
        pytest.param({"provider": "external", "address": "h"}, "address", id="no-port"),
    ],
)
async def test_malformed_arguments_are_refused(
    run: Run, evidence: Evidence, arguments: dict[str, str], key: str
) -> None:
    """Each mistake in the choice of a provider gives one error that names the argument."""
    with pytest.raises(BadInput) as caught:
        async with open_temporal(run, evidence=evidence, **arguments):
            pass

    assert key == caught.value.key
