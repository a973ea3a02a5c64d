"""The chain of a message, judged link by link.

Not by its end: a message that reached the right table by the wrong way has not been handled. Each
function judges one link of a :class:`~suites.e2e.observe.journey.Journey` and, when it is broken, shows the
whole journey.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from harness_core.base.evidence import tell
from harness_core.doubles.model import LedgerEntry
from suites.e2e.ecosystem.handle import COST, REQUEST_IDS, SESSION_IDS, TOKEN_SUMS
from suites.e2e.observe.journey import Journey, Row, as_data, parts_of, recorded_calls
from suites.e2e.observe.sentences import same_json
from suites.e2e.observe.story import astray

__all__ = [
    "FAILED_OUTCOMES",
    "bare_tool",
    "cost_usd",
    "expect_accounted",
    "expect_fallback",
    "expect_finished",
    "expect_inbox",
    "expect_journey",
    "expect_routing",
    "expect_sessions",
    "expect_trace",
    "expect_understood",
    "fallback_reason",
    "within_usd",
    "words_of",
]

#: Where a message goes that could not be classified (contract, "MCP over HTTP/SSE").
_FALLBACK: Final = "general"

#: Every outcome of a dispatch but ``success`` (contract, "MCP over HTTP/SSE").
FAILED_OUTCOMES: Final = frozenset(
    {
        "target_unavailable",
        "timeout",
        "validation_error",
        "overload_rejected",
        "internal_error",
    }
)

#: ``duration_ms`` and the two times of a session are taken by different clocks, moments apart.
_CLOCKS_APART_MS: Final = 2000

#: Tokens in a row and in the gateway's ledger are counted by the same counter.
_TOKEN_COLUMNS: Final = ("input_tokens", "output_tokens")


def expect_journey(journey: Journey, butlers: Sequence[str]) -> None:
    """Judge every link of the chain for a message that must reach exactly these butlers.

    Raises:
        AssertionError: the first broken link, and the whole journey.
    """
    expect_understood(journey, classifying=True)
    _expect_way(journey, butlers)
    expect_inbox(journey, butlers)
    expect_routing(journey, butlers)
    expect_sessions(journey, butlers)
    expect_trace(journey)
    expect_accounted(journey)


def expect_understood(journey: Journey, *, classifying: bool = False) -> None:
    """Whatever the model was asked held what a reader needs for it.

    Args:
        journey: of the message.
        classifying: of the calls that classify alone. A message that was sent to the wrong butler
            is not understood there either, and that is not what went wrong first.
    """
    missing = [
        call.missing
        for call in journey.calls
        if call.missing and (not classifying or "classifying prompt" in call.missing)
    ]

    assert not missing, f"{missing[0]}\n{journey.text()}"


def _expect_way(journey: Journey, butlers: Sequence[str]) -> None:
    """It ran on these butlers and no others, by all the evidence at once."""
    if journey.unfinished or not journey.inbox:
        return
    ran = {name for name in journey.sessions if name != "switchboard" and journey.of_message(name)}
    named = set(journey.targets())
    hops = {str(row["target_butler"]) for row in journey.routing}
    if ran == named == hops == set(butlers):
        return
    tell(lambda: astray(journey.sent.request_id, butlers, ran))
    answers = [call.answer for call in journey.calls[:1] if call.answer]
    evidence = [f"sessions ran on {_names(ran)}"]
    evidence += [f"routing_log has {_names(hops)}"] if hops != ran else []
    evidence += [f"the decomposition has {_names(named)}"] if named != ran else []
    evidence += [f"the model had answered {answers[0]}"] if answers else []
    found = "; ".join(evidence)
    raise AssertionError(f"expected {_names(butlers)}, found that {found}\n{journey.text()}")


def _names(butlers: Collection[str]) -> str:
    return " and ".join(sorted(butlers)) or "none"


def expect_inbox(journey: Journey, butlers: Sequence[str]) -> None:
    """Exactly one inbox row, completed, decomposed to exactly these butlers without a fallback."""
    expect_understood(journey)
    story = journey.text()

    assert len(journey.inbox) == 1, f"{len(journey.inbox)} inbox rows instead of one\n{story}"
    row = journey.inbox[0]

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert row["lifecycle_state"] == "completed", (
        f"the inbox row ended as {row['lifecycle_state']!r}, not 'completed'\n{story}"
    )
    assert set(journey.targets()) == set(butlers), (
        f"decomposed to {sorted(set(journey.targets()))}, expected {sorted(butlers)}\n{story}"
    )
    fallback = fallback_reason(row["decomposition"])

    assert fallback is None, f"classification fell back: {fallback}\n{story}"
    assert row["normalized_text"] == journey.sent.text, (
        f"the inbox row holds another text: {row['normalized_text']!r}\n{story}"
    )
    assert row["channel"] == journey.sent.channel, (
        f"it came by {journey.sent.channel}, and the inbox row says {row['channel']!r}\n{story}"
    )
    _expect_payload(journey, row)
    assert row["response_summary"], f"no answer: no response_summary\n{story}"
    outcomes = as_data(row["dispatch_outcomes"])
    words = set(words_of(outcomes))
    missing = sorted(set(butlers) - words)

    assert not missing, f"dispatch_outcomes do not name {missing}: {outcomes}\n{story}"
    failures = sorted(FAILED_OUTCOMES & words)

    assert not failures, f"dispatch_outcomes speak of {failures}: {outcomes}\n{story}"
    assert "success" in words, (
        f"each target has an outcome of the contract; dispatch_outcomes are {outcomes}\n{story}"
    )


def _expect_payload(journey: Journey, row: Row) -> None:
    """The raw payload is stored as it came, whatever it stands in."""
    payload = journey.sent.arguments.get("payload")
    if not isinstance(payload, Mapping) or "raw" not in payload:
        return
    stored = as_data(row["payload"])

    expect_named(journey, stored)
    assert any(same_json(payload["raw"], part) for part in parts_of(stored)), (
        f"what was accepted is kept whole: the raw payload was {payload['raw']}, "
        f"stored is {stored}\n{journey.text()}"
    )


def expect_named(journey: Journey, stored: Any) -> None:
    """Of who wrote when and where, what the product stores is what it was told; times as moments."""
    sent = journey.sent.arguments
    told = {
        key: value
        for section in ("source", "event", "sender")
        for key, value in dict(sent.get(section) or {}).items()
    }
    for part in parts_of(stored):
        for key in told.keys() & part.keys() if isinstance(part, Mapping) else ():
            assert _moment(part[key]) == _moment(told[key]), (
                f"what was accepted is kept as it was: {key} was {told[key]!r}, "
                f"stored is {part[key]!r}\n{journey.text()}"
            )


def _moment(value: Any) -> Any:
    """A time with its zone as a moment; anything else as it is."""
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return moment if moment.tzinfo else value


def expect_fallback(journey: Journey, *, classified: bool | None = True) -> str:
    """The whole message went to ``general`` alone, and its inbox row gives the reason.

    Args:
        journey: of the message.
        classified: whether the session that should have classified it must have ended well;
            ``None`` makes no claim.

    Returns:
        The reason that the row gives.
    """
    story = journey.text()

    assert len(journey.inbox) == 1, f"{len(journey.inbox)} inbox rows instead of one\n{story}"
    row = journey.inbox[0]

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert row["lifecycle_state"] == "completed", (
        f"the inbox row ended as {row['lifecycle_state']!r}, not 'completed'\n{story}"
    )
    reason = fallback_reason(row["decomposition"])

    assert reason is not None, f"a silent fallback: the row does not speak of one\n{story}"
    assert reason != NO_REASON, f"the row does not say why it fell back\n{story}"
    assert journey.targets() == (_FALLBACK,), f"decomposed to {journey.targets()}\n{story}"
    expect_routing(journey, [_FALLBACK])
    for butler in journey.sessions:
        for session in journey.of_message(butler):
            expect_finished(session, butler=butler, story=story)
    on = {butler: len(journey.of_message(butler)) for butler in journey.sessions}
    wanted = dict.fromkeys(on, 0) | {"switchboard": 1, _FALLBACK: 1}

    assert on == wanted, f"sessions ran on {on}, expected {wanted}\n{story}"
    asking = journey.of_message("switchboard")[0]

    assert classified in {None, asking["success"]}, (
        f"the classifying session says success={asking['success']}\n{story}"
    )
    handling = journey.of_message(_FALLBACK)[0]

    assert handling["success"] is True, f"the session on {_FALLBACK} failed\n{story}"
    assert journey.sent.text in handling["prompt"], f"part of the message was lost\n{story}"
    return reason


def expect_routing(journey: Journey, butlers: Sequence[str]) -> None:
    """Exactly one successful ``routing_log`` row per dispatched segment, to its butler."""
    story = journey.text()
    hops = Counter(str(row["target_butler"]) for row in journey.routing)
    segments = Counter(journey.targets())

    assert hops == segments, (
        f"routing_log has hops {dict(hops)}, the decomposition asks for {dict(segments)}\n{story}"
    )
    assert set(hops) == set(butlers), f"routed to {sorted(hops)}, expected {butlers}\n{story}"
    for row in journey.routing:
        assert row["source_butler"] == "switchboard", f"unexpected source of a hop\n{story}"
        assert row["tool_name"] == "route.execute", f"unexpected tool of a hop\n{story}"
        assert row["success"] is True, f"the hop to {row['target_butler']} failed\n{story}"
        assert row["error"] in {None, ""}, f"a successful hop has an error\n{story}"
        assert row["error_class"] in {None, "", "success"}, (
            f"a successful hop has the error class {row['error_class']!r}\n{story}"
        )
        within = journey.of_message(str(row["target_butler"]))
        took_ms = [session["duration_ms"] or 0 for session in within]

        assert row["duration_ms"] is not None, f"a hop has no duration\n{story}"
        # A hop lasts at least as long as the session it asked for; half of it, for two clocks.
        assert row["duration_ms"] >= min(took_ms, default=0) / 2, (
            f"a hop of {row['duration_ms']} ms, and the session in it took {took_ms} ms\n{story}"
        )
        passed_ms = (row["created_at"] - journey.sent.since).total_seconds() * 1000

        assert 0 <= row["duration_ms"] <= passed_ms + _CLOCKS_APART_MS, (
            f"a hop of {row['duration_ms']} ms is on record {passed_ms:.0f} ms after the message "
            f"was sent\n{story}"
        )


def expect_sessions(journey: Journey, butlers: Sequence[str]) -> None:
    """One finished, successful session per segment on each expected butler; none on any other."""
    story = journey.text()
    segments = Counter(journey.targets())
    for butler in journey.sessions:
        if butler == "switchboard":
            continue
        found = journey.of_message(butler)
        wanted = segments[butler] if butler in butlers else 0

        assert len(found) == wanted, (
            f"{len(found)} sessions on {butler}, expected {wanted}\n{story}"
        )
        for row in found:
            expect_finished(row, butler=butler, story=story)
            assert row["success"] is True, f"the session on {butler} failed\n{story}"
            assert row["trigger_source"] == "external", (
                f"a session that a route caused says {row['trigger_source']!r}, not 'external', "
                f"on {butler}\n{story}"
            )
            assert row["result"], f"the session on {butler} has no result on record\n{story}"
    classified = journey.of_message("switchboard")

    assert len(classified) == 1, (
        f"{len(classified)} sessions on the switchboard, expected the one that classifies\n{story}"
    )
    assert classified[0]["success"] is True, f"the classifying session failed\n{story}"
    expect_finished(classified[0], butler="switchboard", story=story)


def expect_finished(row: Row, *, butler: str, story: str) -> None:
    """A session row that is true about its end: completed, timed, consistent."""
    assert row["completed_at"] is not None, f"the session on {butler} was left open\n{story}"
    assert row["completed_at"] >= row["started_at"], f"a session on {butler} ends early\n{story}"
    took_ms = (row["completed_at"] - row["started_at"]).total_seconds() * 1000

    assert row["duration_ms"] is not None, f"a session on {butler} has no duration\n{story}"
    assert abs(took_ms - row["duration_ms"]) < _CLOCKS_APART_MS, (
        f"a session on {butler} took {took_ms:.0f} ms and says {row['duration_ms']} ms\n{story}"
    )
    assert (row["error"] in {None, ""}) == bool(row["success"]), (
        f"a session on {butler} says success={row['success']} with error {row['error']!r}\n{story}"
    )


def expect_trace(journey: Journey) -> None:
    """The trace id that was sent joins the inbox row, every hop and every session.

    A product that does not claim to keep trace ids is judged by its request ids alone, where it keeps those.
    """
    story = journey.text()
    wanted = journey.sent.trace_id
    for row in journey.inbox if wanted else ():
        assert row["trace_id"] == wanted, f"the inbox row lost the trace\n{story}"
    for row in journey.routing if wanted else ():
        assert row["trace_id"] == wanted, (
            f"the hop to {row['target_butler']} lost the trace\n{story}"
        )
    for butler in journey.sessions:
        for row in journey.of_message(butler):
            assert not wanted or row["trace_id"] == wanted, (
                f"the session on {butler} lost the trace\n{story}"
            )
            named = REQUEST_IDS in journey.sent.accounts
            assert not named or str(row["request_id"]) == journey.sent.request_id, (
                f"the session on {butler} belongs to request {row['request_id']}\n{story}"
            )


def expect_accounted(journey: Journey) -> None:
    """Every session paid for its model calls: rows and the gateway's ledger have the same sums.

    Of sessions, tokens and money a product is judged by what it claims to keep.
    """
    story = journey.text()
    kept = journey.sent.accounts
    calls = [call for call in journey.calls if call.kind != "count_tokens" and call.status == 200]
    sessions = [row for butler in journey.sessions for row in journey.of_message(butler)]

    assert calls, f"the model was never called\n{story}"
    in_ledger = len({call.session for call in calls})

    assert SESSION_IDS not in kept or in_ledger == len(sessions), (
        f"the ledger knows {in_ledger} sessions with model calls, the rows {len(sessions)}\n{story}"
    )
    models = {call.model for call in calls}

    assert {row["model"] for row in sessions} == models, (
        f"rows name the models {[row['model'] for row in sessions]}, called were {models}\n{story}"
    )
    asked = sorted(bare_tool(tool) for call in calls for tool in call.called)
    recorded = sorted(str(call["name"]) for row in sessions for call in recorded_calls(row))

    assert recorded == asked, (
        f"tool calls: rows record {recorded}, the model asked for {asked}\n{story}"
    )
    if {SESSION_IDS, TOKEN_SUMS} <= kept:
        _expect_each_accounted(calls, sessions, story)
    for column in _TOKEN_COLUMNS if TOKEN_SUMS in kept else ():
        recorded_tokens = sum(row[column] or 0 for row in sessions)
        paid = sum(getattr(call, column) for call in calls)

        assert recorded_tokens == paid, (
            f"{column}: rows say {recorded_tokens}, the gateway's ledger {paid}\n{story}"
        )
    assert all(call.usd is not None for call in calls), f"a call has no price\n{story}"
    total_usd = sum(call.usd or 0 for call in calls)

    assert total_usd > 0, f"the message cost nothing\n{story}"
    recorded_usd = sum(cost_usd(row["cost"]) for row in sessions)

    assert COST not in kept or abs(recorded_usd - float(total_usd)) <= within_usd(len(sessions)), (
        f"cost: rows say {recorded_usd:.6f} USD, the gateway's ledger {total_usd:.6f} USD\n{story}"
    )


def _expect_each_accounted(
    calls: Sequence[LedgerEntry], sessions: Sequence[Row], story: str
) -> None:
    """Not the sums alone: each session is on record with its own tokens, and its tools in order."""
    by_session: dict[str, list[LedgerEntry]] = {}
    for call in calls:
        by_session.setdefault(call.session, []).append(call)
    owed = sorted(
        (
            *(sum(getattr(call, column) for call in made) for column in _TOKEN_COLUMNS),
            [bare_tool(tool) for call in made for tool in call.called],
        )
        for made in by_session.values()
    )
    booked = sorted(
        (
            *(row[column] or 0 for column in _TOKEN_COLUMNS),
            [str(call["name"]) for call in recorded_calls(row)],
        )
        for row in sessions
    )

    assert booked == owed, (
        f"each session is booked as it was (input tokens, output tokens, tools in order): rows say "
        f"{booked}, the gateway's ledger {owed}\n{story}"
    )


def within_usd(rows: int) -> float:
    """How far the sum of so many recorded prices may be from what was paid: each has six decimals."""
    return 1e-6 * rows


def words_of(value: Any) -> Iterator[str]:
    """Every key and every text of stored data, each whole.

    A text that merely speaks of a timeout, or begins with a butler's name, is neither.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from words_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words_of(inner)
    elif isinstance(value, str):
        yield value


