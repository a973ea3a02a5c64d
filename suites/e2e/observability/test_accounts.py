"""What each butler records as spent is what the gateway booked for it, over several messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest

from harness_core.doubles.model import LedgerEntry
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import cost_usd, within_usd
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.covers("E2E-COST")


def butlers_of(
    calls: Iterable[LedgerEntry], served: Mapping[str, frozenset[str]]
) -> dict[str, list[LedgerEntry]]:
    """Model calls by butler: a session's tools are one butler's; one without tools classifies."""
    sessions: defaultdict[str, list[LedgerEntry]] = defaultdict(list)
    for call in calls:
        sessions[call.session].append(call)
    found: defaultdict[str, list[LedgerEntry]] = defaultdict(list)
    for session, made in sessions.items():
        offered = {tool.rpartition("__")[2] for call in made for tool in call.tools}
        owners = [name for name, tools in served.items() if offered <= tools]

        assert not offered or 1 == len(owners), f"session {session} has tools of {owners}"
        found[owners[0] if offered else "switchboard"].extend(made)
    return found


@pytest.mark.slow
async def test_tokens_and_cost_are_booked_on_the_butler_that_spent_them(
    ecosystem: Ecosystem, token: str
) -> None:
    """Summed over messages, each butler's rows equal its share of the gateway's ledger."""
    texts = (
        f"I have a headache, severity 2 ({token})",
        f"I have a headache, severity 3 ({token}). Also remind me to call Bob about {token}",
        f'Put "oat milk {token}" on the shopping list',
    )
    served = {name: frozenset(await butler.tools()) for name, butler in ecosystem.butlers.items()}
    journeys = [await follow(ecosystem, await ecosystem.send(text)) for text in texts]
    calls = {
        call.sequence: call
        for journey in journeys
        for call in journey.calls
        if call.kind != "count_tokens" and call.status == 200
    }
    paid = butlers_of(calls.values(), served)
    rows = {
        name: [row for journey in journeys for row in journey.of_message(name)]
        for name in ecosystem.butlers
    }
    story = "\n".join(journey.text() for journey in journeys)

    assert {"switchboard", "health", "relationship", "general"} == set(paid), (
        f"four butlers spent something; the ledger has {sorted(paid)}\n{story}"
    )
    assert set(paid) == {name for name, found in rows.items() if found}, (
        f"who spent something has sessions on record, and no other\n{story}"
    )
    for name, booked in paid.items():
        for column in ("input_tokens", "output_tokens"):
            recorded = sum(row[column] or 0 for row in rows[name])
            owed = sum(getattr(call, column) for call in booked)

            assert recorded == owed, f"{column} of {name}: rows {recorded}, ledger {owed}\n{story}"
        usd = sum(call.usd or 0 for call in booked)
        recorded_usd = sum(cost_usd(row["cost"]) for row in rows[name])

        assert usd > 0, f"{name} cost nothing\n{story}"
        assert abs(recorded_usd - usd) <= within_usd(len(rows[name])), (
            f"cost of {name}: rows {recorded_usd:.6f} USD, ledger {usd:.6f} USD\n{story}"
        )
