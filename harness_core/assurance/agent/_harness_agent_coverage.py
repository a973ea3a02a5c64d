"""Which arcs of the product this process executes in which test, by coverage.py.

Data leaves the process in small pieces: whenever the test changes or somebody asks, every half second
and at exit, so that SIGKILL costs half a second of it at most. A thread that Python's ``threading`` does
not know does so; it is told of the next test over a socket, and answers when what belongs to the last
one is out. Before a call that the kernel refuses to a process of several threads it ends; forks begin
one of their own.

What was taken is subtracted from coverage's own sets instead of emptying them: another thread may
have added to them meanwhile. This needs coverage's collector itself; ``harness mutate`` chooses which
coverage.py is used, whatever the product has.
"""

from __future__ import annotations

import _socket
import _thread
import atexit
import importlib
import json
import os
import signal
import sys
import time

TYPE_CHECKING = False  # typing itself takes too long at every start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

#: Seconds between two pieces while a test runs.
_PIECE_S = 0.5

#: Seconds in which the thread has ended: it does nothing that takes long.
_END_S = 1.0

#: As they are before a product puts others in their place, as gevent does.
_start_thread, _allocate_lock = _thread.start_new_thread, _thread.allocate_lock

#: What the kernel refuses to a process of several threads, where it makes or enters a user namespace.
_ALONE = ("unshare", "setns")


def start(request: dict[str, Any], way: Any) -> None:
    """Measure this process, and its forks, until they end."""
    measurement = Measurement(request, way)
    _flush_before_exec(measurement)
    _be_alone_where_asked(measurement)


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

    def __init__(self, request: dict[str, Any], way: Any) -> None:
        self._way = way
        self._context = ""
        self._process = os.urandom(8).hex()
        self._boot = True
        self._known: dict[str, set[tuple[int, int]]] = {}
        self._connection: Any = None
        self._buffer = b""
        # First: a process that is ended while it imports has been heard of.
        self._connect()
        # The copy that the request names: no library of the harness, nor of the product.
        coverage = importlib.import_module(_LIBRARY)
        # coverage calls back into locks of its own; a fork must find this one free.
        self._lock = _allocate_lock()
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
        self._coverage.start()
        collector: Any = self._coverage._collector
        collector._clear_data = lambda: None
        self._collector = collector
        self._start_serving()
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

    def flush_last(self) -> None:
        """The same, before the process ends or becomes another program."""
        # A thread that holds the lock may be the one that was interrupted to end the process.
        if self._lock.acquire(timeout=_PIECE_S):
            try:
                self._flush()
            finally:
                self._lock.release()

    def _flush_and_leave(self, status: int) -> NoReturn:
        self.flush_last()
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
                self._connection.send(line)
            except OSError:
                self._disconnect()
            else:
                return
        try:
            self._way.leave(f"{self._process}.jsonl", line)
        except OSError as error:
            sys.stderr.write(f"harness agent: coverage of {os.getpid()} is lost: {error}\n")

    # --- which test is running -----------------------------------------------------------------

    def _connect(self) -> None:
        """Ask which test is running; without an answer it stays the one that is known, or none."""
        try:
            connection = self._way.connect()
        except OSError:
            return
        self._buffer = b""
        piece = b"more"
        try:
            while piece and b"\n" not in self._buffer:
                piece = connection.receive()
                self._buffer += piece
        except OSError:
            piece = b""
        if not piece:
            connection.close()
            return
        line, _, self._buffer = self._buffer.partition(b"\n")
        self._context = json.loads(line)["context"]
        connection.limit(_PIECE_S)
        self._connection = connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _start_serving(self) -> None:
        """Begin the thread; where there can be none, what is executed is sent at the end."""
        self._stop, self._began = _held(), _held()
        self._thread = 0
        try:
            _start_thread(self._serve, (self._stop, self._began))
        except RuntimeError:
            # A limit of the process, or it has made namespaces: whoever waits for answers is told.
            self._disconnect()
            self._began.release()

    def _serve(self, stop: _thread.LockType, began: _thread.LockType) -> None:
        """The thread: take the name of each test as it begins, and send pieces meanwhile."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self._thread = _thread.get_native_id()
        began.release()
        while stop is self._stop:
            connection = self._connection
            if connection is None:
                if stop.acquire(timeout=_PIECE_S):
                    return
                self._reconnect()
                continue
            try:
                piece = connection.receive()
            except (TimeoutError, _socket.timeout):
                self.flush()
                continue
            except OSError:
                piece = b""
            if stop is not self._stop:
                return
            if not piece:
                with self._lock:
                    self._disconnect()
                continue
            self._buffer += piece
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                message = json.loads(line)
                self._switch(message["context"], number=message["number"])

    def _reconnect(self) -> None:
        """The product may have closed the connection; it may also be that no one listens any more."""
        with self._lock:
            self._flush()
            before = self._context
            self._connect()
            if self._context != before:
                self._boot = False
                self._known.clear()

    def _switch(self, context: str, *, number: int) -> None:
        with self._lock:
            self._flush()
            # The same once more asks only for what was executed so far.
            if context != self._context:
                self._context = context
                self._boot = False
                self._known.clear()
            self._send(ack=number)

    def alone(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call without the thread: the kernel refuses it to a process that has several."""
        with self._lock:
            self._flush()
            stop, self._stop = self._stop, _held()
            if self._connection is not None:
                self._connection.end()
            stop.release()
        if self._began.acquire(timeout=_END_S) and self._thread:
            _wait_for_end(self._thread)
        try:
            return call(*arguments)
        finally:
            with self._lock:
                self._disconnect()
                self._connect()
                self._start_serving()

    def _forked(self) -> None:
        """In the child: what the parent has not sent yet is the parent's to send."""
        self._lock.release()
        for pairs in self._collector.data.copy().values():
            pairs.clear()
        self._known.clear()
        self._process = os.urandom(8).hex()
        self._boot = True
        self._disconnect()
        self._connect()
        self._start_serving()