#: What :func:`fallback_reason` says of a fallback that is recorded without a reason.
NO_REASON: Final = "no reason given"


def fallback_reason(decomposition: Any) -> str | None:
    """Why the classification fell back to ``general``; ``None`` when it did not."""
    found = _find_flag(as_data(decomposition))
    if found is None or not found[0]:
        return None
    return found[1].strip() or NO_REASON


def _find_flag(value: Any) -> tuple[bool, str] | None:
    if isinstance(value, Mapping):
        if "fallback" in value:
            flag = value["fallback"]
            reason = value.get("reason") or value.get("fallback_reason") or ""
            return bool(flag), str(reason or (flag if isinstance(flag, str) else ""))
        children: Sequence[Any] = tuple(value.values())
    elif isinstance(value, list):
        children = value
    else:
        return None
    return next((found for child in children if (found := _find_flag(child)) is not None), None)


def bare_tool(tool: str) -> str:
    """A tool's own name, without the prefix the Claude Code CLI gives the tools of a server."""
    return tool.rpartition("__")[2] if tool.startswith("mcp__") else tool


def cost_usd(cost: Any) -> float:
    """The price a session recorded: the contract says that it is kept, not under which key."""
    value = as_data(cost)
    if isinstance(value, Mapping):
        keys = [key for key in ("usd", "cost_usd", "total_usd", "total_cost_usd") if key in value]
        value = value[keys[0]] if keys else None
    return float(value) if isinstance(value, int | float) else 0.0
