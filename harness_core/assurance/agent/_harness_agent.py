"""The agent of ``harness mutate`` in a process of the product. Plain standard library, any Python from 3.8.

It does nothing unless the environment variable ``HARNESS_AGENT`` names a request (JSON), its own or
that of a process above it: a sandbox that cleans the environment must not hide a process from its
campaign. A request names ``mode`` (``mutant`` or ``coverage``), ``folder`` (where messages are left
as lines of JSON), ``socket`` (who takes them where the folder cannot be written), and what its mode
needs.

A process of a fork server goes behind walls after it was reached. So the folder is kept open: from
there neither it nor the socket is found by its path.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself takes too long at every start
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_VARIABLE = "HARNESS_AGENT"

#: A product's process is not deeper below its test than this.
_ABOVE = 32

#: Seconds in which whoever listens answers; it runs on the same machine and does little else.
_ANSWER_S = 10.0

#: Descriptors of ours lie above the first of these that the process may have: programs give low
#: numbers a meaning, and put there what they like.
_HIGH = (700, 200, 50)

_done: list[str] = []


def start() -> None:
    """Do what is asked, once; a mistake of the agent's own must not change how the product starts."""
    path = find_request()
    if _done or path is None:
        return
    _done.append(path)
    try:
        import json

        with open(path, encoding="utf-8") as file:
            request = json.load(file)
        activate(request)
    except Exception as error:
        sys.stderr.write(f"harness agent: cannot do what {path} asks: {error!r}\n")


def activate(request: dict[str, Any]) -> None:
    """Do what a request asks of this process."""
    # A product that keeps more than bytecode beside its code may go by this: it is not to use it.
    sys.dont_write_bytecode = True
    way = Way(request)
    if request["mode"] == "mutant":
        damage(request, way)
    elif request["mode"] == "coverage":
        # The folder of the libraries that it needs is this Python's alone.
        sys.path.extend(request["libraries"])
        from importlib import import_module

        try:
            import_module("_harness_agent_coverage").start(request, way)
        except Exception as error:
            way.report(failed=repr(error))
            raise


