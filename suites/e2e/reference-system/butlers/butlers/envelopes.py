"""The two envelopes of the contract, checked strictly: `ingest.v1` and `route.v1`.

Unknown fields are refused at every level, every text and document has a bound.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from butlers import faults, tracing

TEXT_CHARS = 32_000
RAW_BYTES = 256_000
NAME_CHARS = 256

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS, strict=True)]
LongText = Annotated[str, StringConstraints(max_length=TEXT_CHARS, strict=True)]


def _only_text(value: Any) -> Any:
    if not isinstance(value, str | datetime):
        raise ValueError("expected an ISO 8601 time with a zone, as text")
    return value


def _bounded(value: Any) -> Any:
    size = len(json.dumps(value, default=str).encode())
    if size > RAW_BYTES:
        raise ValueError(f"expected at most {RAW_BYTES} bytes of JSON, found {size}")
    return value


def _as_written(value: str) -> str:
    return value.lower() if faults.on("sender-folded") else value


def _a_traceparent(value: str) -> str:
    if tracing.parse(value) is None:
        raise ValueError("expected a W3C traceparent, 00-<32 hex>-<16 hex>-<2 hex>")
    return value


class Envelope(BaseModel):
    """Refuses what it does not know."""

    model_config = ConfigDict(
        extra="ignore" if faults.on("envelope-lenient") else "forbid", frozen=True
    )


class Source(Envelope):
    channel: Name = Field(description="where it came in, e.g. telegram", examples=["telegram"])
    provider: Name = Field(description="the connector", examples=["telegram-bot"])
    endpoint_identity: Name = Field(description="the receiving account", examples=["bot:butler"])


class Event(Envelope):
    external_event_id: Name = Field(description="the provider's own id of the event")
    observed_at: Annotated[AwareDatetime, BeforeValidator(_only_text)] = Field(
        description="when the connector saw it, ISO 8601 with zone",
        examples=["2026-01-31T08:00:00Z"],
    )


class Sender(Envelope):
    identity: Annotated[Name, AfterValidator(_as_written)] = Field(description="who wrote it", examples=["owner"])


class Payload(Envelope):
    raw: Annotated[Any, AfterValidator(_bounded)] = Field(
        description="the event as it arrived, any JSON"
    )
    normalized_text: LongText = Field(description="the message as plain text")


class TraceContext(Envelope):
    traceparent: Annotated[str, AfterValidator(_a_traceparent)] = Field(
        description="W3C trace context"
    )
    tracestate: Annotated[str, StringConstraints(max_length=512)] | None = None


class Control(Envelope):
    idempotency_key: Name | None = Field(
        default=None, description="the same key is the same message"
    )
    trace_context: TraceContext | None = None


class RouteInput(Envelope):
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=TEXT_CHARS)] = Field(
        description="what the target is asked to do"
    )
    segment: Any = Field(default=None, description="the part of the message it came from")
    context: LongText | None = Field(default=None, description="put before the prompt")


IngestVersion = Literal["ingest.v1"]
RouteVersion = Literal["route.v1"]
