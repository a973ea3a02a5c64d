"""JSON lines on stderr that carry whose work they tell of: episode, trace, session.

Whoever takes up an episode's work says so once by :func:`about`; every line until the end of the
block carries it, those of libraries too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from workbench_foundation import faults
from workbench_foundation.errors import describe

_about: ContextVar[dict[str, str]] = ContextVar("about", default={})  # noqa: B039 - never changed
_service = "workbench"


@contextlib.contextmanager
def about(
    *,
    episode_id: str | None = None,
    trace_id: str | None = None,
    session_id: str | None = None,
    flow_id: str | None = None,
    batch_id: str | None = None,
    backup_id: str | None = None,
) -> Iterator[None]:
    """Lines during the block tell of this episode, trace, session, flow, batch or backup."""
    named = {
        "episode_id": episode_id, "trace_id": trace_id, "session_id": session_id, "flow_id": flow_id,
        "batch_id": batch_id, "backup_id": backup_id,
    }  # fmt: skip
    token = _about.set(_about.get() | {key: value for key, value in named.items() if value})
    try:
        yield
    finally:
        _about.reset(token)


def correlation() -> dict[str, str]:
    """The ids that lines carry here."""
    return dict(_about.get())


def info(event: str, **fields: object) -> None:
    _write("info", event, fields)


def warning(event: str, **fields: object) -> None:
    _write("warning", event, fields)


def error(event: str, **fields: object) -> None:
    _write("error", event, fields)


def start(service: str) -> None:
    """Name the service and bring the lines of libraries into the same shape."""
    global _service
    _service = service
    root = logging.getLogger()
    root.handlers[:] = [_Forward()]
    root.setLevel(logging.WARNING)


def _write(level: str, event: str, fields: dict[str, object]) -> None:
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "service": _service,
        "event": event,
    }
    if not faults.on("logs-uncorrelated"):
        line |= _about.get()
    # One write, so that lines of threads do not mix.
    sys.stderr.write(json.dumps(line | fields, ensure_ascii=False, default=str) + "\n")
    sys.stderr.flush()


class _Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = describe(record.exc_info[1])
        _write("warning" if record.levelno < logging.ERROR else "error", "library", fields)