def find_request() -> str | None:
    """The path of the request: this process's own, else that of the nearest process above with one.

    A pytest worker leaves one of its own, named by its pid, beside the one of the whole run.
    """
    path = os.environ.get(_VARIABLE)
    pid, seen = os.getpid(), []
    for _ in range(_ABOVE):
        seen.append(pid)
        if path:
            own = (os.path.join(os.path.dirname(path), f"agent-{p}.json") for p in seen)
            found = next(filter(os.path.exists, own), None)
            if found or "agent-" in os.path.basename(path):
                return found or path
        pid = _parent(pid)
        if pid < 1:
            break
        path = path or _variable_of(pid)
    return path


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may have anything in it.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _variable_of(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read()
    except OSError:
        return None
    begin = _VARIABLE.encode() + b"="
    for entry in content.split(b"\0"):
        if entry.startswith(begin):
            return os.fsdecode(entry[len(begin) :])
    return None


class Kept:
    """A descriptor that the product knows nothing of.

    It may close it all the same, with all others perhaps, and have something else at its number: so
    it is looked at before each use.
    """

    def __init__(self, descriptor: int) -> None:
        self.number = _moved(descriptor)
        self._is = self._seen()

    def is_ours(self) -> bool:
        """Whether it is what it was."""
        return self._is is not None and self._seen() == self._is

    def _seen(self) -> tuple[int, int] | None:
        try:
            found = os.fstat(self.number)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _moved(descriptor: int) -> int:
    import fcntl

    for lowest in _HIGH:
        try:
            number = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        os.close(descriptor)
        return number
    return descriptor


class Connection:
    """To whoever listens; OSError once it is lost."""

    def __init__(self, plain: Any) -> None:
        # Not the module socket, here and below: a product may have put gevent's in its place.
        import _socket

        self._kept = Kept(plain.detach())
        self._socket = _socket.socket(fileno=self._kept.number)
        self.limit(_ANSWER_S)

    def limit(self, seconds: float) -> None:
        """How long each of the following may take."""
        self._socket.settimeout(seconds)

    def send(self, line: bytes) -> None:
        """Send all of it."""
        self._look()
        self._socket.sendall(line)

    def receive(self) -> bytes:
        """What has arrived, at least a byte; none at the end."""
        self._look()
        return self._socket.recv(65536)

    def end(self) -> None:
        """Say that nothing more comes; whoever receives is told so at once."""
        import _socket

        try:
            self._look()
            self._socket.shutdown(_socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already

    def close(self) -> None:
        """Close it, unless its number is somebody else's by now."""
        if self._kept.is_ours():
            self._socket.close()
        else:
            self._socket.detach()

    def _look(self) -> None:
        if not self._kept.is_ours():
            raise OSError("the product has closed the connection")


class Way:
    """How this process, and each fork of it, speaks to the harness from wherever it goes."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._path: str = request["folder"]
        self._socket: str = request["socket"]
        self._folder: Kept | None = None
        try:
            self._folder = Kept(os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError:
            return  # a sandbox may hide it: the socket may be there

    def connect(self) -> Connection:
        """A connection to whoever listens; OSError where no one can be reached."""
        import _socket

        places = [self._socket]
        if self._folder is not None and self._folder.is_ours():
            name = os.path.basename(self._socket)
            places.append(f"/proc/self/fd/{self._folder.number}/{name}")
        missing: OSError | None = None
        for place in places:
            plain = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            plain.settimeout(_ANSWER_S)
            try:
                plain.connect(place)
            except OSError as error:
                plain.close()
                missing = missing or error
                continue
            return Connection(plain)
        assert missing is not None
        raise missing

    def leave(self, name: str, line: bytes) -> None:
        """Add a line to a file of the folder; OSError where that cannot be written."""
        # Several users may write to it: a product drops its privileges when it likes.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        if self._folder is not None and self._folder.is_ours():
            descriptor = os.open(name, flags, 0o666, dir_fd=self._folder.number)
        else:
            descriptor = os.open(os.path.join(self._path, name), flags, 0o666)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def report(self, **message: object) -> None:
        """Leave a message: a line in the folder, or over the socket where that cannot be written."""
        import json

        line = (json.dumps(dict(message, pid=os.getpid())) + "\n").encode()
        try:
            self.leave("messages.jsonl", line)
        except OSError:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        try:
            connection = self.connect()
            try:
                connection.send(line)
            finally:
                connection.close()
        except OSError as error:
            sys.stderr.write(f"harness agent: no one takes {line!r}: {error}\n")


def damage(request: dict[str, Any], way: Way) -> None:
    """Let one file of the product be compiled with a change; its bytecode is neither read nor written."""
    from importlib.machinery import SourceFileLoader

    wanted: str = request["path"]
    plain_code, plain_exec = SourceFileLoader.get_code, SourceFileLoader.exec_module

    def get_code(self: Any, fullname: str) -> Any:
        if not _is(self.path, wanted):
            return plain_code(self, fullname)
        content = _damaged(request, way, self.get_data(self.path))
        if content is None:
            return plain_code(self, fullname)
        try:
            code = compile(content, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            way.report(stillborn=f"does not compile: {error!r}")
            raise
        way.report(loaded=request["id"])
        return code

    def exec_module(self: Any, module: ModuleType) -> None:
        if not _is(self.path, wanted):
            plain_exec(self, module)
            return
        try:
            plain_exec(self, module)
        except BaseException as error:
            # A module that asks the process to end has been imported as far as it wants to be.
            if not isinstance(error, (SystemExit, KeyboardInterrupt)):
                way.report(stillborn=f"does not import: {error!r}")
            raise

    for name, function in (("get_code", get_code), ("exec_module", exec_module)):
        setattr(SourceFileLoader, name, function)


def _is(path: str, wanted: str) -> bool:
    same_name = os.path.basename(path) == os.path.basename(wanted)
    return path == wanted or (same_name and os.path.realpath(path) == os.path.realpath(wanted))


def _damaged(request: dict[str, Any], way: Way, content: bytes) -> bytes | None:
    """The source with its change, or None where it is not the source that the change was made for."""
    import hashlib

    found = hashlib.sha256(content).hexdigest()
    if found != request["sha256"]:
        text = "{}: found sha256 {}, expected {} as in the index of mutants".format(
            request["path"], found[:12], request["sha256"][:12]
        )
        sys.stderr.write(f"harness agent: stale: {text}\n")
        way.report(stale=text)
        return None
    instead: bytes = request["text"].encode()
    return content[: request["start"]] + instead + content[request["end"] :]
