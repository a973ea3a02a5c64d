"""The daemon: its port, its connections and their number, its start and its end."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import trio

from sexpd import VERSION, faults, log
from sexpd.config import Config
from sexpd.connection import Connection
from sexpd.errors import SexpdError
from sexpd.gateways import Links
from sexpd.health import Health
from sexpd.pipeline import Pipeline
from sexpd.providers import Cascade
from sexpd.router import Router
from sexpd.shell.actuator import Shell
from sexpd.skills import Registry

BACKLOG = 256
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Daemon:
    """Everything that lives between start and stop."""

    def __init__(self, config: Config, *, cascade: Cascade) -> None:
        self.config = config
        self._cascade = cascade
        self.skills = Registry(config.skills)
        self.links = Links(config.data)
        self.shell = Shell(config)
        self.health = Health(config, skills=self.skills, cascade=cascade, shell=self.shell)
        self.pipeline = Pipeline(
            config, skills=self.skills, cascade=cascade, shell=self.shell,
            health=self.health.report,
        )
        self.health.pipeline = self.pipeline
        self.router = Router(self)
        self.port = 0
        self.frames = 0
        self.malformed = 0
        self.kept: list[bytearray] = []  # filled by a planted fault only
        self.one_reads = trio.Lock()
        self._connections: dict[int, Connection] = {}
        self._opened = 0
        self._working = 0
        self._refusing = 0
        self._began = time.monotonic()
        self._stop = trio.Event()

    def stop(self, reason: str) -> None:
        """Begin to stop; what is under way has `limits.stop_s` to end."""
        if not self._stop.is_set():
            log.info("daemon.stopping", reason=reason)
            self._stop.set()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """A request that a stop waits for."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    def newest(self) -> Connection:
        """The connection that was opened last; asked for by a planted fault only."""
        return self._connections[max(self._connections)]

    def status(self) -> dict[str, Any]:
        """Numbers about this process, for the wire."""
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "port": self.port,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "connections": len(self._connections),
            "connections_opened": self._opened,
            "frames": self.frames,
            "malformed": self.malformed,
            "open_files": len(os.listdir("/proc/self/fd")) - 1,
            "peak_memory_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "pipeline_busy": self.pipeline.busy,
        }

    # --- A life ---

    async def run(self, listener: trio.SocketListener, *, file: Path | None) -> None:
        """Serve until stopped."""
        self.port = listener.socket.getsockname()[1]
        # Signals are received before anybody is told that the daemon is there.
        with trio.open_signal_receiver(*SIGNALS) as signals:
            await self._serve(listener, file=file, signals=signals)
        log.info("daemon.stopped", frames=self.frames, malformed=self.malformed)

    async def _serve(
        self, listener: trio.SocketListener, *, file: Path | None, signals: AsyncIterator[int]
    ) -> None:
        async with trio.open_nursery() as everything:
            everything.start_soon(self._stop_on, signals)
            everything.start_soon(self.pipeline.run)
            everything.start_soon(self._cascade.prepare)
            self.skills.refresh()
            with _port_file(file, self.port):
                print(f"sexpd: listening on {self.config['server.host']}:{self.port}", flush=True)
                log.info("daemon.ready", port=self.port, pid=os.getpid(), root=self.shell.root,
                         confined=self.shell.confined)
                await self._accept_until_stopped(listener, everything)
            with trio.move_on_after(self.config["limits.stop_s"]):
                while self._working:
                    await trio.sleep(0.01)
            everything.cancel_scope.cancel()

    async def _accept_until_stopped(
        self, listener: trio.SocketListener, everything: trio.Nursery
    ) -> None:
        async with trio.open_nursery() as accepting:

            async def accept() -> None:
                await trio.serve_listeners(self._client, [listener], handler_nursery=everything)

            accepting.start_soon(accept)
            await self._stop.wait()
            if faults.on("leaked-listener"):
                subprocess.Popen(["sleep", "20"], pass_fds=[listener.socket.fileno()])
            accepting.cancel_scope.cancel()

    async def _stop_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            self.stop(signal.Signals(number).name)

    # --- Connections ---

    async def _client(self, stream: trio.SocketStream) -> None:
        self._opened += 1
        connection = Connection(stream, daemon=self, number=self._opened)
        limit = self.config["limits.connections"]
        if len(self._connections) >= limit and not self._make_room(limit):
            connection.evict(f"there are {limit} connections already")
            self._refusing += 1
            try:
                # More than this at once are closed without a word: words cost time and memory.
                await (connection.serve() if self._refusing <= limit else stream.aclose())
            finally:
                self._refusing -= 1
            return
        self._connections[connection.number] = connection
        try:
            await connection.serve()
        except Exception as error:  # the edge of a connection: its failure is nobody else's
            log.error("connection.failed", number=connection.number, error=repr(error))
        finally:
            self._connections.pop(connection.number, None)

    def _make_room(self, limit: int) -> bool:
        """Send away the oldest client that never said anything; False when there is none."""
        if len(self._connections) >= 2 * limit:  # those sent away take a moment to go
            return False
        for connection in self._connections.values():
            if not connection.spoken and not connection.evicted:
                connection.evict(f"there are {limit} connections and this one never spoke")
                return True
        return False


async def listen(host: str, port: int) -> trio.SocketListener:
    """A listening socket.

    Raises:
        SexpdError: the port cannot be had.
    """
    family = trio.socket.AF_INET6 if ":" in host else trio.socket.AF_INET
    sock = trio.socket.socket(family, trio.socket.SOCK_STREAM)
    try:
        sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
        await sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        advice = "Stop who has it, or give another --port (0 takes a free one)"
        if error.errno == errno.EACCES:
            advice = "Give a --port above 1023"
        said = os.strerror(error.errno or 0)
        raise SexpdError(f"cannot listen on {host}:{port}: {said}. {advice}") from error
    return trio.SocketListener(sock)


@contextlib.contextmanager
def _port_file(file: Path | None, port: int) -> Iterator[None]:
    """A file that holds the port for as long as somebody listens there."""
    if file is None:
        yield
        return
    try:
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(f"{port}\n")
        beside.replace(file)
    except OSError as error:
        said = os.strerror(error.errno or 0)
        raise SexpdError(f"cannot write {file}: {said}. Give another --port-file") from error
    try:
        yield
    finally:
        # Another daemon may have written it since.
        with contextlib.suppress(OSError):
            if file.read_text() == f"{port}\n":
                file.unlink()


async def serve(config: Config) -> None:
    """Start the daemon and serve until it is stopped.

    Raises:
        SexpdError: it cannot start.
    """
    for directory in (config.data, config.root):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            said = os.strerror(error.errno or 0)
            raise SexpdError(f"cannot make {directory}: {said}. Name another directory") from error
    file = config["server.port_file"] or config.data / "sexpd.port"
    listener = await listen(config["server.host"], config["server.port"])
    gc.freeze()
    gc.enable()
    async with listener, Cascade(config.providers) as cascade:
        await Daemon(config, cascade=cascade).run(listener, file=file)
