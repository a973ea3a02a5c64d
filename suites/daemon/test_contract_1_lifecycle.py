"""Contract 1: the daemon binds its port, greets every client, and leaves nothing when it stops."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.front.skips import not_run
from harness_core.ports import listeners
from harness_core.process import Child, command_line
from suites.daemon.daemon import Daemon, Settings, health_on
from suites.daemon.messages import ask, expect_health, expect_refusal, request, shell, user_input
from suites.daemon.vitals import below, listening
from suites.daemon.wire import (
    Connection,
    FrameDecoder,
    Keyword,
    RemoteProtocolError,
    Violation,
    encode_frame,
    lookup,
    open_connection,
    print_form,
    read_form,
)

pytestmark = pytest.mark.covers("CONTRACT-1-START")

#: From the start of a second daemon to what it has to say, on a machine with nothing else to do.
STOP_S = 10.0

#: Daemons that begin to start at the same time.
STARTS = 4


async def gone(daemon: Daemon) -> None:
    """Wait until the process that listened is gone, then see who listens."""

    async def closed() -> bool:
        return not listeners(port=daemon.port)

    # In full: its subject file says how long a product may take to stop.
    with trio.move_on_after(patience(daemon.stop_s)):
        await until(closed)

    left = [f"pid {row.pid}: {row.command}" for row in listeners(port=daemon.port)]

    assert not left, f"contract 1: port {daemon.port} is still listened on after the stop: {left}"
    with pytest.raises(RemoteProtocolError) as refused:
        async with open_connection(daemon.port):
            pass

    assert Violation.CLOSED is refused.value.violation, (
        f"contract 1: after the stop a connection is refused, found {refused.value}"
    )
    still = [path for path in of_this_life(daemon.home, daemon.root) if path[1] == str(daemon.port)]

    assert not still, f"contract 1: files of its life have outlived the daemon: {still}"
    running = below_home(daemon.home)

    assert not running, f"contract 1: processes have outlived the daemon: {running}"


def of_this_life(home: Path, root: Path) -> list[tuple[str, str]]:
    """Files that say where a daemon is: their path, and the port or process in them; sockets too."""
    found: list[tuple[str, str]] = []
    for path in sorted(home.rglob("*")):
        if root in path.parents:
            continue
        if path.is_socket():
            found.append((str(path), "a socket"))
        elif path.is_file() and path.stat().st_size < 64:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            if text.isdigit():
                found.append((str(path), text))
    return found


def below_home(home: Path) -> list[str]:
    """Processes that work in a daemon's home, whoever their parent and whatever their group is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            where = (entry / "cwd").readlink()
        except OSError:
            continue
        if where == home or home in where.parents:
            found.append(f"pid {entry.name}: {' '.join(command_line(int(entry.name)))}")
    return found


async def expect_refused_start(second: Child, port: int) -> None:
    """A daemon that was started on a port which is taken ends, with an error that names the port."""
    with trio.move_on_after(patience(STOP_S)):
        await second.wait()

    output = "\n".join(second.tail())

    assert second.returncode not in {0, None}, (
        f"contract 1: a second daemon on a busy port ends with an error, found status "
        f"{second.returncode}:\n{output}"
    )
    assert str(port) in output, f"contract 1: the error names the port {port}, found:\n{output}"


async def test_it_comes_up(daemon: Daemon) -> None:
    """It is set up and started, listens and greets; what it does not reach is named, with its last words."""
    found = [row.port for row in listeners() if row.pid == daemon.pid]

    assert daemon.port in found, (
        f"contract 1: it listens on the port that it is reached at, {daemon.port}; found {found}"
    )


async def test_handshake(daemon: Daemon) -> None:
    """Every client is greeted first, by a handshake with a version and a list of capabilities."""
    async with daemon.connect(greeted=False) as connection:
        greeting = await connection.receive("the handshake", seconds=5)

    found = greeting.get("TYPE"), greeting.get("PAYLOAD", "ACTION")

    assert found == (Keyword("EVENT"), Keyword("HANDSHAKE")), (
        f"contract 1: expected a handshake, found {greeting.payload}"
    )
    version = greeting.get("PAYLOAD", "VERSION")

    assert isinstance(version, str), f"the handshake has no :VERSION text: {greeting.payload}"
    assert any(character.isdigit() for character in version), f"the version is {version!r}"
    capabilities = greeting.get("PAYLOAD", "CAPABILITIES")

    assert isinstance(capabilities, tuple), f"no list of :CAPABILITIES: {greeting.payload}"
    assert capabilities, f"contract 1: the list of :CAPABILITIES is empty: {greeting.payload}"
    assert len(set(capabilities)) == len(capabilities), (
        f"contract 1: a capability is listed twice: {greeting.payload}"
    )


