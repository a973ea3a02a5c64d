"""One span in plain data, whatever it was encoded in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

#: ``Status.StatusCode`` by number (OTLP ``trace.proto``).
STATUSES: Final = ("unset", "ok", "error")


class BadExport(Exception):  # noqa: N818 - names what was sent
    """An export request that cannot be read as OTLP."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened within a span, e.g. an exception.

    Attributes:
        name: ``exception`` for a recorded one.
        attributes: e.g. ``exception.type``, ``exception.message``.
    """

    name: str
    attributes: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span.

    Attributes:
        trace_id: 32 hexadecimal digits, lower case.
        span_id: 16 hexadecimal digits, lower case.
        parent_id: the span it hangs below, which may live in another process; empty for a root.
        name: what was done.
        service: ``service.name`` of the process that did it; empty when it does not say.
        attributes: of the span.
        resource: attributes of the process.
        start_ns: nanoseconds since 1970, by the clock of that process.
        end_ns: the same, for its end.
        status: ``unset``, ``ok`` or ``error``.
        status_message: the reason of an error, where one was given.
        events: in the order they happened.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    service: str
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    start_ns: int
    end_ns: int
    status: str
    status_message: str = ""
    events: tuple[SpanEvent, ...] = ()

    def text(self) -> str:
        """The span in one line, for failure messages."""
        failed = f" {self.status}: {self.status_message}" if self.status == "error" else ""
        below = f" below {self.parent_id}" if self.parent_id else " (root)"
        return f"{self.service}: {self.name} [{self.span_id}{below}]{failed}"


def checked_id(value: bytes, *, size_bytes: int, what: str, may_be_empty: bool = False) -> str:
    """A trace or span id as OTLP demands it, in hexadecimal.

    Raises:
        BadExport: another length, or all zeros.
    """
    if may_be_empty and not any(value):
        return ""
    if len(value) != size_bytes or not any(value):
        expected = f"{2 * size_bytes} hexadecimal digits, not all zero"
        raise BadExport(f"{what} is {value.hex()!r}, expected {expected}")
    return value.hex()
