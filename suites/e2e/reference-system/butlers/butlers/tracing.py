"""One trace per message, over all processes, by W3C trace context.

Identifiers always exist and always travel; spans are made and exported (OTLP over HTTP) only when
`OTEL_EXPORTER_OTLP_ENDPOINT` is set, and only then is the OpenTelemetry SDK imported.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butlers import faults

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

#: version 00 only, and neither id may be all zeros.
TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")

#: Spans leave within this time; the library's 5 s would lose them when a butler is killed.
_EXPORT_DELAY_MS = 500

#: A collector that is down or hangs costs no more than this, at the end of a butler's life above
#: all; the library would try for 10 s. OTEL_EXPORTER_OTLP_TIMEOUT says otherwise.
_EXPORT_TIMEOUT_S = 2.0
_TIMEOUT_VARIABLES = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A position in a trace: what is handed on to the next hop."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


def parse(traceparent: str | None) -> Trace | None:
    """The position a `traceparent` names; None when it is absent or malformed."""
    match = TRACEPARENT.fullmatch(traceparent or "")
    return Trace(trace_id=match[1], span_id=match[2]) if match else None


def new() -> Trace:
    """The start of a new trace."""
    return Trace(trace_id=secrets.token_hex(16), span_id=secrets.token_hex(8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls a tool: its position in a trace, and its session when it is one."""

    trace: Trace | None
    session: str | None


_CALLER: ContextVar[Caller] = ContextVar("caller")


@contextmanager
def called(trace: Trace | None, *, session: str | None) -> Iterator[None]:
    """While a tool is called: what :func:`caller` answers."""
    token = _CALLER.set(Caller(trace=trace, session=session))
    try:
        yield
    finally:
        _CALLER.reset(token)


def caller() -> Caller:
    """Who calls the tool that runs now."""
    return _CALLER.get(Caller(trace=None, session=None))


class Tracer:
    """Makes spans for one butler.

    Args:
        butler: becomes the service name.
    """

    def __init__(self, butler: str) -> None:
        self._butler = butler
        self._provider: TracerProvider | None = None

    def start(self) -> None:
        """Set up the export when an endpoint is configured."""
        if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
            return
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._provider = TracerProvider(
            resource=Resource.create({"service.name": f"butler-{self._butler}"}),
            shutdown_on_exit=False,
        )
        delay_ms = 60_000 if faults.on("spans-lost-at-shutdown") else _EXPORT_DELAY_MS
        self._provider.add_span_processor(
            BatchSpanProcessor(_Exporter(), schedule_delay_millis=delay_ms)
        )
        trace.set_tracer_provider(self._provider)

    @property
    def exporting(self) -> bool:
        return self._provider is not None

    @contextmanager
    def span(self, name: str, *, parent: Trace | None = None, **attributes: Any) -> Iterator[Trace]:
        """Do a piece of work inside a trace.

        Args:
            name: what is done, e.g. ``route.execute health``.
            parent: the position it hangs below; a new trace when there is none.
            attributes: recorded on the span when spans are exported.

        Yields:
            The position to hand on.
        """
        if self._provider is None:
            trace_id = parent.trace_id if parent else secrets.token_hex(16)
            yield Trace(trace_id=trace_id, span_id=secrets.token_hex(8))
            return
        from opentelemetry import context as otel_context
        from opentelemetry import trace

        base = otel_context.Context()
        if faults.on("tool-span-missing") and name.startswith("tool ") and parent is not None:
            yield parent
            return
        told = parent
        if faults.on("span-without-parent") and name.startswith("tool ") and parent is not None:
            parent = Trace(trace_id=parent.trace_id, span_id=secrets.token_hex(8))
        if faults.on("trace-split") and name.startswith("session ") and "switchboard" not in name:
            parent = None
        if parent is not None:
            base = trace.set_span_in_context(
                trace.NonRecordingSpan(
                    trace.SpanContext(
                        trace_id=int(parent.trace_id, 16),
                        span_id=int(parent.span_id, 16),
                        is_remote=True,
                        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
                    )
                ),
                base,
            )
        tracer = self._provider.get_tracer("butlers")
        shown = {k: v for k, v in attributes.items() if v is not None}
        with tracer.start_as_current_span(name, context=base, attributes=shown) as span:
            position = span.get_span_context()
            yield Trace(
                trace_id=told.trace_id if told else f"{position.trace_id:032x}",
                span_id=f"{position.span_id:016x}",
            )

    def failed(self, reason: str | None) -> None:
        """Say that the piece of work under way has failed, though it raised nothing."""
        if self._provider is None or not reason or faults.on("error-span-missing"):
            return
        from opentelemetry import trace

        trace.get_current_span().set_status(trace.StatusCode.ERROR, reason)

    def stop(self) -> None:
        """Flush what is left; bounded by the exporter's own deadline."""
        if self._provider is not None and not faults.on("spans-lost-at-shutdown"):
            self._provider.shutdown()


class _Exporter:
    """The OTLP exporter, imported when there is something to send.

    It brings an HTTP client and protobuf along, which a start must not wait for.
    The batch processor calls it in a thread of its own.
    """

    def __init__(self) -> None:
        self._exporter: Any = None

    def export(self, spans: Any) -> Any:
        if self._exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            given = any(os.environ.get(name) for name in _TIMEOUT_VARIABLES)
            self._exporter = OTLPSpanExporter(timeout=None if given else _EXPORT_TIMEOUT_S)
        return self._exporter.export(spans)

    def shutdown(self) -> None:
        if self._exporter is not None:
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True
