"""Which arcs of the product this process executes in which test, by coverage.py.

Data leaves the process in small pieces: whenever the test changes, every half second and at exit, so
that SIGKILL costs half a second of it. A thread that Python's ``threading`` does not know does so; it
is told of the next test over a socket, and answers when what belongs to the last one is out.

What was taken is subtracted from coverage's own sets instead of emptying them: another thread may
have added to them meanwhile. This needs coverage's collector itself; ``harness mutate`` chooses which
coverage.py is used, whatever the product has.
"""

from __future__ import annotations

import _thread
import atexit
import importlib
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False  # typing itself takes too long at every start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

#: Seconds between two pieces while a test runs.
_PIECE_S = 0.5

#: Seconds in which the process is told which test is running, before it starts without knowing.
_FIRST_S = 2.0


def start(request: dict[str, Any]) -> None:
    """Measure this process, and its forks, until they end."""
    Measurement(request)


class _Sink:
    """Stands where coverage's data file would: takes arcs by file."""

    def __init__(self) -> None:
        self.arcs: dict[str, set[tuple[int, int]]] = {}

    def add_arcs(self, arcs: dict[str, Iterable[tuple[int, int]]]) -> None:
        for name, pairs in arcs.items():
            self.arcs.setdefault(name, set()).update((first, last) for first, last in pairs)

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_arguments, **_named: None


class Measurement:
    """One process, and a copy of it in each fork."""

    def __init__(self, request: dict[str, Any]) -> None:
        # The copy that the request names: no library of the harness, nor of the product.
        coverage = importlib.import_module(_LIBRARY)
        self._request = request
        self._context = ""
        self._process = os.urandom(8).hex()
        self._boot = True
        self._known: dict[str, set[tuple[int, int]]] = {}
        self._connection: socket.socket | None = None
        self._buffer = b""
        # coverage calls back into locks of its own; a fork must find this one free.
        self._lock = _thread.allocate_lock()
        self._coverage: Any = coverage.Coverage(
            data_file=None,
            branch=True,
            include=[os.path.join(folder, "*") for folder in request["sources"]],
            config_file=False,
            messages=False,
            check_preimported=False,
            concurrency=_concurrency(),
        )
        self._coverage.set_option("run:core", "ctrace")
        self._coverage.set_option("run:disable_warnings", _WARNINGS)
        self._connect()
        self._coverage.start()
        collector: Any = self._coverage._collector
        collector._clear_data = lambda: None
        self._collector = collector
        _start_thread(self._serve)
        atexit.register(self.flush)
        # Processes of multiprocessing end without atexit.
        self._leave = os._exit
        os._exit = self._flush_and_leave
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._forked,
        )

    def flush(self) -> None:
        """Send what was executed since the last time."""
        with self._lock:
            self._flush()

    def _flush_and_leave(self, status: int) -> NoReturn:
        # A thread that holds the lock may be the one that was interrupted to end the process.
        if self._lock.acquire(timeout=_PIECE_S):
            self._flush()
        self._leave(status)

    def _flush(self) -> None:
        sink = _Sink()
        taken = {name: set(pairs) for name, pairs in self._collector.data.copy().items()}
        self._collector.covdata = sink
        self._collector.flush_data()
        fresh = {}
        for name, pairs in sink.arcs.items():
            known = self._known.setdefault(name, set())
            if new := pairs - known:
                fresh[name] = sorted(new)
                known |= new
        for name, pairs in taken.items():
            self._collector.data[name].difference_update(pairs)
        if fresh:
            self._send(context=self._context, boot=self._boot, arcs=fresh)

    def _send(self, **message: object) -> None:
        line = (json.dumps(dict(message, process=self._process)) + "\n").encode()
        if self._connection is not None:
            try:
                self._connection.sendall(line)
            except OSError:
                self._connection = None
            else:
                return
        name = f"{self._process}.jsonl"
        try:
            with open(os.path.join(self._request["folder"], name), "ab") as file:
                file.write(line)
        except OSError as error:
            sys.stderr.write(f"harness agent: coverage of {os.getpid()} is lost: {error}\n")

    # --- which test is running -----------------------------------------------------------------

    def _connect(self) -> None:
        """Ask which test is running; without an answer this process belongs to none."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_FIRST_S)
        self._buffer = b""
        try:
            connection.connect(self._request["socket"])
            piece = b"more"
            while piece and b"\n" not in self._buffer:
                piece = connection.recv(65536)
                self._buffer += piece
        except OSError:
            piece = b""
        if not piece:
            connection.close()
            return
        line, _, self._buffer = self._buffer.partition(b"\n")
        self._context = json.loads(line)["context"]
        self._connection = connection

    def _serve(self) -> None:
        """The thread: take the name of each test as it begins, and send pieces meanwhile."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        waiting = _thread.allocate_lock()
        waiting.acquire()
        connection = self._connection
        pid = os.getpid()
        if connection is not None:
            connection.settimeout(_PIECE_S)
        while os.getpid() == pid:
            if connection is None or connection is not self._connection:
                waiting.acquire(timeout=_PIECE_S)
                self.flush()
                continue
            try:
                piece = connection.recv(65536)
            except (TimeoutError, socket.timeout):
                self.flush()
                continue
            except OSError:
                piece = b""
            if not piece:
                connection = None
                continue
            self._buffer += piece
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                self._switch(json.loads(line))

    def _switch(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._flush()
            self._context = message["context"]
            self._boot = False
            self._known.clear()
            self._send(ack=message["number"])

    def _forked(self) -> None:
        """In the child: what the parent has not sent yet is the parent's to send."""
        self._lock.release()
        for pairs in self._collector.data.copy().values():
            pairs.clear()
        self._known.clear()
        self._process = os.urandom(8).hex()
        self._boot = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._connect()
        _start_thread(self._serve)


_LIBRARY = "coverage"
_WARNINGS = ["no-data-collected", "module-not-imported", "module-not-measured", "no-ctracer"]


def _concurrency() -> list[str]:
    """SQLAlchemy's asyncio runs on greenlets, which the tracer must know of."""
    from importlib.util import find_spec

    return ["thread", "greenlet"] if find_spec("greenlet") else ["thread"]


def _start_thread(target: Callable[[], None]) -> None:
    _thread.start_new_thread(target, ())
