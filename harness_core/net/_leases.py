"""How a child gets a port that nobody else gets.

Best first: hand over a listening socket (:func:`listening_socket` with ``Run.child(listen=…)``):
no race, and clients may connect before the child is up. Next: let the child bind port 0 and read
the number back. Where a subject insists on being told a number: a lease, which is

* machine-wide: a locked file per port, freed by the kernel when the holder dies in any way;
* outside the kernel's ephemeral range, so that no outgoing connection takes it by chance;
* held by a bound socket until the child is about to start.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from harness_core.errors import BadInput, HarnessError, PortTaken
from harness_core.net._owners import owner_of

__all__ = ["PortLease", "lease_port", "listening_socket"]

LOOPBACK: Final = "127.0.0.1"

#: Leases come from below the ephemeral range (32768 by default) and above well-known services.
_LOWEST_PORT: Final = 20_000
_EPHEMERAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_HIGHEST_PORT: Final = 65_535


class PortLease:
    """A port that is ours until the lease closes; built by :func:`lease_port`.

    Attributes:
        port: the number, on 127.0.0.1.
    """

    def __init__(self, port: int, lock: IO[bytes], held: socket.socket | None) -> None:
        self.port = port
        self._lock = lock
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
        self._lock.close()


@contextmanager
def lease_port(*, port: int | None = None) -> Iterator[PortLease]:
    """Lease one TCP port on 127.0.0.1 for the block.

    Args:
        port: exactly this one, for a subject that cannot be told another; any free one otherwise.

    Raises:
        BadInput: a port outside 1…65535.
        PortTaken: ``port`` is held by somebody else; names the holder.
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
        PortTaken: ``port`` is not zero and held by somebody else.
    """
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
    first = random.randrange(count)  # noqa: S311 - spreads contention, guards nothing
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
    lease = _try(port)
    if lease is not None:
        return lease
    owner = owner_of(port)
    if owner == "nobody":
        owner = "another harness that holds the lease"
    raise PortTaken(port, owner=owner)


def _try(port: int) -> PortLease | None:
    lock = _lock(port)
    if lock is None:
        return None
    # Without SO_REUSEADDR: two sockets that both set it may be bound to one port on Linux.
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.bind((LOOPBACK, port))
    except OSError:
        held.close()
        lock.close()
        return None
    return PortLease(port, lock, held)


def _lock(port: int) -> IO[bytes] | None:
    """The locked file of a port, or ``None`` when another harness on this machine has it."""
    directory = Path(tempfile.gettempdir()) / "staging-harness-ports"
    try:
        directory.mkdir(mode=0o777)
        directory.chmod(0o1777)  # every user of the machine leases here, as in /tmp itself
    except FileExistsError:
        pass
    try:
        descriptor = os.open(directory / str(port), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        return None
    file = os.fdopen(descriptor, "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    file.truncate()
    file.write(b"%d\n" % os.getpid())
    file.flush()
    return file


def _range() -> tuple[int, int]:
    """Lowest and highest (exclusive) port to lease, clear of the ephemeral range."""
    try:
        low, high = (int(word) for word in _EPHEMERAL_RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return _LOWEST_PORT, 32_768
    if low - _LOWEST_PORT >= 1000:  # noqa: PLR2004 - enough for any run
        return _LOWEST_PORT, low
    return (high + 1, _HIGHEST_PORT) if high + 1000 < _HIGHEST_PORT else (1024, low)
