"""An export request in OTLP/JSON, whose ids are hexadecimal, unlike protobuf's own JSON.

Source: OTLP specification, "JSON Protobuf Encoding".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from harness_core.doubles.telemetry._span import STATUSES, BadExport, Span, SpanEvent, checked_id

__all__ = ["from_json"]


def from_json(body: bytes) -> tuple[Span, ...]:
    """The spans of an export request.

    Raises:
        BadExport: no JSON, or not of the shape.
    """
    try:
        return tuple(_spans(json.loads(body)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadExport(f"no OTLP/JSON: {type(error).__name__}: {error}") from error


def _spans(request: Any) -> Iterator[Span]:
    for of_resource in request.get("resourceSpans", []):
        resource = _attributes(of_resource.get("resource", {}).get("attributes", []))
        for of_scope in of_resource.get("scopeSpans", []):
            for span in of_scope.get("spans", []):
                yield _span(span, resource)


def _span(span: dict[str, Any], resource: dict[str, Any]) -> Span:
    status = span.get("status", {})
    return Span(
        trace_id=checked_id(span["traceId"], digits=32, what="traceId"),
        span_id=checked_id(span["spanId"], digits=16, what="spanId"),
        parent_id=checked_id(
            span.get("parentSpanId", ""), digits=16, what="parentSpanId", may_be_empty=True
        ),
        name=span.get("name", ""),
        service=str(resource.get("service.name", "")),
        attributes=_attributes(span.get("attributes", [])),
        resource=resource,
        start_ns=int(span.get("startTimeUnixNano", 0)),
        end_ns=int(span.get("endTimeUnixNano", 0)),
        status=_status(status.get("code", 0)),
        status_message=status.get("message", ""),
        events=tuple(
            SpanEvent(
                name=event.get("name", ""), attributes=_attributes(event.get("attributes", []))
            )
            for event in span.get("events", [])
        ),
    )


def _status(code: Any) -> str:
    if not isinstance(code, int) or not 0 <= code < len(STATUSES):
        raise BadExport(f"status code is {code!r}, expected 0 to {len(STATUSES) - 1}")
    return STATUSES[code]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value", {})) for pair in pairs}


def _value(value: dict[str, Any]) -> Any:
    for kind, inner in value.items():
        if kind in _KINDS:
            return _KINDS[kind](inner)
    return None


#: Kind of a value → what makes it of its JSON. 64-bit integers may be text; bytes are base64.
_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "arrayValue": lambda inner: [_value(item) for item in inner.get("values", [])],
    "boolValue": bool,
    "bytesValue": base64.b64decode,
    "doubleValue": float,
    "intValue": int,
    "kvlistValue": lambda inner: _attributes(inner.get("values", [])),
    "stringValue": str,
}
