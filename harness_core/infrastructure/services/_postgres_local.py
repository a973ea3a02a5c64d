"""Provider *local*: a PostgreSQL server of our own, as a supervised child process.

Reachable on 127.0.0.1 with a password of this run.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.errors import ChildExited, HarnessError, PortTaken
from harness_core.base.groups import lone_error
from harness_core.base.machine import (
    STATE_ELSEWHERE,
    PostgresBinaries,
    disk_full,
    server_account,
    usable_binaries,
)
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.services import _processes
from harness_core.infrastructure.services._cluster import (
    Job,
    Owner,
    met_full_disk,
    new_cluster,
    server_environment,
    write_settings,
)
from harness_core.infrastructure.services._postgres_protocol import execute_locally, greet
from harness_core.infrastructure.services._postgres_settings import COMMON_SETTINGS
from harness_core.infrastructure.services._service import Place
from harness_core.ports import owner_of
from harness_core.process import descendants, is_stopped, memory_root

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Child, Run

__all__ = ["LocalPostgres", "open_local_postgres"]

_SETTINGS: Final[Mapping[str, str]] = {
    **COMMON_SETTINGS,
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "dynamic_shared_memory_type": "mmap",  # in the data directory: goes with it after a kill
    "huge_pages": "off",
    "synchronous_commit": "on",  # a killed server keeps what it committed; cheap without fsync
    "max_logical_replication_workers": "0",  # one process less; nobody subscribes here
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

#: Interval between two looks at a starting server, in seconds. Constant: a doubling interval
#: would add up to its last step (30 ms) to a start of 40.
_LOOK_S: Final = limits.POLL_S

#: Lines of ``postmaster.pid``, counted from 0; part of PostgreSQL's interface to ``pg_ctl``.
_SEGMENT_LINE: Final = 6
_STATE_LINE: Final = 7

#: An immediate shutdown takes milliseconds; whatever is left then is killed.
_DISPOSE_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What stays the same over the restarts of one server."""

    run: Run
    binaries: PostgresBinaries
    data: Path
    port: int
    password: str
    owner: Owner | None
    evidence: Evidence


