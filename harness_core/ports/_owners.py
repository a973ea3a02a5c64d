"""Who listens on a port: read from the kernel, so that an answer can be traced to a process.

``psutil.net_connections`` names one holder of a socket and leaves its inode out. A socket that is
handed to a child has two holders, and two sockets may share an address: the proof needs both.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harness_core.base.errors import PortTaken
from harness_core.process import Child, belongs_to

_LISTEN: Final = "0A"
#: Addresses as the kernel prints them, in words of swapped bytes: ::1, ::ffff:127.x.y.z, 127.x.y.z.
_LOOPBACK_HEX: Final = re.compile(
    r"0{24}01000000|0000000000000000FFFF0000[0-9A-F]{6}7F|[0-9A-F]{6}7F"
)

#: The owner of a port without a listener.
NO_PROCESS: Final = "no process"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listening TCP socket.

    Attributes:
        port: TCP port.
        pid: the process that has it open; ``None`` when it belongs to another user.
        command: its command name.
        loopback: bound to a loopback address only.
        inode: the socket's number in the kernel; one row per process that has it open.
    """

    port: int
    inode: int
    pid: int | None
    command: str
    loopback: bool


def listeners(*, port: int | None = None) -> tuple[Listener, ...]:
    """Every listening TCP socket of this machine, or those on one port; one row per process."""
    found = tuple(_sockets(port))
    holders = _socket_holders({inode for _, inode, _ in found})
    unknown: list[int | None] = [None]
    return tuple(
        Listener(port=number, inode=int(inode), pid=pid, command=_command(pid), loopback=loopback)
        for number, inode, loopback in found
        for pid in holders.get(inode, unknown)
    )


def has_listener(port: int) -> bool:
    """Whether any process listens on a port; much cheaper than which."""
    return any(True for _ in _sockets(port))


def _sockets(port: int | None) -> Iterator[tuple[int, str, bool]]:
    """Port, inode and whether it is a loopback address, of each listening socket."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _lines(Path(table)):
            fields = line.split()
            address, _, port_hex = fields[1].rpartition(":")
            if fields[3] == _LISTEN and (port is None or int(port_hex, 16) == port):
                yield int(port_hex, 16), fields[9], _is_loopback(address)


def owner_of(port: int) -> str:
    """Who listens on ``port``, in words: ``"pid 4711 (nginx)"``, or :data:`NO_PROCESS`."""
    return _in_words(listeners(port=port))


def _in_words(found: Sequence[Listener]) -> str:
    """Each process once, also when it listens on several addresses."""
    words = (described(entry.pid) if entry.pid else "a process of another user" for entry in found)
    return ", ".join(dict.fromkeys(words)) or NO_PROCESS


def described(pid: int) -> str:
    """A process in words: ``"pid 4711 (nginx)"``."""
    return f"pid {pid} ({_command(pid)})"


def prove_listener(port: int, child: Child) -> None:
    """Check that every listening socket on ``port`` is open in ``child`` or a descendant of it.

    A socket that was handed to the child is open in the harness too; that counts as the child's.

    Raises:
        PortTaken: no process listens, or another one does (named in the error).
    """
    found = listeners(port=port)
    sockets = {entry.inode for entry in found}
    ours = {entry.inode for entry in found if entry.pid and belongs_to(entry.pid, child)}
    if not sockets:
        raise PortTaken(
            port, owner=NO_PROCESS, next_step=f"Read the log of {child.name}: it has not bound it"
        )
    if sockets != ours:
        foreign = [entry for entry in found if entry.inode not in ours]
        raise PortTaken(
            port,
            owner=_in_words(foreign),
            next_step=(
                f"It answers in place of {child.name} (pid {child.pid}); stop it and run again"
            ),
        )


def _is_loopback(address: str) -> bool:
    return _LOOPBACK_HEX.fullmatch(address) is not None


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text(encoding="ascii").splitlines()[1:]
    except FileNotFoundError:
        return []


def _socket_holders(inodes: set[str]) -> dict[str, list[int | None]]:
    """The processes that have each of these socket inodes open."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    holders: dict[str, list[int | None]] = {}
    for entry in os.listdir("/proc") if wanted else ():  # noqa: PTH208 - hot: every process
        if not entry.isdigit():
            continue
        try:
            with os.scandir(f"/proc/{entry}/fd") as descriptors:
                targets = {_link(descriptor.path) for descriptor in descriptors}
        except OSError:
            continue
        for target in targets & wanted.keys():
            holders.setdefault(wanted[target], []).append(int(entry))
    return holders


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - hot: every descriptor of every process
    except OSError:
        return ""


def _command(pid: int | None) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"