async def test_two_clients_are_greeted_alike(daemon: Daemon) -> None:
    """A second client is greeted while the first is there, with the same words."""
    async with daemon.connect(greeted=False) as one, daemon.connect(greeted=False) as two:
        first = await one.receive("the handshake", seconds=5)
        second = await two.receive("the handshake of a second client", seconds=5)

    assert first.payload == second.payload, (
        f"contract 1: the first client was greeted with {first.payload}, the second with "
        f"{second.payload}"
    )


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

        assert f"{length:06X}" == prefix, (
            f"contract 1: a prefix is upper case: expected {length:06X}, found {prefix}"
        )
        frames.append(text[6 : 6 + length])
        text = text[6 + length :]

    assert 2 == len(frames), f"contract 1: expected two frames, found {frames}"
    assert all(frame.startswith("(") and frame.endswith(")") for frame in frames), (
        f"contract 1: nothing stands between frames, found {frames}"
    )


async def test_listens_on_loopback_only(daemon: Daemon) -> None:
    """The daemon, which runs commands, listens on loopback and on one port."""
    rows = [row for row in listeners() if row.pid == daemon.pid]

    found = [(row.port, "loopback" if row.loopback else "any address") for row in rows]

    assert found == [(daemon.port, "loopback")], (
        f"contract 1: it listens on loopback port {daemon.port} alone, found {found}"
    )


@pytest.mark.starts_product
@pytest.mark.covers("CONTRACT-1-START", "CONTRACT-1-STOP")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
async def test_stop_by_signal(start, number: signal.Signals) -> None:
    """Asked by a signal, it ends by itself: clients see the end, the port is closed, no process is left.

    Clients are at that moment silent, within a frame, and in one life waiting for commands that
    take longer, one of which has a process group of its own where it is not refused; the second
    life of a daemon ends as the first, and so does the third.
    """
    async with start() as daemon:
        ports = set()
        for life in range(1, 4 if number is signal.SIGTERM else 2):
            if life > 1:
                await daemon.start()
            ports.add(daemon.port)
            async with (
                daemon.connect() as silent,
                daemon.connect() as midway,
                daemon.connect() as waiting,
                daemon.connect() as grouped,
            ):
                await midway.send_bytes(b"000100(:TYPE")
                if life == 2:
                    await waiting.send(shell("sleep 3142"))
                    await at_work(daemon, "sleep 3142")
                    await grouped.send(shell("timeout 3143 sleep 3143; echo"))
                    with suppress(AssertionError):
                        await at_work(daemon, "sleep 3143", seconds=2)
                daemon.signal(number)
                with trio.move_on_after(patience(daemon.stop_s)):
                    await daemon.child.wait()

                assert 0 == daemon.child.returncode, (
                    f"contract 1: life {life}: expected a clean end within {daemon.stop_s:g} s, found "
                    f"status {daemon.child.returncode}:\n" + "\n".join(daemon.child.tail())
                )
                for client in (silent, midway, waiting, grouped):
                    await ended(client)
            await gone(daemon)
            report = await daemon.stop()

            assert not report.strays, (
                f"contract 1: life {life}: processes outlived the daemon: {report.strays}"
            )


async def ended(client: Connection) -> None:
    """Wait until a client sees the end, after whole frames or none; a reset is an end too."""
    try:
        await client.receive_until_closed(seconds=2)
    except RemoteProtocolError as error:
        if error.violation is not Violation.CLOSED:
            raise


async def at_work(daemon: Daemon, words: str, *, seconds: float = STOP_S) -> None:
    """Wait until a command of the daemon runs that has words in its command line."""

    async def runs() -> bool:
        return any(" ".join(command_line(pid)).startswith(words) for pid in below(daemon.pid))

    with trio.move_on_after(patience(seconds)):
        await until(runs)
        return

    raise AssertionError(f"contract 5: a safe command with {words} does not run")


#: Characters of an answer that does not fit between a daemon and a client that reads little.
ANSWER = 60_000


