"""One client: its frames in, its replies out, and nothing of it in another client's way.

Requests go through a short queue to one task, so replies come in order, those of health checks too,
and a client that asks faster than it is answered is read no further.
Every wait has a bound: for a frame that has begun, for the next one, for the client to take a reply.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import trio

from sexpd import faults, log, messages
from sexpd.config import Config
from sexpd.evaluate import evaluate
from sexpd.frames import FrameError, FrameReader, frame
from sexpd.router import Router
from sexpd.sexpr import ReadError, as_plist, read, write

CHUNK_BYTES = 65536
LONG_CHARS = 16384
LINGER_S = 0.5
LINGER_BYTES = 1 << 22


class Gone(Exception):
    """The client is not there any more, or takes nothing."""


class Traffic:
    """What the connections of a daemon share: which are open, and what went over all of them."""

    def __init__(self) -> None:
        self.frames = 0
        self.malformed = 0
        self.opened = 0
        self.working = 0
        self.open: dict[int, Connection] = {}
        self.kept: list[bytearray] = []  # filled by a planted fault only
        self.one_reads = trio.Lock()  # taken by a planted fault only

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """A request that a stop waits for."""
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1


class Connection:
    """A client and its socket."""

    def __init__(
        self,
        stream: trio.SocketStream,
        *,
        config: Config,
        router: Router,
        traffic: Traffic,
        number: int,
    ) -> None:
        self.number = number
        self.spoken = False
        self._stream, self._config = stream, config
        self._router, self._traffic = router, traffic
        self._sending = trio.Lock()
        self._scope = trio.CancelScope()
        self.evicted = ""
        self._midway = False
        self._asked = 0
        self._answered_at = trio.current_time()

    # --- Out ---

    async def send(self, message: list[Any]) -> None:
        """Send a message; messages never mix.

        Raises:
            Gone: the client did not take it in time.
        """
        raw = frame(write(message))
        with trio.move_on_after(self._config["limits.write_s"]) as scope:
            try:
                async with self._sending:
                    self._midway = True
                    await self._stream.send_all(raw)
                    self._midway = False
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise Gone("the client is gone") from error
        if scope.cancelled_caught:
            # Half a message may be out: nothing can follow it.
            self._stream.socket.close()
            raise Gone(f"the client took nothing for {self._config['limits.write_s']:g} s")

    async def reply(self, message: list[Any]) -> None:
        """Send what answers a request of this client."""
        if faults.on("reply-wrong-connection"):
            await self._traffic.open[max(self._traffic.open)].send(message)
        else:
            await self.send(message)

    def evict(self, reason: str) -> None:
        """Make room for another: say why and close."""
        self.evicted = reason
        self._scope.cancel()

    # --- A life ---

    async def serve(self) -> None:
        """Greet, read and answer until either side has enough."""
        reason = "closed by the client"
        try:
            with self._scope:
                reason = await self._converse() or reason
            if self.evicted:
                reason = self.evicted
                await self._last_words(f"closing: {reason}", level="WARN")
        except Gone as gone:
            reason = str(gone)
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(1):
                await self._stream.aclose()
            log.info("connection.closed", number=self.number, reason=reason)

    async def _converse(self) -> str:
        await self.send(messages.handshake(shutdown=self._config["server.shutdown_command"]))
        problem = ""
        requests, inbox = trio.open_memory_channel[dict[str, Any]](self._config["limits.waiting"])
        gone: Gone | None = None

        async def work() -> None:
            """Answer one request after the other; a client that is gone ends the whole."""
            nonlocal gone
            try:
                async for request in inbox:
                    with self._traffic.at_work():
                        await self._router.handle(self, request)
                    self._asked -= 1
                    self._answered_at = trio.current_time()
            except Gone as error:
                gone = error
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            async with requests:
                try:
                    await self._read(requests)
                except (FrameError, ReadError) as error:
                    problem = str(error)
                except Gone as error:
                    gone = error
                    nursery.cancel_scope.cancel()
            if problem:
                # What was asked before is answered first, for as long as a stop would wait.
                nursery.cancel_scope.deadline = (
                    trio.current_time() + self._config["limits.stop_s"]
                )
        if gone is not None:
            raise gone
        if problem:
            await self._malformed(problem)
            await self._linger()
        return problem

    async def _malformed(self, problem: str) -> None:
        log.warning("frame.malformed", number=self.number, problem=problem)
        self._traffic.malformed += 1
        if faults.on("junk-kills"):
            os._exit(70)
        if faults.on("fd-leak"):
            os.dup(self._stream.socket.fileno())
        if not faults.on("malformed-silent"):
            await self._try_log("ERROR", f"malformed frame: {problem}")

    async def _last_words(self, text: str, *, level: str) -> None:
        await self._try_log(level, text)
        await self._linger()

    async def _try_log(self, level: str, text: str) -> None:
        if self._midway:
            return  # half a message is out: nothing that follows could be read
        await self.send(messages.log(level, text))

    async def _linger(self) -> None:
        """Close such that the last words arrive: unread bytes would turn the close into a reset."""
        seen = 0
        with trio.move_on_after(LINGER_S):
            try:
                await self._stream.send_eof()
                while seen < LINGER_BYTES:
                    chunk = await self._stream.receive_some(CHUNK_BYTES)
                    if not chunk:
                        return
                    seen += len(chunk)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    # --- In ---

    async def _read(self, requests: trio.MemorySendChannel[dict[str, Any]]) -> None:
        """Read frames until the client ends.

        Raises:
            FrameError: bytes that are no frame, or a frame that never ends.
            ReadError: a payload that is no s-expression.
        """
        reader = FrameReader(limit_chars=self._config["limits.frame_chars"])
        frame_s, idle_s = self._config["limits.frame_s"], self._config["limits.idle_s"]
        until = trio.current_time() + idle_s
        inside = False
        while True:
            with trio.move_on_at(until) as scope:
                chunk = await self._receive(inside=inside)
            if scope.cancelled_caught:
                if inside:
                    raise FrameError(f"it did not end within {frame_s:g} s, {reader.progress}")
                # Who waits for an answer is not idle, and is so from the answer on.
                since = trio.current_time() if self._asked else self._answered_at
                if since + idle_s > until:
                    until = since + idle_s
                    continue
                await self._try_log("INFO", f"closing: no frame for {idle_s:g} s")
                return
            if not chunk:
                if inside:
                    raise FrameError(f"the connection ended, {reader.progress}")
                return
            reader.feed(chunk)
            count = 0
            while (payload := reader.next()) is not None:
                await self._payload(payload, requests)
                count += 1
            if count:
                self.spoken = True
            if count and not reader.inside:
                until = trio.current_time() + idle_s
            elif reader.inside and (count or not inside):
                until = trio.current_time() + frame_s
            inside = reader.inside

    async def _receive(self, *, inside: bool) -> bytes:
        try:
            if not faults.on("half-frame-deadlock"):
                return bytes(await self._stream.receive_some(CHUNK_BYTES))
            if inside:
                async with self._traffic.one_reads:
                    return bytes(await self._stream.receive_some(CHUNK_BYTES))
            chunk = bytes(await self._stream.receive_some(CHUNK_BYTES))
            async with self._traffic.one_reads:
                return chunk
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Gone("the client is gone") from error

    async def _payload(
        self, payload: str, requests: trio.MemorySendChannel[dict[str, Any]]
    ) -> None:
        self._traffic.frames += 1
        if faults.on("memory-growth"):
            self._traffic.kept.append(bytearray(payload.encode() + bytes(2048)))
        depth = self._config["limits.depth"]
        if len(payload) > LONG_CHARS:
            # Reading it takes so long that the others would notice.
            depth = 1000 if faults.on("long-frames-nest") else depth
            value = await trio.to_thread.run_sync(_read, payload, depth, abandon_on_cancel=True)
        else:
            value = _read(payload, depth)
        message = as_plist(value) if isinstance(value, list) else None
        if message is None:
            raise FrameError(f"its payload is no property list, read {len(payload)} characters")
        self._asked += 1
        await requests.send(message)


def _read(payload: str, depth: int) -> Any:
    if faults.on("reader-evaluates"):
        return read(payload, depth=depth, evaluate=evaluate)
    return read(payload, depth=depth)
