"""Spans of the work on episodes, sent to a collector by OpenTelemetry (``OTEL_*``); without one, nothing.

Each episode has a trace of its own, whose first span has an id that follows from the trace's: whoever
works for the episode, in whatever process, can hang what it does below it. What is done for no episode
has no span.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from opentelemetry import context, trace

from workbench_foundation import faults, log
from workbench_foundation.keys import App, Receive, Scope, Send

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PARENT = "traceparent"

#: What is left at SIGTERM gets this long.
_GRACE_S = 1.0

#: For the planted fault `spans-told-at-once` alone.
_PLANTED_S = 600.0

#: Of the episode whose first span begins here.
_begins: ContextVar[str | None] = ContextVar("begins", default=None)

#: For the planted fault `spans-of-first-episode` alone.
_first: list[str] = []

_provider: Any = None


def start(service: str) -> None:
    """Name the service, and send what is told from now on where the environment says."""
    global _provider
    if not os.environ.get(_ENDPOINT):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SimpleSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler

    class Ids(RandomIdGenerator):
        """The first span of an episode has the trace that the episode has already."""

        def generate_trace_id(self) -> int:
            trace_id = _begins.get()
            return super().generate_trace_id() if trace_id is None else int(trace_id, 16)

        def generate_span_id(self) -> int:
            trace_id = _begins.get()
            return super().generate_span_id() if trace_id is None else _first_span_of(trace_id)

    class OfEpisodes(Sampler):
        """Of what hangs below nothing, the first spans of episodes alone are told."""

        def should_sample(self, *args: Any, **more: Any) -> Any:
            told = _begins.get() is not None
            return (ALWAYS_ON if told else ALWAYS_OFF).should_sample(*args, **more)

        def get_description(self) -> str:
            return "OfEpisodes"

    class Sending(SpanExporter):
        """Sends spans, and says once that it cannot; what was not taken then is lost."""

        def __init__(self) -> None:
            # What comes of an attempt is told here.
            logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
            patience_s = _PLANTED_S if faults.on("spans-told-at-once") else None
            self._exporter = OTLPSpanExporter(timeout=patience_s)
            self._troubled = False

        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            result = self._exporter.export(spans)
            troubled = result is not SpanExportResult.SUCCESS
            if troubled and not self._troubled:
                log.warning("spans_untold", spans=len(spans))
            self._troubled = troubled
            return result

        def shutdown(self) -> None:
            self._exporter.shutdown()

    _provider = TracerProvider(
        sampler=ParentBased(OfEpisodes()),
        resource=Resource.create({"service.name": f"workbench-{service}"}),
        id_generator=Ids(),
        shutdown_on_exit=False,
    )
    kind = SimpleSpanProcessor if faults.on("spans-told-at-once") else BatchSpanProcessor
    _provider.add_span_processor(kind(Sending()))
    trace.set_tracer_provider(_provider)
    HTTPXClientInstrumentor().instrument()


def stop() -> None:
    """Send what is left, and do not wait for a collector that does not take it."""
    if _provider is not None:
        ending = threading.Thread(target=_provider.shutdown, daemon=True)
        ending.start()
        ending.join(_GRACE_S)


def planted(app: App) -> App:
    """The app, as the planted faults have it; FastAPI tells by itself of requests that are part of a trace."""
    return _Alone(app) if faults.on("spans-of-worker-apart") else app


def interceptors() -> list[Any]:
    """What has Temporal's client, and workers that are made with it, tell of their work."""
    if _provider is None:
        return []
    from temporalio.contrib.opentelemetry import TracingInterceptor

    return [TracingInterceptor()]


@contextlib.contextmanager
def episode(trace_id: str, **ids: str) -> Iterator[None]:
    """The first span of an episode, which lasts as long as the block.

    Args:
        trace_id: of the episode, 32 hexadecimal digits.
        ids: further ones of it, as attributes.
    """
    if _provider is None or faults.on("spans-hang-loose"):
        with _below(trace_id):
            yield
        return
    if faults.on("spans-of-first-episode"):
        _first[:] = _first or [trace_id]
        trace_id = _first[0]
    asked_by = trace.get_current_span().get_span_context()
    token = _begins.set(trace_id)
    try:
        span = trace.get_tracer(__name__).start_span(
            "episode",
            context=context.Context(),
            attributes=ids,
            links=[trace.Link(asked_by)] if asked_by.is_valid else [],
        )
    finally:
        _begins.reset(token)
    with trace.use_span(span, end_on_exit=True):
        yield


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Only for the planted fault `spans-of-retries-apart`: what is done in the block is part of nothing."""
    token = context.attach(context.Context())
    try:
        yield
    finally:
        context.detach(token)


def parent_of(trace_id: str) -> dict[str, str]:
    """The first span of an episode as what is sent names its parent."""
    return {_PARENT: f"00-{trace_id}-{_first_span_of(trace_id):016x}-01"}


def _first_span_of(trace_id: str) -> int:
    return int(trace_id[:16], 16) or 1


@contextlib.contextmanager
def _below(trace_id: str) -> Iterator[None]:
    if _provider is None:
        yield
        return
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    token = context.attach(TraceContextTextMapPropagator().extract(parent_of(trace_id)))
    try:
        yield
    finally:
        context.detach(token)


class _Alone:
    """Only for the planted fault `spans-of-worker-apart`: whose work a request is part of is not looked at."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [each for each in scope.get("headers", ()) if each[0] != _PARENT.encode()]
        await self._app({**scope, "headers": headers}, receive, send)
