"""Temporal by its providers, used by its own command line."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from harness_core.base.machine import find_program
from harness_core.infrastructure.services._temporal_cli import (
    TemporalRefusedError,
    describe_namespace,
)

pytestmark = pytest.mark.real

KIND = "temporal"


def program() -> Path:
    """Temporal's own command line."""
    return find_program("temporal", variable="HARNESS_TEMPORAL", extra="temporal")


async def test_another_namespace_is_not_served(ours) -> None:
    """Readiness is that of the namespace: a missing one differs from a missing server."""
    async with ours() as service:
        with pytest.raises(TemporalRefusedError) as refused:
            await describe_namespace(service.address, "elsewhere", program=program())

        assert "elsewhere" in refused.value.observed


async def test_what_is_no_temporal_differs_from_no_server(nursery: trio.Nursery) -> None:
    """A server of another protocol listens and is refused; else there is no server."""
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
        absent = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ConnectionRefusedError):
            await describe_namespace(absent, "default", program=program())


async def test_nothing_of_the_user_is_used(
    ours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
