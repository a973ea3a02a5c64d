"""What a product tells of its own work: a collector of spans, and how a trace hangs together.

- ``_collector.py``: :func:`open_collector`, OTLP over HTTP on loopback, protobuf and JSON;
  :func:`spans_of`, the spans of a request that any recorder was sent.
- ``_span.py``: :class:`Span`, one span in plain data. ``_trace.py``: :class:`Trace`, the spans of
  one trace and who hangs below whom.
- ``_export.py``: an export request in either encoding.
"""

from harness_core.base.machine import need_extra

need_extra("telemetry", action="use harness_core.doubles.telemetry")

from harness_core.doubles.telemetry._collector import Collector, open_collector, spans_of
from harness_core.doubles.telemetry._span import BadExport, Span, SpanEvent
from harness_core.doubles.telemetry._trace import Trace

__all__ = ["BadExport", "Collector", "Span", "SpanEvent", "Trace", "open_collector", "spans_of"]
