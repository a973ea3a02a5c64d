"""Where golden outcomes are kept, and what of a journey is one.

Snapshots belong to the subject, which alone words its answers so: ``[golden] directory`` of its
file. A message's journey is pinned whole, apart from the fields listed here with their reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.assertions import DbAssertion, Mask, fill, golden
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.subject_file import tables_of
from suites.e2e.observe.journey import Journey, as_data

__all__ = ["golden_directory", "outcome_of"]

_SPEED: Final = "how long it took is the machine's doing"
_PRICE: Final = "the price is compared with the gateway's ledger, to the last cent"
_COUNTED: Final = "tokens are compared with the ledger; each id in a prompt changes their number"

MASKS: Final = (
    Mask(field="routing.*.duration_ms", reason=_SPEED),
    Mask(field="inbox.*.dispatch_outcomes.*.duration_ms", reason=_SPEED),
    Mask(field="sessions.*.*.duration_ms", reason=_SPEED),
    Mask(field="sessions.*.*.cost", reason=_PRICE),
    Mask(field="sessions.*.*.input_tokens", reason=_COUNTED),
    Mask(field="sessions.*.*.output_tokens", reason=_COUNTED),
    Mask(
        field="sessions.switchboard.*.prompt",
        reason="it lists every butler of the roster, and adding one must not break another's run",
    ),
    Mask(field="inbox.*.payload.event.external_event_id", reason="drawn anew for each message"),
    Mask(field="routing.*.id", reason="counts the hops of the whole run"),
    Mask(field="inbox.*.event_key", reason="a digest of the event's id"),
    Mask(field="inbox.*.traceparent", reason="holds a span id drawn anew for each message"),
)


def golden_directory(subject: Subject) -> Path | None:
    """Where a subject's snapshots lie; ``None`` when its file names no place."""
    directory = tables_of(subject).golden.directory
    return subject.resolve(directory) if directory else None


async def outcome_of(
    ecosystem: Ecosystem, journey: Journey, assertions: tuple[DbAssertion, ...], *, token: str
) -> Any:
    """Everything a message left, with stable names for what differs in each run."""
    rows = {}
    for assertion in assertions:
        if assertion.count == 0:
            continue
        butler = ecosystem[assertion.butler]
        found = await butler.database.expect_row(
            assertion.table,
            where=fill(assertion.where, token),
            columns=fill(assertion.column_checks, token),
        )
        rows[f"{butler.name}.{assertion.table}"] = found
    return golden(
        {
            "inbox": _data(journey.inbox),
            "routing": sorted(_data(journey.routing), key=lambda row: str(row["target_butler"])),
            "sessions": {
                name: _data(found)
                for name in sorted(journey.sessions)
                if (found := journey.of_message(name))
            },
            "rows": _data(rows),
        },
        names={
            token: "token",
            journey.sent.trace_id: "trace",
            journey.sent.request_id: "request",
        },
        masks=MASKS,
    )


def _data(value: Any) -> Any:
    """Rows with their JSON columns as data."""
    if isinstance(value, Mapping):
        return {key: _data(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_data(item) for item in value]
    read = as_data(value) if isinstance(value, str) and value[:1] in {"{", "["} else value
    return value if isinstance(read, str) else read
