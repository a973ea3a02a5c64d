"""An export request of OTLP, in protobuf or JSON, read with the classes that OpenTelemetry publishes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness_core.doubles.telemetry._span import STATUSES, BadExport, Span, SpanEvent, checked_id

#: Fields that OTLP/JSON writes in hexadecimal, where protobuf's own JSON has base64.
#: Source: OTLP specification, "JSON Protobuf Encoding".
_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


def from_protobuf(body: bytes) -> tuple[Span, ...]:
    """The spans of an ``ExportTraceServiceRequest``.

    Raises:
        BadExport: the bytes are none, or an id in it is none.
    """
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadExport(f"no ExportTraceServiceRequest: {error}") from error
    return tuple(_spans(request))


def from_json(body: bytes) -> tuple[Span, ...]:
    """The spans of the same request in OTLP/JSON; fields that are not known are passed over.

    Raises:
        BadExport: no JSON, or not of the shape.
    """
    request = ExportTraceServiceRequest()
    try:
        value = json.loads(body, object_pairs_hook=_with_ids)
        if not isinstance(value, dict):
            raise BadExport(f"no OTLP/JSON: found {type(value).__name__}, expected an object")
        ParseDict(value, request, ignore_unknown_fields=True)
    except (ParseError, ValueError) as error:
        raise BadExport(f"no OTLP/JSON: {error}") from error
    return tuple(_spans(request))


def _with_ids(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode()
        if key in _IDS and isinstance(value, str)
        else value
        for key, value in pairs
    }


def _spans(request: Any) -> Iterator[Span]:
    for of_resource in request.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield _span(span, resource)


def _span(span: Any, resource: dict[str, Any]) -> Span:
    code = span.status.code
    if not 0 <= code < len(STATUSES):
        raise BadExport(f"status code is {code}, expected 0 to {len(STATUSES) - 1}")
    return Span(
        trace_id=checked_id(span.trace_id, size_bytes=16, what="trace_id"),
        span_id=checked_id(span.span_id, size_bytes=8, what="span_id"),
        parent_id=checked_id(
            span.parent_span_id, size_bytes=8, what="parent_span_id", may_be_empty=True
        ),
        name=span.name,
        service=str(resource.get("service.name", "")),
        attributes=_attributes(span.attributes),
        resource=resource,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=STATUSES[code],
        status_message=span.status.message,
        events=tuple(
            SpanEvent(name=event.name, attributes=_attributes(event.attributes))
            for event in span.events
        ),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind)