@pytest.mark.covers("CONTRACT-1-STOP", "CONTRACT-3-FRAMES")
@pytest.mark.capability("echo")
async def test_a_stop_cuts_no_answer(start, token: str) -> None:
    """An answer that has begun when the daemon is asked to stop comes whole to a client that goes on reading.

    A machine that does much else may make that client slow: what is cut is tried again.
    """
    found = ""
    async with start() as daemon:
        most = int(daemon.subject.table("bounds").get("frame_characters", ANSWER + 200)) - 200
        text = f"<{token}" + "日" * min(ANSWER, most) + f"{token}>"
        for life in range(1, 4):
            if life > 1:
                await daemon.restart()
            found = await answer_through_a_stop(daemon, daemon.echo_of(text))
            if text in found:
                return

    raise AssertionError(
        f"contract 1: an answer that has begun comes whole, whatever the daemon is asked meanwhile: "
        f"expected {len(text)} characters, found {found[:300]!r}, each time"
    )


async def answer_through_a_stop(daemon: Daemon, text: str) -> str:
    """What answers a text of which the daemon is asked to stop when the answer has begun, or how far it got."""
    sock = trio.socket.socket()
    # Of small segments for a small window the kernel keeps less than such an answer is long.
    sock.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_MAXSEG, 1_400)
    sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4_096)
    await sock.connect(("127.0.0.1", daemon.port))
    decoder = FrameDecoder()
    payloads: list[str] = []
    async with trio.SocketStream(sock) as stream:

        async def read() -> bool:
            """Whether there was more."""
            with suppress(trio.BrokenResourceError):
                if data := await stream.receive_some(4_096):
                    decoder.feed(data)
                    while (payload := decoder.next_payload()) is not None:
                        payloads.append(payload)
                    return True
            return False

        async def refuses() -> bool:
            return not listeners(port=daemon.port)

        with trio.move_on_after(patience(STOP_S)):
            await read()
            await stream.send_all(encode_frame(print_form(user_input(text))))
            await read()
            daemon.signal(signal.SIGTERM)
            # It has heard it then; one that listens to its end is given a moment.
            with trio.move_on_after(1):
                await until(refuses)
            while await read():
                pass
    whole = payloads[1:]
    return str(lookup(read_form(whole[0]), "PAYLOAD", "TEXT")) if whole else decoder.progress


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.capability("shutdown-command")
async def test_stop_by_command(start, subject) -> None:
    """The shutdown request is acknowledged, then the daemon ends as by a signal.

    It is allowed, in so many words where there is a setting for it.
    """
    knobs = {name: 1 for name in ("allow_shutdown",) if name in subject.table("knobs")}
    async with start(Settings(knobs=knobs)) as daemon:
        async with daemon.connect() as connection:
            answer = await ask(connection, request("DAEMON", "SHUTDOWN"))

            assert answer.get("PAYLOAD", "SENSOR") == Keyword("SHUTTING-DOWN"), (
                f"contract 1: the shutdown request is acknowledged, found {answer.payload}"
            )
            await connection.receive_until_closed(seconds=daemon.stop_s)
        with trio.move_on_after(patience(daemon.stop_s)):
            await daemon.child.wait()

        assert 0 == daemon.child.returncode, (
            f"contract 1: it ends with status 0 when asked to, found {daemon.child.returncode}"
        )
        await gone(daemon)


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.capability("shutdown-command")
@pytest.mark.knob("refuse_shutdown")
async def test_shutdown_can_be_forbidden(start) -> None:
    """Where clients may not stop it, the request is refused and the daemon goes on."""
    settings = Settings(knobs={"refuse_shutdown": 1})
    async with start(settings) as daemon, daemon.connect() as connection:
        refusal = await ask(connection, request("DAEMON", "SHUTDOWN"))

        expect_refusal(refusal, connection)
        expect_health(await daemon.health())


@pytest.mark.covers("CONTRACT-1-STOP")
async def test_starts_again_where_it_was_killed(start) -> None:
    """SIGKILL in the middle of a conversation leaves nothing that hinders the next start."""
    async with start() as daemon:
        async with daemon.connect() as connection:
            await connection.send(user_input("ping"))
            told = of_this_life(daemon.home, daemon.root)
            daemon.kill()
            await daemon.child.wait()
        for life in (2, 3):
            before = daemon.port, daemon.child.pid
            await daemon.restart()
            expect_health(await daemon.health())
            now = [text for path, text in of_this_life(daemon.home, daemon.root)]
            stale = [text for text in now if text in {str(each) for each in before}]

            assert not stale, (
                f"contract 1: life {life} left the port or process of the last in a file: {stale}"
            )
            assert len(now) == len(told), (
                f"contract 1: files say where the daemon is in its first life: {told}, in life "
                f"{life}: {now}"
            )
        await daemon.stop()
        await gone(daemon)


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.parametrize("end", ["stopped", "killed"])
async def test_takes_its_port_again(start, end: str) -> None:
    """A daemon that was talking to clients when it ended is started again on the same port at once."""
    async with start(Settings(same_port=True)) as daemon:
        port = daemon.port
        for life in (1, 2, 3):
            assert daemon.port == port, (
                f"contract 1: life {life}: told of port {port}, it listens on {daemon.port}"
            )
            async with daemon.connect() as served, daemon.connect() as midway:
                expect_health(await health_on(served))
                await midway.send_bytes(b"000100(:TYPE")
                if end == "killed":
                    daemon.kill()
                await daemon.stop()
                for client in (served, midway):
                    await ended(client)
            # What is left of those connections lasts a minute.
            await daemon.start()
        expect_health(await daemon.health())


