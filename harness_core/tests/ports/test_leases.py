"""Ports that no other process gets: leases, hand-over, and the name of whoever is in the way."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness_core.base.errors import BadInput, HarnessError, PortTaken
from harness_core.base.wait import until_blocking
from harness_core.ports import _leases, lease_port, listening_socket, owner_of
from harness_core.ports._leases import _range
from harness_core.ports._owners import NO_PROCESS

LEASE_MANY = """
import sys
from contextlib import ExitStack
from harness_core.ports import lease_port
with ExitStack() as stack:
    leases = [stack.enter_context(lease_port()) for _ in range(int(sys.argv[1]))]
    if sys.argv[2:]:
        for lease in leases:
            lease.hand_over()
    print(*(lease.port for lease in leases), flush=True)
    sys.stdin.read()
"""


def leasing(count: int, *words: str) -> "subprocess.Popen[str]":
    """A process that leases ports and holds them until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", LEASE_MANY, str(count), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_leases_of_many_processes_never_collide(monkeypatch):
    """Processes that lease at the same moment get different ports, also once they let go of them."""
    with ExitStack() as stack:
        processes = [stack.enter_context(leasing(50, "hand over")) for _ in range(4)]
        ports = [int(word) for p in processes for word in p.stdout.readline().split()]
        for process in processes:
            process.stdin.close()

    lowest, highest = _range()
    assert 200 == len(ports) == len(set(ports))
    assert all(lowest <= port < highest for port in ports)


def test_contention_for_few_ports_is_settled(monkeypatch):
    """In a range of exactly as many ports as are wanted each gets one, and no more."""
    lowest, _ = _range()
    monkeypatch.setattr(_leases, "_range", lambda: (lowest, lowest + 10))
    with ExitStack() as stack:
        free = [port for port in range(lowest, lowest + 10) if owner_of(port) == NO_PROCESS]
        taken = [stack.enter_context(lease_port()).port for _ in free]
        with pytest.raises(HarnessError, match="every one is taken"):
            stack.enter_context(lease_port())

    assert set(free) == set(taken)


def test_leases_lie_outside_the_ephemeral_range():
    """No outgoing connection can be given a leased port by the kernel."""
    kernel = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    low, high = map(int, kernel.split())
    with lease_port() as lease:
        assert not low <= lease.port <= high
        assert lease.port > 1023


def test_lease_ends_with_its_block():
    """A port given back can be leased again at once, and closing twice is nothing."""
    with lease_port() as lease:
        port = lease.port
        lease.close()
    with lease_port(port=port) as again:
        assert port == again.port


def test_lease_is_freed_when_its_holder_is_killed():
    """SIGKILL of the holder frees the lease, handed over or not."""
    with leasing(1, "hand over") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with pytest.raises(PortTaken):
            _leases._lease_exactly(port)
        process.kill()
        process.wait()

    with lease_port(port=port) as lease:
        assert port == lease.port


def test_lease_outlasts_its_hand_over():
    """After the hand-over others still cannot lease the port; they learn who has it."""
    with leasing(1, "hand over") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        with pytest.raises(PortTaken) as taken, lease_port(port=port):
            pass

        assert f"the lease of pid {process.pid} (python)" == taken.value.owner.replace(
            "python3", "python"
        )
        assert process.stdin is not None
        process.stdin.close()


def test_held_port_cannot_be_bound_by_others():
    """Until the hand-over no process can bind the port, not even with SO_REUSEADDR; then the child can."""
    with lease_port() as lease:
        for reuse in (0, 1):
            with socket.socket() as squatter:
                squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
                with pytest.raises(OSError, match="in use"):
                    squatter.bind(("127.0.0.1", lease.port))

        assert lease.port == lease.hand_over() == lease.hand_over()
        with socket.socket() as child:
            child.bind(("127.0.0.1", lease.port))


def test_squatter_on_an_exact_port_is_named():
    """A port that is listened on is refused with pid and command of the listener."""
    with listening_socket() as squatter:
        port = squatter.getsockname()[1]
        for take in (
            lambda: lease_port(port=port).__enter__(),
            lambda: listening_socket(port=port),
        ):
            with pytest.raises(PortTaken) as taken:
                take()

            assert port == taken.value.port
            command = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
            assert f"pid {os.getpid()} ({command})" == taken.value.owner


def test_socket_that_does_not_listen_is_not_called_a_lease():
    """A port that is bound without listening is refused without blaming another harness."""
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        with pytest.raises(PortTaken) as taken, lease_port(port=squatter.getsockname()[1]):
            pass

    assert "a socket that does not listen" == taken.value.owner


def test_past_connections_do_not_hold_a_port():
    """A port whose last server has just closed its connections can be leased again at once."""
    with lease_port() as lease:
        port = lease.port
    with listening_socket(port=port) as server:
        client = socket.create_connection(("127.0.0.1", port))
        connection, _ = server.accept()
        connection.close()  # the server's side closes first and keeps the address in TIME_WAIT
        client.recv(1)
        client.close()
    until_blocking(lambda: owner_of(port) == NO_PROCESS, seconds=5, action="see the server end")
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("127.0.0.1", port))

    with lease_port(port=port) as lease:
        assert port == lease.port
        with socket.socket() as squatter:
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                squatter.bind(("127.0.0.1", port))


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_port_outside_the_range_is_refused(port):
    """A number that is no port is bad input, not a port that is taken."""
    with pytest.raises(BadInput) as refused, lease_port(port=port):
        pass

    assert port == refused.value.found
    if port:
        with pytest.raises(BadInput):
            listening_socket(port=port)


def test_listening_socket_takes_connections_before_they_are_accepted():
    """Clients may connect before the child is up: their connections wait in the backlog."""
    with listening_socket() as sock, socket.create_connection(sock.getsockname(), timeout=5):
        connection, _ = sock.accept()
        connection.close()


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        ("32768 60999", (20_000, 32_768)),
        ("1024 60999", (61_000, 65_535)),
        ("15000 65000", (1024, 15_000)),
        ("garbage", (20_000, 32_768)),
    ],
)
def test_range_avoids_whatever_is_ephemeral(tmp_path, monkeypatch, ephemeral, expected):
    """The range to lease from lies beside the kernel's ephemeral one, wherever that is."""
    (tmp_path / "range").write_text(ephemeral, encoding="ascii")
    monkeypatch.setattr(_leases, "_EPHEMERAL_RANGE", tmp_path / "range")

    assert expected == _range()


def test_paused_holder_keeps_its_lease():
    """A holder that hangs keeps its lease: it may still use the port."""
    with leasing(1) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(PortTaken) as taken, lease_port(port=port):
                pass
            assert f"pid {process.pid}" in taken.value.owner
        finally:
            process.send_signal(signal.SIGCONT)
            process.communicate()