class LocalPostgres:
    """A server started by us; built only by :func:`open_local_postgres`."""

    name = "postgres"

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._child: Child | None = None
        self._stack = AsyncExitStack()
        self._frozen: tuple[int, ...] = ()

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self._plan.port}"

    @property
    def place(self) -> Place:
        """The process that forks all others of the server."""
        if self._child is None or self._child.returncode is not None:
            return Place()
        return Place(pid=self._child.pid)

    @property
    def port(self) -> int:
        """TCP port; held for the whole life of the service."""
        return self._plan.port

    @property
    def in_memory(self) -> bool:
        """Whether its data lies on tmpfs."""
        return memory_root() in self._plan.data.parents

    @property
    def password(self) -> str:
        """Of the superuser ``postgres``; random for each run."""
        return self._plan.password

    async def start(self) -> None:
        """Start the server on its address and data, and wait until it answers.

        Raises:
            HarnessError: it is running already.
            ChildExited: it gave up; carries its last words.
            PortTaken: somebody listens on its port.
            NotReady: it did not answer within ``limits.POSTGRES_READY_S``.
        """
        if self._child is not None and self._child.returncode is None:
            raise HarnessError(
                f"start postgres on {self.address}",
                observed=f"it is running already, as pid {self._child.pid}",
                next_step="Stop or kill it first, or call restart",
            )
        await self._release()
        plan = self._plan
        (plan.data / "postmaster.pid").unlink(missing_ok=True)
        child: Child = await self._stack.enter_async_context(
            plan.run.child(
                (str(plan.binaries.postgres), "-D", str(plan.data)),
                name="postgres",
                env=server_environment(),
                cwd=plan.data,
                evidence=plan.evidence,
                user=plan.owner.uid if plan.owner is not None else None,
                group=plan.owner.gid if plan.owner is not None else None,
                stop_signal=signal.SIGINT,  # "fast": open connections are closed, data is kept
            )
        )
        self._child = child
        try:
            with deadline(
                f"start postgres on {self.address}",
                seconds=limits.POSTGRES_READY_S,
                observed=lambda: f"its state is {_state(plan.data, child.pid)!r}",
                tail=child.tail,
            ):
                await self._ready(child)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._end(child)
                await self._release()
            raise

    async def _ready(self, child: Child) -> None:
        """Wait for the state file, set the password, then prove that the address answers.

        The file is what ``pg_ctl`` looks at too; unlike a connection, a look at it costs the
        starting server nothing.
        """
        plan = self._plan
        while _state(plan.data, child.pid) != "ready":
            with trio.move_on_after(_LOOK_S):
                await child.wait()
            if child.returncode is not None:
                await child.wait()  # until its last words are read
                raise self._gave_up(child)
        verb = f"ALTER ROLE postgres PASSWORD '{plan.password}'"
        await execute_locally(plan.data, plan.port, verb)
        await greet(self.address)

    def _gave_up(self, child: Child) -> HarnessError:
        if any("Address already in use" in line for line in child.tail()):
            return PortTaken(self._plan.port, owner=owner_of(self._plan.port))
        if met_full_disk(child.tail()):
            return disk_full(
                self._plan.data,
                what="what a PostgreSQL server starts with",
                elsewhere=STATE_ELSEWHERE,
                tail=child.tail(),
                log=child.log,
            )
        return ChildExited(
            f"start postgres on {self.address}",
            name="postgres",
            returncode=child.returncode or 0,
            next_step="Read its last words below",
            tail=child.tail(),
            log=child.log,
        )

    async def stop(self) -> None:
        """Fast shutdown; nothing happens when it is down already."""
        await self.resume()
        if self._child is not None:
            await self._child.stop()
        await self._release()

    async def kill(self) -> None:
        """SIGKILL to the server and every process it forked; nothing happens when it is down."""
        if self._child is not None:
            await self._end(self._child)
        await self._release()

    async def pause(self) -> None:
        """SIGSTOP to the server, then to every process it forked."""
        child = self._running("pause")
        self._frozen = await self._freeze(child)
        _processes.signal_all(self._frozen, signal.SIGSTOP)

    async def resume(self) -> None:
        """SIGCONT to all that :meth:`pause` froze; nothing happens when it was not paused."""
        if self._child is not None and self._frozen:
            _processes.signal_all(self._frozen, signal.SIGCONT)
            self._child.signal(signal.SIGCONT)
        self._frozen = ()

    def _running(self, verb: str) -> Child:
        if self._child is None or self._child.returncode is not None:
            raise HarnessError(
                f"{verb} postgres on {self.address}",
                observed="it is not running",
                next_step="Call start first",
            )
        return self._child

    async def _freeze(self, child: Child) -> tuple[int, ...]:
        """Stop the postmaster, so that it forks no more; returns the processes it had forked."""
        child.signal(signal.SIGSTOP)

        async def stopped() -> bool:
            # The signal arrives when it next leaves the kernel: a fork may be on its way.
            return child.returncode is not None or is_stopped(child.pid)

        with deadline(f"stop postgres on {self.address}", seconds=limits.CHILD_STOP_KILL_S):
            await until(stopped)
        return tuple(descendants(child.pid))

    async def _end(self, child: Child) -> None:
        """Kill the server and its forks, and wait until they are gone."""
        if child.returncode is None:
            forks = await self._freeze(child)
            _processes.signal_all(forks, signal.SIGKILL)
            child.kill()
            with deadline(f"kill postgres on {self.address}", seconds=limits.CHILD_STOP_KILL_S):
                await child.wait()
                await until(_gone(forks))
        if (segment := _shared_memory(self._plan.data)) is not None:
            _processes.remove_shared_memory(segment)
        self._frozen = ()

    async def _release(self) -> None:
        """Close the books on a child that has ended."""
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        self._child = None

    async def dispose(self) -> None:
        """End it for good; its data is about to be removed, so nothing is written back."""
        child = self._child
        if child is not None and child.returncode is None and not self._frozen:
            child.signal(signal.SIGQUIT)
            with trio.move_on_after(_DISPOSE_S):
                await child.wait()
        await self.kill()


