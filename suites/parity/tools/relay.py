"""The tools as commands on a PATH whose calls come to the test itself, which answers each of them.

For a launcher that is a program: what it runs is seen, refused, made to fail or answered by the
models of the test's own world, as for a launcher that is a library.
"""

from __future__ import annotations

import marshal
import os
import secrets
import socket  # lint: allow driver: both ends are this test, which stands in for the tools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from suites.parity.compare import Call, Reply

__all__ = ["Relay"]

_LENGTH_BYTES: Final = 8

#: Without site-packages and user settings a command takes as little time as Python can. Its
#: environment is read from the kernel: Python may have added to its own.
_COMMAND: Final = """#!{python} -IS
import _socket, marshal, os, sys
block = open("/proc/self/environ", "rb").read()
env = dict(entry.partition(b"=")[::2] for entry in block.split(b"\\0") if b"=" in entry)
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
sent = marshal.dumps((list(map(os.fsencode, words)), env))
link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    link.connect({address!r})
    link.sendall(len(sent).to_bytes(8, "big") + sent)
    content = b""
    while part := link.recv(1 << 16):
        content += part
except OSError:
    content = b""
if not content:
    os._exit(137)
status, out, err = marshal.loads(content)
for number, text in ((1, out), (2, err)):
    while text:
        text = text[os.write(number, text):]
os._exit(status)
"""


class Relay:
    """The commands in a folder.

    Args:
        folder: where they are put.
        tools: their names.
    """

    def __init__(self, folder: Path, tools: Iterable[str]) -> None:
        self.folder = folder
        self._tools = tuple(tools)
        folder.mkdir(parents=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address = "\0parity-" + secrets.token_hex(12)
        self._listener.bind(address)
        self._listener.listen(16)
        self._text = _COMMAND.replace("{python}", sys.executable).replace(
            "{address!r}", repr(address)
        )

    def fileno(self) -> int:
        """The descriptor that is readable when a command was run."""
        return self._listener.fileno()

    def close(self) -> None:
        """Answer nobody any more."""
        self._listener.close()

    def offer(self, *, without: Iterable[str]) -> None:
        """Let the folder have each tool but these."""
        missing = set(without)
        for name in self._tools:
            command = self.folder / name
            if name in missing:
                command.unlink(missing_ok=True)
            elif not command.exists():
                command.write_text(self._text)
                command.chmod(0o755)

    def serve(self, answer: Callable[[Call], Reply]) -> None:
        """Take one call and answer it.

        What ``answer`` raises passes, and the command ends as if it had been killed.
        """
        link, _ = self._listener.accept()
        with link:
            received = _received(link)
            if received is None:
                return
            argv, env = received
            call = Call(
                argv=tuple(map(os.fsdecode, argv)),
                env={os.fsdecode(name): os.fsdecode(value) for name, value in env.items()},
            )
            reply = answer(call)
            link.sendall(marshal.dumps((reply.returncode, reply.stdout, reply.stderr)))


def _received(link: socket.socket) -> Any:
    """What a command sent; ``None`` when it was killed meanwhile."""
    length = int.from_bytes(_read(link, _LENGTH_BYTES), "big")
    content = _read(link, length)
    # Our own command wrote it.
    return marshal.loads(content) if content else None


def _read(link: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (part := link.recv(count - len(content))):
        content += part
    return content if len(content) == count else b""
