"""A container's output on its way into evidence, while it runs: a killed runner loses none of it.

An engine ends the stream with the container's life; after a restart there is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import reading
from harness_core.base.errors import HarnessError
from harness_core.base.wait import until
from harness_core.infrastructure.containers._client import engine_client, engine_errors, library
from harness_core.infrastructure.engine import Engine, check_listening
from harness_core.process import OutputLog

if TYPE_CHECKING:
    from pathlib import Path

    from harness_core.base.evidence import Redactor
    from harness_core.process import Run

#: Lives of one container that may wait to be read: a test restarts a server a handful of times.
_LIVES: Final = 1000


class ContainerLog:
    """Follows one container until :meth:`close`.

    Attributes:
        path: where its output is written, redacted, up to ``limits.CONTAINER_LOG_BYTES``.
    """

    def __init__(self, engine: Engine, name: str, *, path: Path, redactor: Redactor) -> None:
        self.path = path
        self._engine = engine
        self._name = name
        self._log = OutputLog(path, redactor=redactor, limit_bytes=limits.CONTAINER_LOG_BYTES)
        self._stream: Any = None
        self._reading = 0
        self._send, self._lives = trio.open_memory_channel[float | None](_LIVES)
        # The run may be on its way out; who opened this ends it, once its log is read to the end.
        self._scope = trio.CancelScope(shield=True)
        self._ended = trio.Event()

    def open(self, run: Run, *, started: bool = True) -> None:
        """Begin, beside the run; with the container's first life, when that has started."""
        if started:
            self.follow(since_s=None)
        run.start_soon(self._follow_all, name=f"log of {self._name}")

    def follow(self, *, since_s: float | None) -> None:
        """Follow another life of the container.

        Args:
            since_s: when it began, by the engine's clock; ``None`` for its first one.
        """
        self._reading += 1
        self._send.send_nowait(since_s)

    async def life_read(self) -> None:
        """Wait, for a bounded time, until all of the lives that have ended is read."""
        with trio.move_on_after(limits.CONTAINER_LOG_END_S):
            await until(self._idle)

    async def _idle(self) -> bool:
        return self._reading == 0

    async def close(self, *, ended: bool) -> None:
        """Wait, for a bounded time, for the end of the container's log.

        Args:
            ended: it has; otherwise the end of its log is not waited for.
        """
        self._send.close()
        with trio.move_on_after(limits.CONTAINER_LOG_END_S if ended else 0):
            await self._ended.wait()
        self._scope.cancel()
        self._hang_up()
        self._log.close()

    async def _follow_all(self) -> None:
        try:
            with self._scope:
                async for since_s in self._lives:
                    await reading(self._follow, since_s)
                    self._reading -= 1
        finally:
            self._ended.set()

    def _follow(self, since_s: float | None) -> None:
        """Read one life; blocks until it ends, or until :meth:`_hang_up`."""
        try:
            # The answer has to begin in time; then the library lifts the limit, since a healthy
            # server may have nothing to say for hours.
            with (
                engine_client(self._engine) as client,
                engine_errors(f"follow the log of container {self._name}"),
            ):
                since = {} if since_s is None else {"since": since_s}
                read_bytes = 0
                self._stream = client.api.logs(self._name, stream=True, follow=True, **since)
                for chunk in self._stream:
                    read_bytes += len(chunk)
                    self._log.feed(chunk)
                self._close_stream()
                # An engine that sees its container end may stop following before it has sent all. One
                # that is gone meanwhile is not called: the library would leave its socket open.
                check_listening(self._engine)
                self._stream = client.api.logs(self._name, stream=True, follow=False, **since)
                for chunk in self._stream:
                    self._log.feed(chunk[min(read_bytes, len(chunk)) :])
                    read_bytes -= min(read_bytes, len(chunk))
        except HarnessError as error:
            self._log.feed(f"({error})\n".encode())
        except ValueError:
            return  # closed while the last chunk was on its way
        finally:
            self._close_stream()

    def _close_stream(self) -> None:
        if (stream := self._stream) is not None:
            self._stream = None
            # One that is not read to its end keeps its connection, which is closed nowhere else.
            stream._response.close()  # noqa: SLF001 - its own close shuts the socket, no more

    def _hang_up(self) -> None:
        """Wake the thread that waits for more, where the connection allows it."""
        stream = self._stream
        if stream is None:
            return
        try:
            stream.close()
        except (OSError, AttributeError, library().errors.DockerException):
            return  # closed by the engine meanwhile; over ssh it ends with the container
