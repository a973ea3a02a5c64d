"""Our end of the warden's control socket."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any, Final

import trio

from harness_core.base.errors import BadInput, HarnessError
from harness_core.process import _warden
from harness_core.process._child import Child

_HEADER: Final = _warden.HEADER
_RECEIVE_BYTES: Final = 65_536


class WardenClient:
    """Requests out, answers and exits in."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._lock = trio.Lock()
        self._next_id = 0
        self._answers: dict[int, tuple[trio.Event, dict[str, Any]]] = {}
        self._children: dict[int, Child] = {}
        #: Spawned, but its Child is not made yet: pid -> exit status once it has one.
        self._unwatched: dict[int, int | None] = {}
        #: Numbers of spawn requests whose caller was cancelled before the answer came.
        self._abandoned: set[int] = set()
        self._gone = False

    async def spawn(self, request: dict[str, Any], *, fds: Sequence[int]) -> dict[str, Any]:
        return await self._ask({**request, "fds": len(fds)}, fds=fds)

    async def descendants(self) -> list[dict[str, Any]]:
        answer = await self._ask({"op": "descendants"}, fds=())
        found: list[dict[str, Any]] = answer["descendants"]
        return found

    def watch(self, child: Child) -> None:
        """Tell ``child`` when its process exits, even when it already has."""
        returncode = self._unwatched.pop(child.pid)
        if returncode is not None:
            child._note_exit(returncode)  # noqa: SLF001
        else:
            self._children[child.pid] = child

    async def _ask(self, request: dict[str, Any], *, fds: Sequence[int]) -> dict[str, Any]:
        self._next_id += 1
        number = self._next_id
        answered = trio.Event()
        answer: dict[str, Any] = {}
        payload = json.dumps({**request, "id": number}).encode()
        if len(payload) > _warden.FRAME_BYTES:
            raise BadInput(
                request.get("name", "run"),
                key="argv and env",
                found=f"{len(payload)} bytes",
                expected=f"at most {_warden.FRAME_BYTES}",
            )
        self._answers[number] = (answered, answer)
        # Shielded: a frame sent in part would garble every later one.
        with trio.CancelScope(shield=True):
            async with self._lock:
                await self._send(_HEADER.pack(len(payload)) + payload, fds)
        try:
            await answered.wait()
        except trio.Cancelled:
            if not self._end_unwanted(answer):
                self._abandoned.add(number)
            raise
        if self._gone:
            action = "speak to the run's warden process"
            raise HarnessError(
                action,
                observed="it has ended",
                next_step="Its children died with it, and the end of the run ends the rest; run again",
            )
        return answer

    async def _send(self, data: bytes, fds: Sequence[int]) -> None:
        sock = self._stream.socket
        sent = 0
        while sent == 0:
            try:
                if fds:
                    raw = socket.socket(fileno=os.dup(sock.fileno()))
                    with raw:
                        sent = socket.send_fds(raw, [data], list(fds))
                else:
                    break
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
            except (BrokenPipeError, ConnectionResetError):
                self._note_gone()
                return
        try:
            await self._stream.send_all(data[sent:])
        except trio.BrokenResourceError:
            self._note_gone()

    @trio.lowlevel.enable_ki_protection
    async def read(self, scope: trio.CancelScope) -> None:
        """Hand out answers and exits until the warden closes its end.

        Runs in a shielded scope: whoever cancels the run still needs the exits of its children.
        Ctrl-C is for the main task, which needs them too.
        """
        buffer = bytearray()
        with scope:
            await self._read(buffer)

    async def _read(self, buffer: bytearray) -> None:
        while True:
            try:
                data = await self._stream.receive_some(_RECEIVE_BYTES)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                self._note_gone()
                return
            buffer += data
            while len(buffer) >= _HEADER.size:
                (length,) = _HEADER.unpack_from(buffer)
                if len(buffer) < _HEADER.size + length:
                    break
                message = json.loads(buffer[_HEADER.size : _HEADER.size + length])
                del buffer[: _HEADER.size + length]
                self._dispatch(message)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "exit" in message:
            child = self._children.pop(message["exit"], None)
            if child is not None:
                child._note_exit(message["returncode"])  # noqa: SLF001
            elif message["exit"] in self._unwatched:
                self._unwatched[message["exit"]] = message["returncode"]
            # Anything else is an orphan that the warden adopted and reaped.
            return
        answered, answer = self._answers.pop(message["id"])
        if message["id"] in self._abandoned:
            self._abandoned.discard(message["id"])
            self._end_unwanted(message)
            return
        answer.update(message)
        if "pid" in message:
            self._unwatched[message["pid"]] = None
        answered.set()

    def _end_unwanted(self, answer: dict[str, Any]) -> bool:
        """End a child whose caller was cancelled while it started; whether the answer is known."""
        pid = answer.get("pid")
        if pid is not None:
            self._unwatched.pop(pid, None)
            if _warden.runs(pid, answer["start"]):
                os.killpg(pid, signal.SIGKILL)
        return bool(answer)

    def _note_gone(self) -> None:
        self._gone = True
        for answered, _ in self._answers.values():
            answered.set()
        self._answers.clear()
        for child in self._children.values():
            child._note_exit(-signal.SIGKILL)  # noqa: SLF001 - it dies with its warden
        self._children.clear()
