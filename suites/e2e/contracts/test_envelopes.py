"""Envelopes are read strictly: what is malformed is refused by name, stored nowhere and run by no butler."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from typing import Any, Final

import pytest

from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.dialect import Phrase
from suites.e2e.ecosystem.handle import Ecosystem, envelope
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult
from suites.e2e.observe.expect_journey import expect_inbox
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.covers("E2E-ENVELOPES")

#: Far beyond any message of a person, well below what breaks a client.
OVERSIZE_CHARS: Final = 3_000_000

#: No name of a channel, person or event is as long.
OVERSIZE_NAME_CHARS: Final = 300_000

#: Stands for "leave the field out".
LEFT_OUT: Final = object()

#: (where, value, what the refusal must name)
Change = tuple[tuple[str, ...], Any, str]

INGEST_SECTIONS: Final = ("source", "event", "sender", "payload")
INGEST_TEXTS: Final = (
    ("source", "channel"),
    ("source", "provider"),
    ("source", "endpoint_identity"),
    ("event", "external_event_id"),
    ("sender", "identity"),
    ("payload", "normalized_text"),
)
INGEST_FIELDS: Final = (*INGEST_TEXTS, ("event", "observed_at"))

ROUTE_TEXTS: Final = (
    ("request_id",),
    ("source_butler",),
    ("target_butler",),
    ("input", "prompt"),
)


def _rows(*changes: tuple[str, Change]) -> list[Any]:
    return [pytest.param(change, id=name) for name, change in changes]


def _name(path: tuple[str, ...]) -> str:
    return "-".join(path).replace("_", "-")


INGEST: Final = _rows(
    *((f"{s}-left-out", ((s,), LEFT_OUT, s)) for s in INGEST_SECTIONS),
    *((f"{s}-is-a-text", ((s,), "yesterday", s)) for s in INGEST_SECTIONS),
    *((f"{s}-is-null", ((s,), None, s)) for s in INGEST_SECTIONS),
    *((f"{_name(p)}-left-out", (p, LEFT_OUT, p[-1])) for p in INGEST_FIELDS),
    *((f"{_name(p)}-is-null", (p, None, p[-1])) for p in INGEST_FIELDS),
    *((f"{_name(p)}-is-a-number", (p, 7, p[-1])) for p in INGEST_FIELDS),
    *((f"{_name(p)}-is-a-list", (p, ["x"], p[-1])) for p in INGEST_TEXTS),
    *((f"{s}-with-a-stranger", ((s, "stranger"), 1, "stranger")) for s in INGEST_SECTIONS),
    ("stranger", (("stranger",), {"x": 1}, "stranger")),
    ("control-with-a-stranger", (("control", "stranger"), 1, "stranger")),
    (
        "trace-with-a-stranger",
        (("control", "trace_context", "stranger"), 1, "stranger"),
    ),
    ("control-is-a-list", (("control",), [], "control")),
    ("key-is-a-number", (("control", "idempotency_key"), 7, "idempotency_key")),
    ("observed-at-in-words", (("event", "observed_at"), "yesterday", "observed_at")),
    ("observed-on-no-day", (("event", "observed_at"), "2026-02-30T08:00:00Z", "observed_at")),
    ("trace-is-a-text", (("control", "trace_context"), "00-x", "trace_context")),
    ("version-is-later", (("schema_version",), "ingest.v2", "schema_version")),
    ("version-of-another", (("schema_version",), "route.v1", "schema_version")),
)

OVERSIZE: Final = _rows(
    ("text", (("payload", "normalized_text"), "x" * OVERSIZE_CHARS, "normalized_text")),
    ("raw", (("payload", "raw"), {"x": "y" * OVERSIZE_CHARS}, "raw")),
    ("channel", (("source", "channel"), "x" * OVERSIZE_NAME_CHARS, "channel")),
    ("event", (("event", "external_event_id"), "x" * OVERSIZE_NAME_CHARS, "external_event_id")),
    ("sender", (("sender", "identity"), "x" * OVERSIZE_NAME_CHARS, "identity")),
    ("key", (("control", "idempotency_key"), "x" * OVERSIZE_NAME_CHARS, "idempotency_key")),
)

ROUTE: Final = _rows(
    *((f"{_name(p)}-left-out", (p, LEFT_OUT, p[-1])) for p in ROUTE_TEXTS),
    *((f"{_name(p)}-is-null", (p, None, p[-1])) for p in ROUTE_TEXTS),
    *((f"{_name(p)}-is-a-list", (p, ["x"], p[-1])) for p in ROUTE_TEXTS),
    ("input-left-out", (("input",), LEFT_OUT, "input")),
    ("input-is-a-text", (("input",), "log it", "input")),
    ("input-with-a-stranger", (("input", "stranger"), 1, "stranger")),
    ("trace-with-a-stranger", (("trace_context", "stranger"), 1, "stranger")),
    ("stranger", (("stranger",), 1, "stranger")),
    ("prompt-is-empty", (("input", "prompt"), "", "prompt")),
    ("prompt-oversize", (("input", "prompt"), "x" * OVERSIZE_CHARS, "prompt")),
    ("version-is-later", (("schema_version",), "route.v2", "schema_version")),
    ("version-of-another", (("schema_version",), "ingest.v1", "schema_version")),
    ("for-another-butler", (("target_butler",), "relationship", "relationship")),
    ("for-an-unknown-butler", (("target_butler",), "unknown", "unknown")),
    ("from-a-stranger", (("source_butler",), "stranger", "stranger")),
    # A caller, and a target, is known by its whole name, letter by letter.
    *(
        (f"from-{kind}", (("source_butler",), name, name.strip()))
        for kind, name in (
            ("a-longer-name", "switchboard2"),
            ("a-shorter-name", "switch"),
            ("another-case", "Switchboard"),
            ("a-name-with-a-blank", "switchboard "),
            ("another-butler", "general"),
        )
    ),
    *(
        (f"for-{kind}", (("target_butler",), name, name.strip()))
        for kind, name in (
            ("a-longer-name", "health2"),
            ("a-shorter-name", "heal"),
            ("another-case", "Health"),
            ("a-name-with-a-blank", " health"),
        )
    ),
)


@pytest.mark.capability("ingest.v1")
@pytest.mark.parametrize("change", [*INGEST, *OVERSIZE])
async def test_a_malformed_message_is_refused(
    ecosystem: Ecosystem, token: str, change: Change
) -> None:
    """The refusal names the field at fault; the message is stored nowhere and run by no butler.

    Where the very message is refused unchanged, its variations are not run.
    """
    valid = _message(token)
    message = _changed(valid, change)
    ecosystem.dialect.need_difference("ingest", valid, message, path=change[0])
    await ecosystem.need_valid("switchboard", "ingest", _message(secrets.token_hex(6)))
    answer = await _refused(ecosystem.switchboard, "ingest", message)

    _expect_named(ecosystem, "ingest", answer, change)
    stored = await ecosystem.switchboard.database.rows(
        "SELECT request_id FROM message_inbox WHERE to_jsonb(message_inbox)::text LIKE %s",
        (f"%{token}%",),
    )

    assert [] == stored, "a refused message was stored"
    if answer is None:
        assert "switchboard" == (await ecosystem.switchboard.status())["name"], (
            "after a refusal below MCP the switchboard still answers by its name"
        )


@pytest.mark.covers("E2E-ENVELOPES", "E2E-IDEMPOTENCY")
@pytest.mark.capability("ingest.v1")
async def test_what_was_refused_is_not_known(ecosystem: Ecosystem, token: str) -> None:
    """A refused message leaves nothing: the same event with the same key is a new one when it is put right."""
    text = f"I have a headache, severity 3 ({token})"
    trace_id = secrets.token_hex(16)
    message = envelope(text, event_id=f"event-{token}", trace_id=trace_id)
    message["control"]["idempotency_key"] = f"key-{token}"
    said = ecosystem.dialect.phrases.get("ingest", Phrase()).said
    for wrong in ({"stranger": 1}, {"schema_version": "ingest.v2"}, {"sender": {}}):
        if said(message | wrong) != said(message):
            await _refused(ecosystem.switchboard, "ingest", message | wrong)
    sent = await ecosystem.send(
        text, event_id=f"event-{token}", trace_id=trace_id, control=message["control"]
    )

    assert sent.answer["duplicate"] is False, (
        f"what was refused is not known when it comes again: expected a new message, found {sent.answer}"
    )
    expect_inbox(await follow(ecosystem, sent), ["health"])


@pytest.mark.capability("route.v1")
@pytest.mark.parametrize("change", ROUTE)
async def test_a_request_that_is_not_for_it_is_refused(
    ecosystem: Ecosystem, token: str, change: Change
) -> None:
    """The refusal names what is wrong, and the butler runs no session for it."""
    valid = _request(token)
    request = _changed(valid, change)
    ecosystem.dialect.need_difference("route.execute", valid, request, path=change[0])
    await ecosystem.need_valid("health", "route.execute", _request(secrets.token_hex(6)))
    health = ecosystem["health"]
    answer = await _refused(health, "route.execute", request)

    _expect_named(ecosystem, "route.execute", answer, change)
    ran = await health.database.rows(
        "SELECT id FROM sessions WHERE prompt LIKE %s OR request_id::text LIKE %s",
        (f"%{token}%", f"%{token}%"),
    )

    assert [] == ran, "a refused request was carried out"
    if answer is None:
        assert "health" == (await health.status())["name"], (
            "after a refusal below MCP the butler still answers by its name"
        )


@pytest.mark.capability("route.v1")
async def test_the_switchboard_may_route(ecosystem: Ecosystem, token: str) -> None:
    """The very request whose variations are refused is carried out, so the refusals mean something."""
    health = ecosystem["health"]
    answer = await health.try_call("route.execute", _request(token), seconds=ecosystem.patience_s)

    assert not answer.is_error, f"a good request is carried out; found {answer.text}\n{answer.text}"
    ran = await health.database.rows(
        "SELECT trigger_source, success FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
    )

    assert [{"trigger_source": "external", "success": True}] == [dict(row) for row in ran], (
        f"a routed request is one session, from outside, that succeeds; found {ran}"
    )


def _message(token: str) -> dict[str, Any]:
    """A good message, with the token where each of its fields keeps it."""
    message = envelope(
        f"I have a headache, severity 3 ({token})",
        event_id=f"event-{token}",
        trace_id=secrets.token_hex(16),
    )
    message["payload"]["raw"] = {"text": token}
    message["sender"]["identity"] = f"{token}@example.test"
    return message


def _request(token: str) -> dict[str, Any]:
    """A good ``route.v1`` request as the switchboard makes it."""
    return {
        "schema_version": "route.v1",
        "request_id": f"request-{token}",
        "source_butler": "switchboard",
        "target_butler": "health",
        "input": {"prompt": f"I have a headache, severity 1 ({token})", "segment": token},
        "trace_context": {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"},
    }


def _changed(message: Mapping[str, Any], change: Change) -> dict[str, Any]:
    (*parents, last), value, _ = change
    changed = copy.deepcopy(dict(message))
    inner = changed
    for key in parents:
        inner = inner[key]
    if value is LEFT_OUT:
        del inner[last]
    else:
        inner[last] = value
    return changed


async def _refused(butler: Butler, tool: str, arguments: Mapping[str, Any]) -> ToolResult | None:
    """The refusal; ``None`` when an oversize request is refused below MCP, by the HTTP server."""
    try:
        answer = await butler.try_call(tool, arguments)
    except CannotReach:
        return None
    outcome = answer.value.get("status") if isinstance(answer.value, dict) else None

    assert answer.is_error or outcome == "validation_error", f"carried out: {answer.text[:400]}"
    return answer


def _expect_named(
    ecosystem: Ecosystem, tool: str, answer: ToolResult | None, change: Change
) -> None:
    """By the contract's name of the field, or the product's own."""
    path, value, named = change
    if answer is None:
        size = len(str(value))

        assert size >= OVERSIZE_NAME_CHARS, "the connection was closed without a reason"
        return

    phrase = ecosystem.dialect.phrases.get(tool, Phrase())
    names = (named, *(phrase.names(path) if named in path else ()))
    assert any(name in answer.text for name in names), (
        f"the refusal does not say what is wrong: {answer.text[:400]}"
    )
