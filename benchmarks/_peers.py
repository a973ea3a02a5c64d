"""How others start PostgreSQL, measured in a process of its own.

PostgreSQL refuses to run as root, and peers have no answer to that. So they run in a process that
is forked while this one has a single thread, with everything imported, and that becomes an
ordinary user before it does anything.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing  # lint: allow threads: peers are processes
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection  # lint: allow threads: peers are processes
from pathlib import Path
from typing import Any

from harness_core.base.errors import HarnessError, Unavailable

__all__ = ["PEERS", "Peers", "open_peers"]

_WAIT_S = 120.0


def _initdb_and_pg_ctl(binaries: Path, place: Path) -> float:
    """The floor without a kept data directory: initdb without sync, then pg_ctl -w."""
    data = place / "data"
    began = time.perf_counter()
    _run(binaries / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync")
    options = f"-F -p {_free_port()} -k {place} -c listen_addresses=127.0.0.1"
    _run(binaries / "pg_ctl", "-D", data, "-w", "-o", options, "-l", place / "log", "start")
    taken_s = time.perf_counter() - began
    _run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    return taken_s


def _pytest_postgresql(binaries: Path, place: Path) -> float:
    """What the fixture ``postgresql_proc`` does, with its defaults."""
    executor_class = _executor_class()
    executor = executor_class(
        executable=str(binaries / "pg_ctl"),
        host="127.0.0.1",
        port=_free_port(),
        datadir=str(place / "data"),
        unixsocketdir=str(place),
        logfile=str(place / "log"),
        startparams="-w",
        dbname="tests",
    )
    began = time.perf_counter()
    executor.start()
    executor.wait_for_postgres()
    taken_s = time.perf_counter() - began
    executor.stop()
    executor.clean_directory()
    return taken_s


PEERS: dict[str, Callable[[Path, Path], float]] = {
    "initdb + pg_ctl": _initdb_and_pg_ctl,
    "pytest-postgresql": _pytest_postgresql,
}


def _executor_class() -> Any:
    """The class moved when the package grew a second executor."""
    for module in ("pytest_postgresql.executors", "pytest_postgresql.executor"):
        if importlib.util.find_spec("pytest_postgresql") and importlib.util.find_spec(module):
            return importlib.import_module(module).PostgreSQLExecutor
    raise Unavailable(
        "measure pytest-postgresql",
        observed="the package pytest-postgresql is not installed",
        next_step="pip install pytest-postgresql",
    )


class Peers:
    """The other end of the process; built only by :func:`open_peers`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def measure(self, name: str, *, binaries: Path, place: Path) -> float:
        """Start and stop one server as that peer does.

        Args:
            name: a key of :data:`PEERS`.
            binaries: the same server binaries that we use.
            place: an empty directory that the other process may write to.

        Returns:
            Seconds until the peer called it ready.

        Raises:
            Unavailable: it could not; says why.
        """
        self._connection.send((name, binaries, place))
        if not self._connection.poll(_WAIT_S):
            raise Unavailable(f"measure {name}", observed=f"no answer for {_WAIT_S:g} s")
        answer = self._connection.recv()
        if isinstance(answer, str):
            raise Unavailable(f"measure {name}", observed=answer)
        return float(answer)


@contextmanager
def open_peers(*, uid: int | None, gid: int | None) -> Iterator[Peers]:
    """Fork the process that runs peers; call it before any thread is started.

    Args:
        uid: user id to change to; ``None`` to keep this one.
        gid: that user's group.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, uid, gid), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Peers(ours)
    finally:
        ours.close()
        process.join(_WAIT_S)


def _serve(connection: Connection, uid: int | None, gid: int | None) -> None:
    with contextlib.suppress(Unavailable):  # reported when it is asked for
        _executor_class()
    if uid is not None and gid is not None:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    os.environ["HOME"] = "/"
    os.chdir("/")
    while True:
        try:
            name, binaries, place = connection.recv()
        except EOFError:
            return
        answer: float | str
        try:
            answer = PEERS[name](binaries, place)
        except Exception as error:  # noqa: BLE001 - a process edge: handed to the other side
            answer = str(error) or type(error).__name__
        shutil.rmtree(place / "data", ignore_errors=True)
        connection.send(answer)


def _run(*argv: str | Path) -> None:
    done = subprocess.run(
        [str(word) for word in argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=_WAIT_S,
    )
    if done.returncode != 0:
        raise HarnessError(f"run {argv[0]}", observed=done.stderr.strip())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
