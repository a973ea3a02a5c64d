"""Requests, answers and errors as lines of JSON on a Unix socket.

A request is ``{"ask": WORD, …}``, its answer ``{"answer": …}`` or ``{"error": …}``. An error of the
harness arrives as what it was, fields included; a failed assertion stays one.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harness_core import errors
from harness_core.errors import HarnessError

__all__ = ["decode", "encode", "error_as_json", "error_from_json", "reachable"]

#: ``sun_path`` on Linux holds 108 bytes with the final zero.
_SOCKET_PATH_BYTES: Final = 107

_KINDS: Final = {name: getattr(errors, name) for name in errors.__all__}


def encode(message: dict[str, Any]) -> bytes:
    """One message as a line."""
    return json.dumps(message, default=str).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message of a line.

    Raises:
        HarnessError: it is no JSON object.
    """
    try:
        message = json.loads(line)
    except ValueError as error:
        raise HarnessError("read a message of a host", observed=repr(line[:80])) from error
    if not isinstance(message, dict):
        raise HarnessError("read a message of a host", observed=repr(line[:80]))
    return message


def error_as_json(error: BaseException) -> dict[str, Any]:
    """What the other side needs to raise the same error."""
    if isinstance(error, HarnessError):
        kind = next(name for name in _kinds_of(type(error)) if name in _KINDS)
        return {"kind": kind, "fields": dict(vars(error)), "notes": _notes(error)}
    if isinstance(error, AssertionError):
        return {"kind": "AssertionError", "fields": {"text": str(error)}, "notes": _notes(error)}
    told = "".join(traceback.format_exception(error)).splitlines()
    return {"kind": "", "fields": {"text": repr(error), "tail": told}, "notes": []}


def error_from_json(body: dict[str, Any], *, action: str) -> BaseException:
    """The error an answer carries.

    Args:
        body: as :func:`error_as_json` made it.
        action: what was asked for, when the error itself cannot say.
    """
    fields = body["fields"]
    error: BaseException
    if body["kind"] == "AssertionError":
        error = AssertionError(fields["text"])
    elif not body["kind"]:
        error = HarnessError(action, observed=fields["text"], tail=fields["tail"])
    else:
        kind: type[HarnessError] = _KINDS[body["kind"]]
        error = kind.__new__(kind)
        error.args = (fields["action"], fields["observed"])
        log = fields.get("log")
        more = {"tail": tuple(fields.get("tail", ())), "log": Path(log) if log else None}
        vars(error).update(fields | more)
    for note in body["notes"]:
        error.add_note(note)
    return error


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A name of a socket that is short enough for the kernel."""
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def _kinds_of(kind: type[BaseException]) -> tuple[str, ...]:
    return tuple(each.__name__ for each in kind.__mro__)


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ()))
