"""A collector of spans: OTLP over HTTP on loopback, as ``OTEL_EXPORTER_OTLP_ENDPOINT`` expects it.

Metrics and logs are taken and acknowledged too, so that an exporter of all three is content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from harness_core.base.bridge import anywhere
from harness_core.base.errors import NotReady
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.doubles.http import Answer, Recorded, Recorder, Rule, open_recorder
from harness_core.doubles.telemetry._export import from_json, from_protobuf
from harness_core.doubles.telemetry._span import BadExport, Span
from harness_core.doubles.telemetry._trace import Trace

_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"


class Collector:
    """Every span that was exported to it; built only by :func:`open_collector`.

    Attributes:
        endpoint: what goes into ``OTEL_EXPORTER_OTLP_ENDPOINT``.
        recorder: the server behind it; its rules bring trouble on request.
    """

    def __init__(self, recorder: Recorder, spans: list[Span], refused: list[str]) -> None:
        self.recorder = recorder
        self.endpoint = recorder.url
        self._spans = spans
        self._refused = refused

    @property
    def refused(self) -> tuple[str, ...]:
        """Why export requests were refused that are no OTLP."""
        return tuple(self._refused)

    def spans(self, *, trace_id: str = "") -> tuple[Span, ...]:
        """The spans so far, in the order they arrived; of one trace, or of all."""
        return tuple(span for span in self._spans if trace_id in {"", span.trace_id})

    def trace(self, trace_id: str) -> Trace:
        """What has come of one trace so far."""
        spans = sorted(self.spans(trace_id=trace_id), key=lambda span: span.start_ns)
        return Trace(trace_id=trace_id, spans=tuple(spans))

    @anywhere
    async def wait_for(
        self, trace_id: str, *, where: Callable[[Trace], bool], seconds: float
    ) -> Trace:
        """Wait until ``where`` accepts what has come of a trace.

        Exporters send in batches, so the end of a piece of work and the arrival of its span lie
        apart; a few seconds are usual.

        Raises:
            NotReady: it did not within ``seconds``; shows the trace as far as it came.
        """

        async def accepted() -> Trace | None:
            trace = self.trace(trace_id)
            return trace if where(trace) else None

        action = f"see all spans of trace {trace_id}"
        with deadline(action, seconds=seconds, observed=lambda: self.trace(trace_id).text()):
            return await until(accepted)

    async def settled(
        self, trace_id: str, *, where: Callable[[Trace], bool], seconds: float
    ) -> Trace:
        """Like :meth:`wait_for`, and what has come when the time is up: for a test to judge."""
        try:
            return await self.wait_for(trace_id, where=where, seconds=seconds)
        except NotReady:
            return self.trace(trace_id)


@asynccontextmanager
async def open_collector(
    *, evidence: Evidence, name: str = "otlp", port: int = 0
) -> AsyncIterator[Collector]:
    """Collect spans on 127.0.0.1 for the block; each is a line of ``spans.jsonl`` too.

    Args:
        evidence: where spans and requests are written.
        name: of the server in evidence and errors.
        port: a fixed one; 0 for any.
    """
    spans: list[Span] = []
    refused: list[str] = []

    def take(request: Recorded) -> Answer:
        try:
            found = spans_of(request)
        except BadExport as bad:
            refused.append(str(bad))
            return Answer(status=400, body=str(bad))
        spans.extend(found)
        for span in found:
            evidence.append_json("spans.jsonl", span)
        return _accepted(request)

    rules = (
        Rule(path="/v1/traces", method="POST", answer=take, name="spans"),
        Rule(path="/v1/metrics", method="POST", answer=_accepted, name="metrics"),
        Rule(path="/v1/logs", method="POST", answer=_accepted, name="logs"),
    )
    async with open_recorder(name, evidence=evidence, rules=rules, port=port) as recorder:
        yield Collector(recorder, spans, refused)


def spans_of(request: Recorded) -> tuple[Span, ...]:
    """The spans of an export request, wherever it was sent.

    Raises:
        BadExport: it is none.
    """
    kind = request.header("content-type").partition(";")[0].strip().lower()
    if kind == _PROTOBUF:
        return from_protobuf(request.body)
    if kind == _JSON:
        return from_json(request.body)
    raise BadExport(f"content type {kind!r}, expected {_PROTOBUF} or {_JSON}")


def _accepted(request: Recorded) -> Answer:
    """An empty response message, in the encoding of the request."""
    if request.header("content-type").startswith(_JSON):
        return Answer(json={})
    return Answer(headers={"content-type": _PROTOBUF})
