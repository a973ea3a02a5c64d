"""Provider *local*: a PostgreSQL server of our own, as a supervised child process.

Reachable on 127.0.0.1 with a password of this run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.errors import ChildExited, HarnessError, PortTaken
from harness_core.base.machine import STATE_ELSEWHERE, disk_full, server_account, usable_binaries
from harness_core.base.wait import deadline
from harness_core.infrastructure.services._cluster import (
    met_full_disk,
    open_cluster,
    server_environment,
    write_settings,
)
from harness_core.infrastructure.services._postgres_protocol import execute_locally, greet
from harness_core.infrastructure.services._postgres_settings import COMMON_SETTINGS
from harness_core.infrastructure.services._recipe import ServerCommand
from harness_core.infrastructure.services._shared_memory import (
    remove_shared_memory,
    sweep_shared_memory,
)
from harness_core.ports import owner_of

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Child, Run

_SETTINGS: Final[Mapping[str, str]] = {
    **COMMON_SETTINGS,
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "dynamic_shared_memory_type": "mmap",  # in the data directory: goes with it after a kill
    "huge_pages": "off",
    "synchronous_commit": "on",  # a killed server keeps what it committed; cheap without fsync
    "max_logical_replication_workers": "0",  # one process less; no test subscribes
    "max_wal_size": "256MB",
    "checkpoint_timeout": "1h",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
#: The password is 32 random characters: stretching it would protect nothing and costs 5 ms for
#: each connection.
_SETTINGS_16: Final[Mapping[str, str]] = {"scram_iterations": "1"}
#: No worker processes for reading files in memory.
_SETTINGS_18: Final[Mapping[str, str]] = {"io_method": "sync"}

#: Interval between two readings of the state of a starting server, in seconds. Constant: a doubling interval
#: would add up to its last step (30 ms) to a start of 40.
_POLL_S: Final = limits.POLL_S

#: Lines of ``postmaster.pid``, counted from 0; part of PostgreSQL's interface to ``pg_ctl``.
_SEGMENT_LINE: Final = 6
_STATE_LINE: Final = 7


@dataclass(slots=True, kw_only=True)
class _Server:
    """What one server is started on; the same over its restarts."""

    data: Path
    port: int
    password: str
    #: Set once: what a product makes of it afterwards is data, and stays.
    has_password: bool = False

    async def ready(self, child: Child) -> None:
        """Wait for the state file, set the password once, then prove that the address answers.

        The file is what ``pg_ctl`` looks at too; unlike a connection, a look at it costs the
        starting server nothing.
        """
        with deadline(
            f"start postgres on 127.0.0.1:{self.port}",
            seconds=limits.POSTGRES_READY_S,
            observed=lambda: f"its state is {_state(self.data, child.pid)!r}",
            tail=child.tail,
        ):
            while _state(self.data, child.pid) != "ready":
                with trio.move_on_after(_POLL_S):
                    await child.wait()
                if child.returncode is not None:
                    await child.wait()  # until its last lines are read
                    raise self._gave_up(child)
            if not self.has_password:
                verb = f"ALTER ROLE postgres PASSWORD '{self.password}'"
                await execute_locally(self.data, self.port, verb)
                self.has_password = True
            await greet(f"127.0.0.1:{self.port}")

    def _gave_up(self, child: Child) -> HarnessError:
        if any("Address already in use" in line for line in child.tail()):
            return PortTaken(self.port, owner=owner_of(self.port))
        if met_full_disk(child.tail()):
            return disk_full(
                self.data,
                what="what a PostgreSQL server starts with",
                elsewhere=STATE_ELSEWHERE,
                tail=child.tail(),
                log=child.log,
            )
        return ChildExited(
            f"start postgres on 127.0.0.1:{self.port}",
            name="postgres",
            returncode=child.returncode or 0,
            next_step="Read its last lines below",
            tail=child.tail(),
            log=child.log,
        )

    def clean_up(self) -> None:
        """Remove what a server that could not end in order has noted, and its note."""
        if (segment := _segment(self.data)) is not None:
            remove_shared_memory(segment)
        (self.data / "postmaster.pid").unlink(missing_ok=True)


@asynccontextmanager
async def local_postgres(
    run: Run, port: int, *, evidence: Evidence, password: str, settings: Mapping[str, str]
) -> AsyncIterator[ServerCommand]:
    """Prepare a server on a copy of the cached data directory, which is removed at the end.

    Args:
        run: what the server belongs to.
        port: where it is to listen.
        evidence: directory for its log and settings.
        password: of the superuser ``postgres``.
        settings: additions to, or replacements of, the settings of ``postgresql.conf``.

    Raises:
        Unavailable: no server binaries, or no account to run them as.
    """
    owner = server_account()
    binaries = await blocking(usable_binaries)
    user = owner[0] if owner is not None else None
    await blocking(sweep_shared_memory, uid=os.geteuid() if user is None else user)
    async with open_cluster(run, binaries, owner=owner, evidence=evidence) as home:
        data = home / "data"
        everything = {**_all_settings(binaries.major, port), **settings}
        await blocking(write_settings, data, everything, owner=owner)
        evidence.write_text(
            "postgresql.conf", "".join(f"{key} = '{value}'\n" for key, value in everything.items())
        )
        server = _Server(data=data, port=port, password=password)
        yield ServerCommand(
            argv=(str(binaries.postgres), "-D", str(data)),
            env=server_environment(),
            home=data,
            ready=server.ready,
            user=user,
            stop_signal=signal.SIGINT,  # "fast": open connections are closed, data is kept
            clean_up=server.clean_up,
        )


def _all_settings(major: int, port: int) -> dict[str, str]:
    settings = {**_SETTINGS, "port": str(port)}
    for since, more in ((16, _SETTINGS_16), (18, _SETTINGS_18)):
        if major >= since:
            settings |= more
    return settings


def _state(data: Path, pid: int) -> str:
    """What the server of ``pid`` last wrote as its state, e.g. ``ready``."""
    lines = _pid_file(data)
    if len(lines) <= _STATE_LINE or lines[0].strip() != str(pid):
        return "no state yet"
    return lines[_STATE_LINE].strip()


def _segment(data: Path) -> int | None:
    """The System V segment the last server of this directory noted and did not remove."""
    lines = _pid_file(data)
    words = lines[_SEGMENT_LINE].split() if len(lines) > _SEGMENT_LINE else []
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else None  # noqa: PLR2004


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return []
