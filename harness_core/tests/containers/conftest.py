"""An engine, its images, a run, and a relay that can make an engine misbehave."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness_core.base.evidence import Evidence, open_evidence
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import build_images, engine_client, image_tag
from harness_core.infrastructure.engine import Engine, find_engine
from harness_core.process import Run, open_run


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine of this machine."""
    return find_engine()


@pytest.fixture(scope="session")
def images(engine: Engine) -> None:
    """The images of PostgreSQL, built when they are missing or outdated."""
    build_images(engine, names=("postgres-baked",), say=print)


@pytest.fixture(scope="session")
def base(images: None) -> str:
    """An image with a shell in it."""
    return image_tag("base")


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """A directory for logs."""
    return open_evidence(tmp_path / "evidence")


@pytest.fixture
async def run(evidence: Evidence) -> AsyncIterator[Run]:
    """A run of its own for each test."""
    async with open_run(evidence=evidence) as opened:
        yield opened


@pytest.fixture
def names(engine: Engine) -> Callable[[], set[str]]:
    """The names of all containers in the engine now."""

    def look() -> set[str]:
        with engine_client(engine) as client:
            # Sparse: asking after each would fail on one that goes in between.
            found = client.containers.list(all=True, sparse=True)
        return {each.attrs["Names"][0].removeprefix("/") for each in found}

    return look


@pytest.fixture
def sweep_now() -> Callable[[], subprocess.CompletedProcess[str]]:
    """``harness sweep`` as a person runs it."""
    argv = [sys.executable, "-m", "harness_core.front.cli", "sweep"]
    return lambda: subprocess.run(argv, capture_output=True, text=True, check=False)


class Relay:
    """A socket in front of an engine: passes everything on, until ``answer`` is set.

    Attributes:
        url: for ``DOCKER_HOST``.
        answer: given the first line of a request, ``None`` to pass it on, the bytes to answer
            with instead, or ``b""`` to stay silent for ever.
    """

    def __init__(self, path: Path, target: str) -> None:
        self.url = f"unix://{path}"
        self.seen: list[str] = []
        self.answer: Callable[[str], bytes | None] = lambda _line: None
        relay = self
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                relay._serve(self.request, target)

        self.server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self._path = path

    def stop(self) -> None:
        """What a stopped engine is to its clients: open connections break, new ones fail."""
        if not self._closing.is_set():
            self._closing.set()
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()
            self._path.unlink()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve(self, client: socket.socket, target: str) -> None:
        with socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(target.removeprefix("unix://"))
            self._open |= {client, upstream}
            back = threading.Thread(target=_pump, args=(upstream, client))
            back.start()
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    line = data.split(b"\r\n", 1)[0].decode("latin-1")
                    reply = None
                    if line.endswith("HTTP/1.1"):
                        self.seen.append(line)
                        reply = self.answer(line)
                    if reply is None:
                        upstream.sendall(data)
                    elif reply:
                        client.sendall(reply)
                    else:
                        self._closing.wait()
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)
            back.join()
            self._open -= {client, upstream}


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay before the engine, which everything of the test goes through."""
    if not engine.url.startswith("unix://"):
        not_run("options", "the relay stands before a unix socket, and DOCKER_HOST names another")
    made = Relay(Path(os.path.realpath(tmp_path)) / "engine.sock", engine.url)
    monkeypatch.setenv("DOCKER_HOST", made.url)
    try:
        yield made
    finally:
        made.stop()
