"""Langfuse by its own client: observations of a run's trace, and scores.

The client sends in the background and tells nobody what came of it. Here each batch is sent while the
caller waits, and what Langfuse has taken is answered, so that only that is written down as told.
Observations and scores have ids that follow from what they are about: what is sent again is the same.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import requests
from langfuse import Langfuse, LangfuseOtelSpanAttributes
from langfuse.api import CreateScoreRequest, ScoreDataType
from langfuse.api.core import ApiError
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from workbench_controller import settings

_SCORE = "feedback"
_SHOWN_CHARS = 20_000

#: Statuses of what is wrong with this one, and not with Langfuse or the key to it.
_REFUSALS = (400, 404, 409, 413, 415, 422)

_next_span_id: ContextVar[int] = ContextVar("next_span_id")


class LangfuseTroubled(Exception):
    """Langfuse has not taken it; it may later.

    Attributes:
        refused: it answers, and will not have this one.
    """

    def __init__(self, detail: str, *, refused: bool = False) -> None:
        super().__init__(detail)
        self.refused = refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something of a run: an episode as a whole, a model turn, a tool call, an event.

    Attributes:
        key: what it is about; its id at Langfuse follows from it.
        trace_id: of the run.
        below: key of the observation that it is part of; none of the run as a whole.
        kind: what Langfuse calls it: ``agent``, ``generation``, ``tool`` or ``event``.
    """

    key: str
    trace_id: str
    below: str | None
    kind: str
    name: str
    started_at: datetime
    finished_at: datetime
    ok: bool = True
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    shown: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def observation_id(key: str) -> str:
    """The id, 16 hexadecimal digits, by which Langfuse knows what a key is about."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


class LangfuseClient:
    """One project at Langfuse."""

    def __init__(self, langfuse: settings.Langfuse) -> None:
        # What comes of an attempt is answered, and told by who asked.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._confirming = _Confirming(langfuse)
        self._provider = TracerProvider(id_generator=_Given(), shutdown_on_exit=False)
        self._client = Langfuse(
            public_key=langfuse.public_key,
            secret_key=langfuse.secret_key,
            base_url=langfuse.url,
            timeout=max(1, round(langfuse.timeout_s)),
            tracer_provider=self._provider,
            span_exporter=self._confirming,
            should_export_span=lambda _span: True,
        )
        self._tracer = self._provider.get_tracer("workbench")

    def tell(self, observations: Sequence[Observation]) -> set[str]:
        """Send observations and wait; the keys of those that Langfuse has taken."""
        for each in observations:
            self._send(each)
        self._client.flush()
        taken = self._confirming.taken()
        return {each.key for each in observations if observation_id(each.key) in taken}

    @property
    def refuses(self) -> bool:
        """Whether the last answer to observations was that there is something wrong with them."""
        return self._confirming.status in _REFUSALS

    async def score(
        self, key: str, *, trace_id: str, value: float, comment: str | None, at: datetime
    ) -> None:
        """Score an observation; a later score of the same replaces it.

        Args:
            at: the same in each score of one observation.

        Raises:
            LangfuseTroubled: Langfuse has not taken it.
        """
        wanted = CreateScoreRequest(
            id=f"{observation_id(key)}-{_SCORE}",
            trace_id=trace_id,
            observation_id=observation_id(key),
            name=_SCORE,
            value=value,
            comment=comment,
            data_type=ScoreDataType.NUMERIC,
            timestamp=at,
        )
        try:
            answer = await self._client.async_api.scores.create(request=[wanted])
        except ApiError as error:
            refused = error.status_code in _REFUSALS
            raise LangfuseTroubled(f"cannot tell Langfuse the score: {error}", refused=refused) from error
        except (httpx.HTTPError, ValueError) as error:
            raise LangfuseTroubled(f"cannot tell Langfuse the score: {error}") from error
        if getattr(answer, "rejected", 0):
            raise LangfuseTroubled(f"Langfuse rejects the score: {answer}", refused=True)

    def close(self) -> None:
        """End its threads; nothing waits in them."""
        self._client.shutdown()

    def _send(self, one: Observation) -> None:
        about = {
            LangfuseOtelSpanAttributes.OBSERVATION_TYPE: one.kind,
            LangfuseOtelSpanAttributes.OBSERVATION_LEVEL: "DEFAULT" if one.ok else "ERROR",
            LangfuseOtelSpanAttributes.OBSERVATION_OUTPUT: _text(one.shown),
            LangfuseOtelSpanAttributes.OBSERVATION_METADATA: _text(one.metadata),
        }
        if one.model is not None:
            about[LangfuseOtelSpanAttributes.OBSERVATION_MODEL] = one.model
            about[LangfuseOtelSpanAttributes.OBSERVATION_USAGE_DETAILS] = _text(one.usage)
        if one.below is None:
            about[LangfuseOtelSpanAttributes.TRACE_NAME] = one.name
        _next_span_id.set(int(observation_id(one.key), 16))
        span = self._tracer.start_span(
            one.name,
            context=_parent(one),
            start_time=_nanoseconds(one.started_at),
            attributes=about,
        )
        span.end(_nanoseconds(one.finished_at))


class _Given(RandomIdGenerator):
    """Gives a span the id that follows from what it is about."""

    def generate_span_id(self) -> int:
        return _next_span_id.get()

    def generate_trace_id(self) -> int:
        raise NotImplementedError("every observation is of a run, which has its trace already")


class _Confirming(SpanExporter):
    """Sends spans as the client would, and remembers which were taken.

    Attributes:
        status: of the last answer; none where none came.
    """

    def __init__(self, langfuse: settings.Langfuse) -> None:
        pair = f"{langfuse.public_key}:{langfuse.secret_key}".encode()
        self._taken: set[str] = set()
        self.status: int | None = None
        session = requests.Session()
        session.hooks["response"].append(self._answered)
        self._exporter = OTLPSpanExporter(
            endpoint=f"{langfuse.url}/api/public/otel/v1/traces",
            headers={
                "Authorization": f"Basic {base64.b64encode(pair).decode()}",
                "x-langfuse-ingestion-version": "4",
            },
            timeout=langfuse.timeout_s,
            session=session,
        )

    def _answered(self, response: requests.Response, *_: Any, **__: Any) -> None:
        self.status = response.status_code

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them; as its parent's."""
        self.status = None
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._taken |= {f"{span.context.span_id:016x}" for span in spans}
        return result

    def shutdown(self) -> None:
        """As its parent's."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As its parent's."""
        return self._exporter.force_flush(timeout_millis)

    def taken(self) -> set[str]:
        """Ids of the spans that were taken since this was asked last."""
        taken, self._taken = self._taken, set()
        return taken


def _parent(one: Observation) -> trace.Context:
    """The run's trace, and what the observation is part of; of the whole run a parent that is nowhere."""
    above = observation_id(one.below if one.below is not None else f"above {one.key}")
    context = trace.SpanContext(
        trace_id=int(one.trace_id, 16),
        span_id=int(above, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(context))


def _nanoseconds(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1000


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN_CHARS]
