"""How a child gets a port that no other process gets.

Best first: hand over a listening socket (:func:`listening_socket` with ``Run.child(listen=…)``):
no race, and clients may connect before the child is up. Next: let the child bind port 0 and read
the number back. Where a subject insists on being given a number: a lease, which is

* machine-wide: a name per port in the kernel's table of abstract sockets, which has the same
  bounds as the ports themselves (the network namespace), no files and no owner's permissions, and
  is freed when the holder dies in any way;
* outside the kernel's ephemeral range, so that no outgoing connection takes it by chance;
* held by a bound socket until the child is about to start.
"""

from __future__ import annotations

import errno
import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, HarnessError, PortTaken
from harness_core.ports._owners import NO_PROCESS, described, owner_of

LOOPBACK: Final = "127.0.0.1"

#: Leases come from below the ephemeral range (32768 by default) and above well-known services.
_LOWEST_PORT: Final = 20_000
_EPHEMERAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_HIGHEST_PORT: Final = 65_535
#: ``struct ucred``: pid, uid, gid.
_CREDENTIALS: Final = struct.Struct("3i")


class PortLease:
    """A port that is ours until the lease closes; built by :func:`lease_port`.

    Attributes:
        port: the number, on 127.0.0.1.
    """

    def __init__(self, port: int, name: socket.socket, held: socket.socket | None) -> None:
        self.port = port
        self._name = name
        self._held = held

    def hand_over(self) -> int:
        """Let go of the socket so that the child can bind it now; the lease itself stays."""
        if self._held is not None:
            self._held.close()
            self._held = None
        return self.port

    def close(self) -> None:
        """Give the port back; idempotent."""
        self.hand_over()
        self._name.close()


@contextmanager
def lease_port(*, port: int | None = None) -> Iterator[PortLease]:
    """Lease one TCP port on 127.0.0.1 for the block.

    Args:
        port: exactly this one, for a subject that can use no other; any free one otherwise.

    Raises:
        BadInput: a port outside 1…65535.
        PortTaken: ``port`` is held by another process; names it.
        HarnessError: every port of the range is taken.
    """
    lease = _lease_any() if port is None else _lease_exactly(port)
    try:
        yield lease
    finally:
        lease.close()


def listening_socket(*, port: int = 0, backlog: int = 128) -> socket.socket:
    """A socket that already listens on 127.0.0.1, to be handed to a child.

    Raises:
        PortTaken: ``port`` is not zero and held by another process.
        BadInput: ``port`` is outside 0…65535.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise BadInput("port", found=port, expected="a number from 0 to 65535")
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((LOOPBACK, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise PortTaken(port, owner=owner_of(port)) from error
    return sock


def _lease_any() -> PortLease:
    lowest, highest = _range()
    count = highest - lowest
    first = secrets.randbelow(count)  # no seed of a test run makes two runs begin at the same port
    for offset in range(count):
        lease = _try(lowest + (first + offset) % count)
        if lease is not None:
            return lease
    action = f"lease a port between {lowest} and {highest}"
    raise HarnessError(
        action, observed="every one is taken", next_step="Run `harness sweep`, then look for leaks"
    )


def _lease_exactly(port: int) -> PortLease:
    if not 0 < port <= _HIGHEST_PORT:
        raise BadInput("port", found=port, expected="a number from 1 to 65535")
    lease = _try(port) or _try(port, over_past_connections=True)
    if lease is not None:
        return lease
    owner = owner_of(port)
    if owner == NO_PROCESS:
        holder = _holder(port)
        owner = f"the lease of {described(holder)}" if holder else "a socket that does not listen"
    raise PortTaken(port, owner=owner)


def _try(port: int, *, over_past_connections: bool = False) -> PortLease | None:
    """The lease of a port, or ``None``.

    Args:
        port: the port.
        over_past_connections: also when connections of an earlier server on this port are in
            TIME_WAIT, which lasts a minute. The socket listens then: two sockets that allow the
            reuse of an address may otherwise both be bound to it.
    """
    name = _take_name(port)
    if name is None:
        return None
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if over_past_connections:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, port))
        if over_past_connections:
            held.listen(1)
    except OSError:
        held.close()
        name.close()
        return None
    return PortLease(port, name, held)


def _take_name(port: int) -> socket.socket | None:
    """The name of a port's lease, or ``None`` when another harness on this machine has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(_name_of(port))
        name.listen(1)  # so that others can ask who has it
    except OSError as error:
        name.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return name


def _holder(port: int) -> int | None:
    """The pid of the harness that holds the lease of a port."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)  # noqa: FBT003
        try:
            asking.connect(_name_of(port))
        except OSError:
            return None
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(credentials)[0]
    return pid


def _name_of(port: int) -> str:
    return f"\0staging-harness-port-{port}"


def _range() -> tuple[int, int]:
    """Lowest and highest (exclusive) port to lease, clear of the ephemeral range."""
    try:
        low, high = (int(word) for word in _EPHEMERAL_RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _LOWEST_PORT, 32_768
    if low - _LOWEST_PORT >= 1000:  # noqa: PLR2004 - enough for any run
        return _LOWEST_PORT, low
    return (high + 1, _HIGHEST_PORT) if high + 1000 < _HIGHEST_PORT else (1024, low)
