"""Every operation of the worker is recorded as an event, whether it was carried out or refused."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from workbench_contract.events import EventKind
from workbench_foundation import faults
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session

#: Longer texts of a request are recorded by their length alone; a path, which says what was read, is whole.
_TEXT_CHARS = 200
_WHOLE = frozenset({"path"})


@contextlib.contextmanager
def tool_call(session: Session, tool: str, request: BaseModel) -> Iterator[dict[str, Any]]:
    """Record one operation, with what the block adds to the dictionary."""
    details: dict[str, Any] = {}
    started = time.monotonic()
    outcome: dict[str, Any] = {"ok": True}
    try:
        yield details
    except Refused as refused:
        outcome = {"ok": False, "status": refused.status, "reason": refused.detail}
        raise
    except BaseException:
        outcome = {"ok": False, "status": 500, "reason": "the worker failed"}
        raise
    finally:
        took_s = round(time.monotonic() - started, 6)
        arguments = _short(request.model_dump(mode="json"))
        if faults.on("tool-call-of-any-model"):
            arguments.pop("model", None)
        payload = {"tool": tool, "arguments": arguments, "duration_s": took_s} | outcome | details
        session.record(EventKind.TOOL_CALL, payload)


def _short(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"{len(value)} characters"
        if isinstance(value, str) and len(value) > _TEXT_CHARS and name not in _WHOLE
        else value
        for name, value in arguments.items()
    }