def _held() -> _thread.LockType:
    lock = _allocate_lock()
    lock.acquire()
    return lock


def _wait_for_end(thread: int) -> None:
    """Until the kernel has no such thread of this process; without ``/proc`` no one can tell."""
    until, pause = time.monotonic() + _END_S, _held()
    while os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < until:
        pause.acquire(timeout=0.001)


def _flush_before_exec(measurement: Measurement) -> None:
    """What a fork executed before it becomes another program is not lost."""

    def flushing(plain: Callable[..., Any]) -> Callable[..., Any]:
        def execute(*arguments: Any, **named: Any) -> Any:
            measurement.flush_last()
            return plain(*arguments, **named)

        return execute

    for name in ("execv", "execve"):
        setattr(os, name, flushing(getattr(os, name)))
    _flush_before_exec_in_c(measurement)


def _flush_before_exec_in_c(measurement: Measurement) -> None:
    """The same for ``preexec_fn`` of subprocess: no Python follows it."""

    def flushing(prepare: Callable[[], object]) -> Callable[[], None]:
        def prepare_and_flush() -> None:
            try:
                prepare()
            finally:
                measurement.flush_last()

        return prepare_and_flush

    try:
        library: Any = importlib.import_module("_posixsubprocess")
    except ImportError:
        return
    plain = library.fork_exec

    def fork_exec(*arguments: Any) -> Any:
        # Where it stands differs between versions of Python; nothing else is a function.
        return plain(*(flushing(each) if callable(each) else each for each in arguments))

    library.fork_exec = fork_exec
    if "subprocess" in sys.modules:
        sys.modules["subprocess"]._fork_exec = fork_exec  # type: ignore[attr-defined] # private


def _be_alone_where_asked(measurement: Measurement) -> None:
    """Have a product walled off as it is without us; ``os`` has such calls since Python 3.12."""

    def alone(plain: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: measurement.alone(plain, *arguments)

    for name in _ALONE:
        if hasattr(os, name):
            setattr(os, name, alone(getattr(os, name)))
    try:
        ctypes = importlib.import_module("ctypes")
    except ImportError:
        return
    plain = ctypes.CDLL.__getitem__

    def found(library: Any, name: Any) -> Any:
        if name not in _ALONE:
            return plain(library, name)
        function = library._FuncPtr

        class Alone(function):  # type: ignore[misc, valid-type] # what it is depends on the library
            _flags_ = function._flags_
            _restype_ = function._restype_

            def __call__(self, *arguments: Any) -> Any:
                return measurement.alone(super().__call__, *arguments)

        made = Alone((name, library))
        made.__name__ = name
        return made

    ctypes.CDLL.__getitem__ = found


_LIBRARY = "coverage"
_WARNINGS = ["no-data-collected", "module-not-imported", "module-not-measured", "no-ctracer"]


def _concurrency() -> list[str]:
    """SQLAlchemy's asyncio runs on greenlets, which the tracer must know of."""
    from importlib.util import find_spec

    return ["thread", "greenlet"] if find_spec("greenlet") else ["thread"]
