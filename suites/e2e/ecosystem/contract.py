"""What the contract names, and a product may have under other names: tables with columns, places of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["ANSWERS", "CONTRACT", "OF", "PLACES", "VALUES"]


def _table(columns: str) -> Mapping[str, str]:
    """Columns, each with its kind behind a colon where it has one."""
    pairs = (column.partition(":") for column in columns.split())
    return {name: kind for name, _, kind in pairs}


#: The contract's tables and columns (contract, "Database").
CONTRACT: Final[Mapping[str, Mapping[str, str]]] = {
    "state": _table("key value:json updated_at:time"),
    "scheduled_tasks": _table(
        "id name cron prompt source enabled:truth next_run_at:time last_run_at:time last_result"
    ),
    "sessions": _table(
        "id prompt trigger_source result tool_calls:json duration_ms:number trace_id cost:json"
        " started_at:time completed_at:time success:truth error model input_tokens:number"
        " output_tokens:number request_id"
    ),
    "butler_registry": _table(
        "name endpoint_url description capabilities eligibility_state last_seen_at:time"
    ),
    "message_inbox": _table(
        "request_id channel payload:json normalized_text lifecycle_state decomposition:json"
        " dispatch_outcomes:json response_summary"
    ),
    "routing_log": _table(
        "source_butler target_butler tool_name success:truth duration_ms:number error"
        " error_class created_at:time"
    ),
    "delivery_requests": _table(
        "id error error_class completed_at:time origin_butler channel recipient message status"
        " request_id trace_id created_at:time"
    ),
    "delivery_attempts": _table(
        "id error error_class completed_at:time delivery_id attempt_number:number started_at:time"
        " success:truth duration_ms:number"
    ),
    "delivery_receipts": _table(
        "id delivery_id attempt_id channel recipient external_message_id received_at:time"
    ),
}

#: Whose database has it; every butler's, else.
OF: Final = {
    "butler_registry": "switchboard",
    "message_inbox": "switchboard",
    "routing_log": "switchboard",
    "delivery_requests": "messenger",
    "delivery_attempts": "messenger",
    "delivery_receipts": "messenger",
}

#: Column → what the contract has it say.
VALUES: Final[Mapping[str, str]] = {
    "sessions.trigger_source": "`tick`, `external` (from `route.execute`), `trigger`, `schedule:NAME`",
    "sessions.tool_calls": "an object per call, with its `name`",
    "butler_registry.eligibility_state": "`active`, `stale`, `quarantined`",
    "message_inbox.lifecycle_state": "`accepted`, `planned`, `parsed`, `completed`, `errored`",
    "message_inbox.decomposition": "an object per part, with its `butler`; one that fell back says `fallback`, `reason`",
    "message_inbox.dispatch_outcomes": "butler → `success`, or its `error_class`",
    "routing_log.tool_name": "`route.execute`",
    "routing_log.error_class": "nothing, `target_unavailable`, `timeout`, `validation_error`, `overload_rejected`,"
    " `internal_error`",
}

#: Table of the subject file → the places of the contract's call that it stands for.
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "ingest": (
        *("source.channel", "source.provider", "source.endpoint_identity"),
        *("event.external_event_id", "event.observed_at", "sender.identity"),
        *("payload.raw", "payload.normalized_text"),
        *("control.idempotency_key", "control.trace_context.traceparent"),
    ),
    "route": (
        *("schema_version", "request_id", "source_butler", "target_butler"),
        *("input.prompt", "input.segment", "trace_context.traceparent"),
    ),
    "notify": ("channel", "message", "recipient"),
}

#: The same → keys of the answer that tests read; of ``status`` one value is good.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {"ingest": ("request_id", "duplicate", "status")}