@asynccontextmanager
async def open_local_postgres(
    run: Run, *, evidence: Evidence, settings: Mapping[str, str]
) -> AsyncIterator[LocalPostgres]:
    """Start a server on a copy of the cached data directory; remove both at the end.

    Args:
        run: what the server belongs to.
        evidence: directory for its log and settings.
        settings: additions to, or replacements of, the settings of ``postgresql.conf``.

    Raises:
        Unavailable: no server binaries, or nobody to run them as.
    """
    account = server_account()
    owner = Owner(uid=account[0], gid=account[1]) if account is not None else None
    binaries = await blocking(usable_binaries)
    uid = owner.uid if owner is not None else os.geteuid()
    await blocking(_processes.sweep_shared_memory, uid=uid)
    async with AsyncExitStack() as cleanup:
        home = run.directory("postgres", in_memory=True)
        cleanup.push_async_callback(_remove, home)
        data = home / "data"
        store = await new_cluster(run, binaries, data, owner=owner, evidence=evidence)
        await cleanup.enter_async_context(_meanwhile(store))
        with _held_port() as port:
            everything = {**_all_settings(binaries.major, port), **settings}
            await blocking(write_settings, data, everything, owner=owner)
            evidence.write_text(
                "postgresql.conf",
                "".join(f"{key} = '{value}'\n" for key, value in everything.items()),
            )
            password = secrets.token_hex(16)
            evidence.redactor.add(password)
            service = LocalPostgres(
                _Plan(
                    run=run,
                    binaries=binaries,
                    data=data,
                    port=port,
                    password=password,
                    owner=owner,
                    evidence=evidence,
                )
            )
            try:
                await service.start()
                yield service
            finally:
                with trio.CancelScope(shield=True):
                    await service.dispose()


@asynccontextmanager
async def _meanwhile(job: Job | None) -> AsyncIterator[None]:
    """Do something beside the block, and have it done when the block ends."""
    async with lone_error(), trio.open_nursery() as nursery:
        if job is not None:
            nursery.start_soon(job)
        yield


def _all_settings(major: int, port: int) -> dict[str, str]:
    settings = {**_SETTINGS, "port": str(port)}
    for since, more in ((16, _SETTINGS_16), (18, _SETTINGS_18)):
        if major >= since:
            settings |= more
    return settings


@contextmanager
def _held_port() -> Iterator[int]:
    """A port that stays ours for as long as the service exists, also while its server is down.

    The socket is bound and never listens: to a client the port is closed, to every other program
    it is taken, and the server, which sets SO_REUSEADDR as this does, may listen on it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _state(data: Path, pid: int) -> str:
    """What the server of ``pid`` last wrote as its state, e.g. ``ready``."""
    lines = _pid_file(data)
    if len(lines) <= _STATE_LINE or lines[0].strip() != str(pid):
        return "no state yet"
    return lines[_STATE_LINE].strip()


def _shared_memory(data: Path) -> int | None:
    """The System V segment the last server of this directory noted and did not remove."""
    lines = _pid_file(data)
    words = lines[_SEGMENT_LINE].split() if len(lines) > _SEGMENT_LINE else []
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else None  # noqa: PLR2004


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return []


def _gone(pids: tuple[int, ...]) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return not _processes.alive(pids)

    return probe


async def _remove(home: Path) -> None:
    with trio.CancelScope(shield=True):
        await blocking(partial(shutil.rmtree, home, ignore_errors=True))
