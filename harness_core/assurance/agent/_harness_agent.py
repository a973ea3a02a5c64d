"""The agent of ``harness mutate`` in a process of the product. Plain standard library, any Python from 3.8.

It does nothing unless the environment variable ``HARNESS_AGENT`` names a request (JSON), its own or
that of a process above it: a sandbox that cleans the environment must not hide a process from its
campaign. A request names ``mode`` (``mutant`` or ``coverage``), ``folder`` (where messages are left
as lines of JSON), ``socket`` (who takes them where the folder cannot be written), and what its mode
needs.
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
_ANSWER_S = 2.0

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
    if request["mode"] == "mutant":
        damage(request)
    elif request["mode"] == "coverage":
        # The folder of the libraries that it needs is this Python's alone.
        sys.path.extend(request["libraries"])
        from importlib import import_module

        import_module("_harness_agent_coverage").start(request)


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


def report(request: dict[str, Any], **message: object) -> None:
    """Leave a message: a line in the folder, or over the socket where that cannot be written."""
    import json

    line = (json.dumps(dict(message, pid=os.getpid())) + "\n").encode()
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        # Several users may write to it: a product drops its privileges when it likes.
        descriptor = os.open(os.path.join(request["folder"], "messages.jsonl"), flags, 0o666)
    except OSError:
        _send(request["socket"], line)
        return
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _send(path: str, line: bytes) -> None:
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(path)
            connection.sendall(line)
    except OSError as error:
        sys.stderr.write(f"harness agent: no one takes {line!r}: {error}\n")


def damage(request: dict[str, Any]) -> None:
    """Let one file of the product be compiled with a change; its bytecode is neither read nor written."""
    from importlib.machinery import SourceFileLoader

    wanted: str = request["path"]
    plain_code, plain_exec = SourceFileLoader.get_code, SourceFileLoader.exec_module

    def get_code(self: Any, fullname: str) -> Any:
        if not _is(self.path, wanted):
            return plain_code(self, fullname)
        content = _damaged(request, self.get_data(self.path))
        if content is None:
            return plain_code(self, fullname)
        try:
            code = compile(content, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            report(request, stillborn=f"does not compile: {error!r}")
            raise
        report(request, loaded=request["id"])
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
                report(request, stillborn=f"does not import: {error!r}")
            raise

    for name, function in (("get_code", get_code), ("exec_module", exec_module)):
        setattr(SourceFileLoader, name, function)


def _is(path: str, wanted: str) -> bool:
    same_name = os.path.basename(path) == os.path.basename(wanted)
    return path == wanted or (same_name and os.path.realpath(path) == os.path.realpath(wanted))


def _damaged(request: dict[str, Any], content: bytes) -> bytes | None:
    """The source with its change, or None where it is not the source that the change was made for."""
    import hashlib

    found = hashlib.sha256(content).hexdigest()
    if found != request["sha256"]:
        text = "{}: found sha256 {}, expected {} as in the index of mutants".format(
            request["path"], found[:12], request["sha256"][:12]
        )
        sys.stderr.write(f"harness agent: stale: {text}\n")
        report(request, stale=text)
        return None
    instead: bytes = request["text"].encode()
    return content[: request["start"]] + instead + content[request["end"] :]
