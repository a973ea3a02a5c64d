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
from sexpd.connection import Connection, Traffic
from sexpd.errors import SexpdError
from sexpd.gateways import Links
from sexpd.health import Health
from sexpd.pipeline import Pipeline
from sexpd.providers import Cascade
from sexpd.router import Parts, Router
from sexpd.shell.actuator import Shell
from sexpd.skills import Registry

BACKLOG = 256
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Daemon:
    """Everything that lives between start and stop."""

    def __init__(self, config: Config, *, cascade: Cascade) -> None:
        self._config, self._cascade = config, cascade
        self._skills = Registry(config.skills)
        self._shell = Shell(config)
        health = Health(config, skills=self._skills, cascade=cascade, shell=self._shell)
        self._pipeline = health.pipeline = Pipeline(
            config, skills=self._skills, cascade=cascade, shell=self._shell, health=health.report
        )
        parts = Parts(
            health=health, links=Links(config.data), pipeline=self._pipeline, shell=self._shell,
            skills=self._skills, status=self.status, stop=self.stop,
        )
        self._router = Router(config, parts)
        self._traffic = Traffic()
        self._port = 0
        self._refusing = 0
        self._began = time.monotonic()
        self._stop = trio.Event()

    def stop(self, reason: str) -> None:
        """Begin to stop; what is under way has `limits.stop_s` to end."""
        if not self._stop.is_set():
            log.info("daemon.stopping", reason=reason)
            self._stop.set()

    def status(self) -> dict[str, Any]:
        """Numbers about this process, for the wire."""
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "port": self._port,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "connections": len(self._traffic.open),
            "connections_opened": self._traffic.opened,
            "frames": self._traffic.frames,
            "malformed": self._traffic.malformed,
            "open_files": len(os.listdir("/proc/self/fd")) - 1,
            "peak_memory_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "pipeline_busy": self._pipeline.busy,
        }

    # --- A life ---

    async def run(self, listener: trio.SocketListener) -> None:
        """Serve until stopped."""
        self._port = listener.socket.getsockname()[1]
        # Signals are received before the daemon is announced.
        with trio.open_signal_receiver(*SIGNALS) as signals:
            await self._serve(listener, signals=signals)
        log.info("daemon.stopped", frames=self._traffic.frames, malformed=self._traffic.malformed)

    async def _serve(
        self, listener: trio.SocketListener, *, signals: AsyncIterator[int]
    ) -> None:
        async with trio.open_nursery() as everything:
            everything.start_soon(self._stop_on, signals)
            everything.start_soon(self._pipeline.run)
            everything.start_soon(self._cascade.prepare)
            self._skills.refresh()
            with _port_file(self._config["server.port_file"], self._port):
                print(f"sexpd: listening on {self._config['server.host']}:{self._port}", flush=True)
                log.info("daemon.ready", port=self._port, pid=os.getpid(), root=self._shell.root,
                         confined=self._shell.confined)
                await self._accept_until_stopped(listener, everything)
            stop_s = 0 if faults.on("stop-cuts-answers") else self._config["limits.stop_s"]
            with trio.move_on_after(stop_s):
                while self._traffic.working:
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
                subprocess.Popen(["sleep", "3600"], pass_fds=[listener.socket.fileno()])
            accepting.cancel_scope.cancel()

    async def _stop_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            self.stop(signal.Signals(number).name)

    # --- Connections ---

    async def _client(self, stream: trio.SocketStream) -> None:
        self._traffic.opened += 1
        connection = Connection(
            stream, config=self._config, router=self._router, traffic=self._traffic,
            number=self._traffic.opened,
        )
        limit = self._config["limits.connections"]
        if len(self._traffic.open) >= limit and not self._make_room(limit):
            connection.evict(f"there are {limit} connections already")
            self._refusing += 1
            try:
                # More than this at once are closed without a word: words cost time and memory.
                await (connection.serve() if self._refusing <= limit else stream.aclose())
            finally:
                self._refusing -= 1
            return
        self._traffic.open[connection.number] = connection
        try:
            await connection.serve()
        except Exception as error:  # the edge of a connection: its failure is its own
            log.error("connection.failed", number=connection.number, error=log.place(error))
        finally:
            self._traffic.open.pop(connection.number, None)

    def _make_room(self, limit: int) -> bool:
        """Send away the oldest client that never sent a frame; False when there is none."""
        if len(self._traffic.open) >= 2 * limit:  # those sent away take a moment to go
            return False
        for connection in self._traffic.open.values():
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
        raise SexpdError(f"cannot listen on {host}:{port}: {error.strerror}. {advice}") from error
    return trio.SocketListener(sock)


@contextlib.contextmanager
def _port_file(file: Path, port: int) -> Iterator[None]:
    """A file that holds the port for as long as the daemon listens there."""
    try:
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(f"{port}\n")
        beside.replace(file)
    except OSError as error:
        raise SexpdError(f"cannot write {file}: {error.strerror}. Name another file") from error
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
            raise SexpdError(
                f"cannot make {directory}: {error.strerror}. Name another directory"
            ) from error
    listener = await listen(config["server.host"], config["server.port"])
    gc.freeze()
    gc.enable()
    async with listener, Cascade(config.providers) as cascade:
        await Daemon(config, cascade=cascade).run(listener)