async def test_two_in_one_home(start, subject, run) -> None:
    """A second daemon that is started beside the first, on a port of its own, disturbs it in nothing."""
    if "line" not in subject.table("port"):
        not_run("subject", f"{subject.path.name} does not say where a free port is printed")
    async with start() as daemon:
        if daemon.tables.start.home == "fresh":
            not_run("subject", f"a home of {subject.name} is for one life, [start]")
        first = daemon.port
        async with daemon.process(run, name="beside", port=0) as beside:

            async def named() -> int | None:
                return daemon.named_by(beside)

            with deadline("see where the second listens", seconds=STOP_S, tail=beside.tail):
                second = await until(named)

            assert second != first, f"contract 1: two daemons listen on port {first}"
            for port in (first, second):
                async with open_connection(port) as connection:
                    await connection.receive("the handshake", seconds=STOP_S)
            os.kill(listening(second), signal.SIGTERM)
            with trio.move_on_after(patience(STOP_S)):
                await beside.wait()
        expect_health(await daemon.health())
        async with daemon.process(run, name="outlives", port=0) as beside:
            with deadline("see where the third listens", seconds=STOP_S, tail=beside.tail):
                third = await until(named)
            async with open_connection(third) as connection:
                await connection.receive("the handshake", seconds=STOP_S)
            before = [row for row in of_this_life(daemon.home, daemon.root) if row[1] == str(third)]
            await daemon.stop()
            after = of_this_life(daemon.home, daemon.root)
            lost = [row for row in before if row not in after]

            assert not lost, (
                f"contract 1: a daemon that stops removes its own files: expected those of the "
                f"daemon on port {third}, which runs, to be there; gone are {lost}"
            )
            os.kill(listening(third), signal.SIGTERM)
            with trio.move_on_after(patience(STOP_S)):
                await beside.wait()
        left = of_this_life(daemon.home, daemon.root)

        assert not left, f"contract 1: files of their lives have outlived both daemons: {left}"


async def test_without_its_setup(start, subject) -> None:
    """A daemon whose setup was never run says so: it refuses, or its health and its log name it."""
    if not subject.table("setup"):
        not_run("subject", f"{subject.path.name} has no [setup]")
    said = ""
    try:
        async with start(Settings(set_up=False)) as daemon:
            answer = await daemon.health()
            said = answer.payload

            assert expect_health(answer) != Keyword("HEALTHY"), (
                f"contract 1: without its setup it calls itself healthy: {answer.payload}"
            )
            said += "\n".join(daemon.child.tail())
            await expect_no_skill_to_be_said(daemon)
    except AssertionError as error:
        if error.__cause__ is None:
            raise
        said = str(error)  # it did not start

    assert "setup" in said.lower(), f"contract 1: nothing names the missing setup: {said}"


#: Where the contract has a daemon listen that is told of no port.
DEFAULT_PORT = 9105


async def test_the_port_that_is_the_default(start, run, subject) -> None:
    """A daemon that is told of no port takes the one of the contract, or says that it is taken."""
    if "start" not in subject.table("defaults"):
        not_run("subject", f"{subject.path.name} does not say how it is started without a port")
    async with start() as daemon:
        await daemon.stop()
        argv = daemon.client("defaults", "start")
        async with daemon.process(run, name="default", port=daemon.port, argv=argv) as child:

            def ports() -> list[int]:
                ours = {child.pid, *below(child.pid)}
                return [row.port for row in listeners() if row.pid in ours]

            async def known() -> bool:
                return child.returncode is not None or bool(ports())

            with trio.move_on_after(patience(STOP_S)):
                await until(known)
            found, output = ports(), "\n".join(child.tail())

        assert found == [DEFAULT_PORT] or (not found and str(DEFAULT_PORT) in output), (
            f"contract 1: told of no port it listens on {DEFAULT_PORT}, or says that this one is "
            f"taken; found {found}:\n{output}"
        )


