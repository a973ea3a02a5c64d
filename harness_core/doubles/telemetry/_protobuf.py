"""An export request in protobuf, read with the classes OpenTelemetry publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness_core.doubles.telemetry._span import STATUSES, BadExport, Span, SpanEvent, checked_id

__all__ = ["from_protobuf"]


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


def _spans(request: Any) -> Iterator[Span]:
    for of_resource in request.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield Span(
                    trace_id=checked_id(span.trace_id.hex(), digits=32, what="trace_id"),
                    span_id=checked_id(span.span_id.hex(), digits=16, what="span_id"),
                    parent_id=checked_id(
                        span.parent_span_id.hex(),
                        digits=16,
                        what="parent_span_id",
                        may_be_empty=True,
                    ),
                    name=span.name,
                    service=str(resource.get("service.name", "")),
                    attributes=_attributes(span.attributes),
                    resource=resource,
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    status=_status(span.status.code),
                    status_message=span.status.message,
                    events=tuple(
                        SpanEvent(name=event.name, attributes=_attributes(event.attributes))
                        for event in span.events
                    ),
                )


def _status(code: int) -> str:
    if not 0 <= code < len(STATUSES):
        raise BadExport(f"status code is {code}, expected 0 to {len(STATUSES) - 1}")
    return STATUSES[code]


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
