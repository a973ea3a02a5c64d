"""A session's ``events.jsonl``: one JSON object per line, numbered without gaps, appended whole."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench_contract.events import Event, EventKind, EventPage, EventSource
from workbench_foundation import faults


class EventLog:
    """The events of one session.

    A line is appended under a lock: readers see whole lines only. One that does not fit, since the
    disk is full, is taken back, and one that a crash cut short is removed when the log is opened
    again; its number is given to the next event.

    Args:
        path: of the file; made when it is not there.
        session_id: whose events they are.
    """

    def __init__(self, path: Path, *, session_id: str) -> None:
        self.path = path
        self._session_id = session_id
        self._lock = threading.Lock()
        self._seq = self._recover()

    def _recover(self) -> int:
        self.path.touch(mode=0o644)
        whole = self.path.read_bytes()
        kept = whole.rfind(b"\n") + 1
        if kept < len(whole) and not faults.on("half-a-line-stays"):
            os.truncate(self.path, kept)
        lines = whole[:kept].splitlines()
        return int(json.loads(lines[-1])["seq"]) if lines else 0

    def append(self, kind: EventKind, payload: dict[str, Any], *, ids: dict[str, str]) -> Event:
        """Number an event and write it down.

        Args:
            ids: ``episode_id`` and ``trace_id`` where known.
        """
        with self._lock:
            event = Event(
                session_id=self._session_id,
                source=EventSource.WORKER,
                seq=self._seq + 1,
                kind=kind,
                time=datetime.now(UTC),
                episode_id=ids.get("episode_id"),
                trace_id=ids.get("trace_id"),
                payload=payload,
            )
            if faults.on("event-unwritten") and event.seq % 7 == 0:
                self._seq = event.seq
                return event
            # Opened for each event: there may be more sessions than descriptors.
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                _append_whole(fd, event.model_dump_json().encode() + b"\n")
            finally:
                os.close(fd)
            # What could not be written has had no number.
            self._seq = event.seq
            return event

    def page(self, *, after: int, limit: int) -> EventPage:
        """Events that follow a number, in order."""
        with self._lock:
            last = self._seq
        events = []
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n") or len(events) >= limit:
                    break
                event = Event.model_validate_json(line)
                if event.seq > after:
                    events.append(event)
        return EventPage(events=events, last_seq=last)

    def all(self, *kinds: EventKind) -> list[Event]:
        """Every event of some kinds, in order."""
        with self.path.open("rb") as lines:
            found = [Event.model_validate_json(line) for line in lines if line.endswith(b"\n")]
        return [event for event in found if event.kind in kinds]


def _append_whole(fd: int, line: bytes) -> None:
    """Append a line; one that does not fit leaves nothing behind.

    Raises:
        OSError: it does not fit, or cannot be written.
    """
    before = os.fstat(fd).st_size
    try:
        while line:
            line = line[os.write(fd, line) :]
    except OSError:
        os.ftruncate(fd, before)
        raise
