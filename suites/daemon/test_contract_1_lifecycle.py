"""Contract 1: the daemon binds its port, greets every client, and leaves nothing when it stops."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager

import pytest
import trio

from harness_core.base.errors import ChildExited, NotReady
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.ports import listeners
from harness_core.process import Child
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.messages import ask, expect_health, expect_refusal, request, user_input
from suites.daemon.wire import Keyword, RemoteProtocolError, Violation, open_connection

pytestmark = pytest.mark.covers("CONTRACT-1-START")

#: From the request to the end of the process, on a machine with nothing else to do; the reference
#: gives requests under way 2 s.
STOP_S = 10.0


@asynccontextmanager
async def starting(opening):
    """A daemon whose failure to start is this contract's failure, not the harness's."""
    try:
        async with opening as daemon:
            yield daemon
    except (NotReady, ChildExited) as error:
        raise AssertionError(f"contract 1: the daemon did not start: {error}") from error


async def gone(daemon: Daemon) -> None:
    """Wait until the process that listened is gone, then see who listens."""

    async def closed() -> bool:
        return not listeners(port=daemon.port)

    with trio.move_on_after(patience(STOP_S)):
        await until(closed)

    assert [] == [f"pid {row.pid}: {row.command}" for row in listeners(port=daemon.port)], (
        f"port {daemon.port} is still listened on after the stop"
    )
    with pytest.raises(RemoteProtocolError) as refused:
        async with open_connection(daemon.port):
            pass

    assert Violation.CLOSED is refused.value.violation


async def expect_refused_start(second: Child, port: int) -> None:
    """A daemon that was started on a port which is taken ends, with an error that names the port."""
    with trio.move_on_after(patience(STOP_S)):
        await second.wait()

    assert second.returncode not in {0, None}, "a second daemon took a busy port"
    assert str(port) in "\n".join(second.tail()), second.tail()


async def test_handshake(daemon: Daemon) -> None:
    """Every client is greeted first, by a handshake with a version and a list of capabilities."""
    async with daemon.connect(greeted=False) as connection:
        greeting = await connection.receive("the handshake", seconds=5)

    assert greeting.get("TYPE") == Keyword("EVENT"), greeting.payload
    assert greeting.get("PAYLOAD", "ACTION") == Keyword("HANDSHAKE"), greeting.payload
    version = greeting.get("PAYLOAD", "VERSION")

    assert isinstance(version, str), f"the handshake has no :VERSION text: {greeting.payload}"
    assert any(character.isdigit() for character in version), f"the version is {version!r}"
    capabilities = greeting.get("PAYLOAD", "CAPABILITIES")

    assert isinstance(capabilities, tuple), f"no list of :CAPABILITIES: {greeting.payload}"


async def test_two_clients_are_greeted_alike(daemon: Daemon) -> None:
    """A second client is greeted while the first is there, with the same words."""
    async with daemon.connect(greeted=False) as one, daemon.connect(greeted=False) as two:
        first = await one.receive("the handshake", seconds=5)
        second = await two.receive("the handshake of a second client", seconds=5)

    assert first.payload == second.payload


@pytest.mark.capability("upper-case-prefix", "bare-frames")
async def test_frames_as_they_are_written(daemon: Daemon) -> None:
    """What the daemon sends is six upper-case digits, so many characters, and nothing between."""
    async with await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream:
        await stream.send_all(b"000015(:TYPE :HEALTH-CHECK)")
        received = b""
        with deadline("read two frames", seconds=5, observed=lambda: f"read {received!r}"):
            while received.count(b"HEALTH-RESPONSE") < 1 or not received.endswith(b")"):
                received += await stream.receive_some(65536)
    text = received.decode()
    frames = []
    while text:
        prefix, length = text[:6], int(text[:6], 16)

        assert f"{length:06X}" == prefix
        frames.append(text[6 : 6 + length])
        text = text[6 + length :]

    assert 2 == len(frames), frames
    assert all(frame.startswith("(") and frame.endswith(")") for frame in frames), frames


async def test_listens_on_loopback_only(daemon: Daemon) -> None:
    """The daemon, which runs commands, listens on loopback and on one port."""
    rows = [row for row in listeners() if row.pid == daemon.pid]

    assert [(daemon.port, True)] == [(row.port, row.loopback) for row in rows]


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
async def test_stop_by_signal(start, number: signal.Signals) -> None:
    """Asked by a signal, it ends by itself: clients see the end, the port is closed, no process is left."""
    async with starting(start()) as daemon:
        async with daemon.connect() as connection:
            daemon.child.signal(number)
            with trio.move_on_after(patience(STOP_S)):
                await daemon.child.wait()

            assert 0 == daemon.child.returncode, f"contract 1: no clean end within {STOP_S:g} s"
            await connection.receive_until_closed(seconds=2)
        await gone(daemon)
        report = await daemon.child.stop()

        assert () == report.strays, "processes outlived the daemon"


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.capability("shutdown-command")
async def test_stop_by_command(start) -> None:
    """The shutdown request is acknowledged, then the daemon ends as by a signal."""
    async with starting(start()) as daemon:
        async with daemon.connect() as connection:
            answer = await ask(connection, request("DAEMON", "SHUTDOWN"))

            assert answer.get("PAYLOAD", "SENSOR") == Keyword("SHUTTING-DOWN"), answer.payload
            await connection.receive_until_closed(seconds=STOP_S)
        with trio.move_on_after(patience(STOP_S)):
            await daemon.child.wait()

        assert 0 == daemon.child.returncode
        await gone(daemon)


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.capability("shutdown-command")
@pytest.mark.knob("refuse_shutdown")
async def test_shutdown_can_be_forbidden(start) -> None:
    """Where clients may not stop it, the request is refused and the daemon goes on."""
    settings = Settings(knobs={"refuse_shutdown": 1})
    async with starting(start(settings)) as daemon, daemon.connect() as connection:
        refusal = await ask(connection, request("DAEMON", "SHUTDOWN"))

        expect_refusal(refusal, connection)
        expect_health(await daemon.health())


@pytest.mark.covers("CONTRACT-1-STOP")
async def test_starts_again_where_it_was_killed(start) -> None:
    """SIGKILL in the middle of a conversation leaves nothing that hinders the next start."""
    async with starting(start()) as daemon:
        async with daemon.connect() as connection:
            await connection.send(user_input("ping"))
            daemon.kill()
            await daemon.child.wait()
        await gone(daemon)
        before = daemon.child.pid
        await daemon.restart()

        assert before != daemon.child.pid
        expect_health(await daemon.health())


async def test_a_busy_port_is_refused(daemon: Daemon, run, subject) -> None:
    """A second daemon on the same port says so and ends, and the first does not notice."""
    argv = subject.command(port=daemon.port, home=str(daemon.home), root=str(daemon.root))
    async with run.child(argv, name="second", env=daemon.environment()) as second:
        await expect_refused_start(second, daemon.port)
    expect_health(await daemon.health())
