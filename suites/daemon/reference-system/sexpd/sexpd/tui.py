"""Talking to the daemon in a terminal: a prompt, the conversation above it, a status line below.

`/eval EXPRESSION` is evaluated here, `/quit` leaves, everything else goes to the daemon. When the
connection drops, the status line says so and the client connects again by itself; texts written
meanwhile are kept and sent then. Texts that were sent and not answered are named and not sent again:
they may have been acted on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.output import create_output
from prompt_toolkit.patch_stdout import patch_stdout

from sexpd import faults
from sexpd.evaluate import EvaluationError, evaluate_text
from sexpd.frames import LARGEST_CHARS, FrameError, FrameReader, frame
from sexpd.sexpr import Keyword, ReadError, as_plist, keyword_name, plist, read, write

HEARTBEAT_S = 60.0
RETRY_S = (0.2, 0.5, 1.0)
WAITING = 100


class Terminal:
    """The client: one connection at a time, and the screen."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._state = "connecting"
        self._outbox: deque[str] = deque(maxlen=50 if faults.on("typed-early-dropped") else None)
        self._unanswered: deque[str] = deque()
        self._entered_one = asyncio.Event()
        self._quit = asyncio.Event()

    async def run(self) -> int:
        """Run until the user leaves."""
        session: PromptSession[str] = PromptSession(
            bottom_toolbar=self._status, output=create_output()
        )
        wire = asyncio.create_task(self._stay_connected())
        try:
            with patch_stdout():
                print("sexpd terminal. /eval EXPRESSION, /shell COMMAND, /help, /quit")
                while not self._quit.is_set():
                    try:
                        line = await session.prompt_async("sexpd> ")
                    except (EOFError, KeyboardInterrupt):
                        break
                    self._entered(line.strip())
        finally:
            wire.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await wire
        return 0

    def _status(self) -> FormattedText:
        waiting = f", {len(self._outbox)} waiting" if self._outbox else ""
        return FormattedText([("", f" {self._host}:{self._port} {self._state}{waiting}")])

    def _now(self, state: str) -> None:
        if state != self._state:
            self._state = state
            print(f"* {state}")
            if app := get_app_or_none():
                app.invalidate()

    def _entered(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        if not line:
            return
        if command in {"/quit", "/exit"}:
            self._quit.set()
        elif command == "/eval":
            try:
                print(f"=> {evaluate_text(rest)}")
            except EvaluationError as error:
                print(f"cannot evaluate: {error}")
        elif len(self._outbox) >= WAITING:
            print(f"cannot keep more than {WAITING} texts; wait for the connection")
        else:
            self._outbox.append(line)
            self._entered_one.set()
            print(f"you: {line}")

    # --- The wire ---

    async def _stay_connected(self) -> None:
        failures = 0
        while True:
            try:
                await self._converse()
                failures = 0
            except (OSError, FrameError, ReadError, EOFError) as error:
                connected = self._state.startswith("connected")
                failures = 0 if connected else failures + 1
                what = "connection lost" if connected else "cannot connect"
                self._now(f"{what} ({_said(error)}), trying again")
            if faults.on("tui-no-reconnect"):
                return
            await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])

    async def _converse(self) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            frames = _Frames(reader)
            handshake = as_plist(await frames.next()) or {}
            payload = as_plist(handshake.get("PAYLOAD")) or {}
            if keyword_name(payload.get("ACTION")) != "HANDSHAKE":
                raise FrameError("no handshake: something else listens there")
            self._now(f"connected to sexpd {payload.get('VERSION')}")
            tasks = [
                asyncio.create_task(self._print(frames)),
                asyncio.create_task(self._send(writer)),
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            while self._unanswered:
                print(f"* no answer to: {self._unanswered.popleft()}")

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        source = plist(source=Keyword("TUI"))
        while True:
            self._entered_one.clear()
            if not self._outbox:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._entered_one.wait(), HEARTBEAT_S)
            if writer.is_closing():
                raise EOFError("the daemon closed it")
            payload = plist(sensor=Keyword("HEARTBEAT"))
            if self._outbox:
                line = self._outbox.popleft()
                self._unanswered.append(line)
                payload = plist(sensor=Keyword("USER-INPUT"), text=line)
            message = plist(meta=source, type=Keyword("EVENT"), payload=payload)
            writer.write(frame(write(message)))
            await writer.drain()

    async def _print(self, frames: _Frames) -> None:
        while True:
            message = as_plist(await frames.next()) or {}
            payload = as_plist(message.get("PAYLOAD")) or {}
            kind, level = keyword_name(message.get("TYPE")), keyword_name(payload.get("LEVEL"))
            if self._unanswered and (kind == "REQUEST" or level == "ERROR"):
                self._unanswered.popleft()
            if kind == "LOG":
                print(f"! {level.lower()}: {payload.get('TEXT')}")
            elif "TEXT" in payload:
                print(f"sexpd: {payload['TEXT']}")


class _Frames:
    """Messages from a stream."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._reader = FrameReader(limit_chars=LARGEST_CHARS)

    async def next(self) -> Any:
        while (payload := self._reader.next()) is None:
            chunk = await self._stream.read(65536)
            if not chunk:
                raise EOFError("the daemon closed it")
            self._reader.feed(chunk)
        return read(payload, depth=1000)


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def run(host: str, port: int) -> int:
    """Run the terminal client."""
    return asyncio.run(Terminal(host, port).run())