async def expect_no_skill_to_be_said(daemon: Daemon) -> None:
    """Where the place of skills is there and holds none, that is no setup either, and is said."""
    table = daemon.subject.table("skills")
    if "directory" not in table:
        return
    directory = Path(daemon.fill(table["directory"]))
    for what in ("is empty", "holds no skill"):
        directory.mkdir(parents=True, exist_ok=True)
        if what == "holds no skill":
            (directory / "notes").write_text("bring milk\n", encoding="utf-8")
        await daemon.restart()
        answer = await daemon.health()

        assert expect_health(answer) != Keyword("HEALTHY"), (
            f"contract 1: never set up, its directory of skills {what}, and it calls itself healthy: "
            f"{answer.payload}"
        )
        said = answer.payload + "\n".join(daemon.child.tail())

        assert "setup" in said.lower(), (
            f"contract 1: never set up, its directory of skills {what}: nothing names the missing "
            f"setup: {said}"
        )


@pytest.mark.capability("shell-reply")
async def test_without_a_working_root_of_its_own(start, subject) -> None:
    """Where no setting names the working root, commands run in the one that is the default."""
    if not subject.table("defaults"):
        not_run("subject", f"{subject.path.name} has no [defaults]")
    async with start(Settings(default_root=True)) as daemon:
        expect_health(await daemon.health())
        async with daemon.connect() as connection:
            outcome = await ask(connection, shell("pwd"))
            found = str(outcome.get("PAYLOAD", "STDOUT")).strip()

            assert Path(found).resolve() == daemon.root.resolve(), (
                f"contract 5: commands run in the default root: expected {daemon.root}, found "
                f"{outcome.payload}"
            )


async def test_settings_at_their_bounds(start, subject) -> None:
    """With the least and the most that each setting may be, it starts and answers."""
    if not subject.table("accepted"):
        not_run("subject", f"{subject.path.name} has no [accepted]")

    async def starts(name: str, variables: dict[str, str]) -> None:
        async with start(Settings(variables=variables), name=name) as daemon:
            expect_health(await daemon.health())

    async with trio.open_nursery() as nursery:
        for name, variables in subject.table("accepted").items():
            nursery.start_soon(starts, name, variables)


@pytest.mark.capability("settings-refused")
async def test_settings_that_mean_nothing(daemon: Daemon, run, subject) -> None:
    """A setting that is misspelled, mistyped or out of bounds is named, and nothing is started."""

    async def refused(name: str, variables: dict[str, str]) -> None:
        another = daemon.process(run, name=name, port=0, variables=variables)
        async with at_once, another as child:
            with trio.move_on_after(patience(STOP_S)):
                await child.wait()
            output = "\n".join(child.tail())

            assert child.returncode not in {0, None}, (
                f"contract 1: it starts with {variables} ({name}), found status "
                f"{child.returncode}:\n{output}"
            )
            wrong = next(iter(variables))

            assert wrong in output, (
                f"contract 1: the error of {name} names {wrong}, found:\n{output}"
            )
            assert output.count("\n") < 3, (
                f"contract 1: a wrong setting is an error of a line or two, found:\n{output}"
            )

    at_once = trio.CapacityLimiter(STARTS)
    async with trio.open_nursery() as nursery:
        for name, variables in subject.table("refused").items():
            nursery.start_soon(refused, name, variables)


async def test_a_busy_port_is_refused(daemon: Daemon, run, subject) -> None:
    """A second daemon on the same port says so and ends; the first does not notice, nor do its clients.

    What the first has written for its life, by which others find it, is there as before.
    """
    if daemon.tables.start.home == "fresh":
        not_run("subject", f"a home of {subject.name} is for one life, [start]")
    ours = {str(daemon.port), str(daemon.pid), "a socket"}
    before = [row for row in of_this_life(daemon.home, daemon.root) if row[1] in ours]
    for name in ("second", "third"):
        async with daemon.process(run, name=name, port=daemon.port) as other:
            await expect_refused_start(other, daemon.port)
        after = of_this_life(daemon.home, daemon.root)
        lost = [row for row in before if row not in after]

        assert not lost, (
            f"contract 1: a daemon that cannot start leaves the files of the one that runs: expected "
            f"{before}, found {after}"
        )
    expect_health(await daemon.health())
