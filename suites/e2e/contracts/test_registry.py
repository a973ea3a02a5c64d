"""States of the registry mean what they say, on every path: to a route, to a delivery, in the prompt.

An operator puts a butler into quarantine; the contract has no tool for it, so the column is written that
the contract names. Telegram is a stand-in, a recorder on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import pytest

from harness_core.doubles.turns import route, say, use
from harness_core.ports import lease_port
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing
from suites.e2e.observe.journey import Row, follow, parts_of
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.beside import open_beside
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.quarantine import quarantined

pytestmark = [
    pytest.mark.covers("E2E-REGISTRY"),
    pytest.mark.capability("registry-table", "ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: From a start to a place in the registry: some heartbeats.
REGISTERED_S: Final = 20.0

#: From the last registration to the end of a lease of some heartbeats, and the row that says so.
STALE_S: Final = 30.0

#: A butler that registers once and then not again while a test goes on.
SELDOM_S: Final = 3600.0


async def test_quarantine_holds_on_every_path(connected: Connected, token: str) -> None:
    """A butler in quarantine gets no message, and stays there when it renews its lease or restarts.

    So it does when the switchboard restarts.
    What else it says of itself is kept: description and capabilities are the new ones. Released, it
    gets messages.
    """
    butlers = connected.butlers
    relationship = butlers["relationship"]
    text = f"Remind me to call Bob about {token}"
    file = relationship.config.directory / "butler.toml"
    before = file.read_text(encoding="utf-8")
    described = relationship.config.description
    described_anew = f"{described} Ünï 'q' {token}"
    able_anew = f"Fähigkeit 'q' {token}"
    try:
        async with quarantined(butlers, "relationship"):
            file.write_text(
                before.replace(
                    json.dumps(described), json.dumps(described_anew, ensure_ascii=False)
                ).replace("capabilities = [", f'capabilities = ["{able_anew}", '),
                encoding="utf-8",
            )
            await butlers.switchboard.restart()
            await expect_renewed(butlers, relationship, restart=True)
            row = await _entry(butlers, "relationship")

            expect_columns(
                "a butler in quarantine renews its lease and stays where it is", row,
                eligibility_state="quarantined", description=described_anew,
            )  # fmt: skip
            assert able_anew in row["capabilities"], (
                f"a later registration says what a butler can do now: expected {able_anew!r} among "
                f"its capabilities, found {row['capabilities']}"
            )
            journey = await follow(
                butlers, await butlers.send(text, model=[route("relationship"), say("Done.")])
            )
            story = journey.text()
            reached = [hop for hop in journey.routing if hop["target_butler"] == "relationship"]

            assert all(hop["error_class"] == "target_unavailable" for hop in reached), (
                f"a butler in quarantine is not to be reached: {reached}\n{story}"
            )
            assert not journey.of_message("relationship"), (
                f"a butler in quarantine was dispatched to\n{story}"
            )
            await expect_all_listed(butlers)
            shown = [call for call in journey.calls if described in call.prompt]

            assert not shown, f"the classifying model was offered a butler in quarantine\n{story}"
    finally:
        file.write_text(before, encoding="utf-8")
        await expect_renewed(butlers, relationship, restart=True)
    again = f"Remind me to call Bob about {token}again"
    sent = await butlers.send(
        again,
        model=[
            route("relationship"),
            use("reminder_create", message=f"call Bob about {token}again", contact_name="Bob"),
        ],
    )
    journey = await follow(butlers, sent)
    expect_inbox(journey, ["relationship"])
    expect_routing(journey, ["relationship"])


@pytest.mark.covers("E2E-REGISTRY", "E2E-DELIVERY")
@pytest.mark.capability("notify")
async def test_nothing_is_delivered_through_quarantine(connected: Connected, token: str) -> None:
    """While the messenger is in quarantine a notification is refused and not sent, then it is."""
    butlers = connected.butlers
    mark = connected.telegram.mark()
    async with quarantined(butlers, "messenger"):
        refused = await butlers["health"].try_call(
            "notify", {"channel": "telegram", "message": f"in quarantine {token}"}
        )
    await butlers["health"].call("notify", channel="telegram", message=f"released {token}")

    assert refused.is_error, f"the messenger is in quarantine, and the answer is {refused.text}"
    assert refused.text.strip(), "a notification was refused without a word"
    expect_same(
        "only what was sent after the release has arrived",
        expected=[f"released {token}"],
        found=[each["text"] for each in connected.telegrams(since=mark)],
    )


@pytest.mark.covers("E2E-REGISTRY", "E2E-DELIVERY")
@pytest.mark.capability("notify")
@pytest.mark.knob("heartbeat_s")
async def test_nothing_is_delivered_through_who_is_silent(connected: Connected, token: str) -> None:
    """A messenger whose lease ran out is stale, and given nothing until it has registered again.

    So is whoever else is silent, whether it takes messages or not.
    """
    butlers = connected.butlers
    messenger, health = butlers["messenger"], butlers["health"]
    before = dict(messenger.environment)
    messenger.environment.update(turned(butlers.subject, "messenger", heartbeat_s=SELDOM_S))
    mark = connected.telegram.mark()
    try:
        await expect_renewed(butlers, messenger, restart=True)
        down = [name for name, each in butlers.butlers.items() if each.child.returncode is not None]
        for name in ("messenger", *down):

            async def is_stale(name: str = name) -> bool:
                return bool((await _entry(butlers, name))["eligibility_state"] == "stale")

            await expect_soon(
                f"{name} is silent, and stale when its lease is over", is_stale, seconds=STALE_S
            )
        refused = await health.try_call(
            "notify", {"channel": "telegram", "message": f"to the stale {token}"}
        )
    finally:
        messenger.environment.clear()
        messenger.environment.update(before)
        await expect_renewed(butlers, messenger, restart=True)
    await health.call("notify", channel="telegram", message=f"heard again {token}")

    assert refused.is_error, f"the messenger is stale, and the answer is {refused.text}"
    assert refused.text.strip(), "a notification was refused without a word"
    expect_same(
        "only what was sent when the messenger had registered again has arrived",
        expected=[f"heard again {token}"],
        found=[each["text"] for each in connected.telegrams(since=mark)],
    )


async def test_who_moves_in_quarantine_stays_there(connected: Connected) -> None:
    """A butler in quarantine that serves at another port is known to be there, and stays in quarantine."""
    butlers = connected.butlers
    relationship = butlers["relationship"]
    await relationship.stop()
    try:
        async with quarantined(butlers, "relationship"):
            with lease_port() as lease:
                port = lease.hand_over()
                async with open_beside(relationship, port=port):

                    async def has_moved() -> bool:
                        row = await _entry(butlers, "relationship")
                        return urlsplit(row["endpoint_url"]).port == port

                    await expect_soon(
                        "the registry knows where relationship has moved",
                        has_moved,
                        seconds=REGISTERED_S,
                    )
                    row = await _entry(butlers, "relationship")
    finally:
        await expect_renewed(butlers, relationship, restart=True)

    expect_columns(
        "leaving quarantine needs an operator: a butler that moves stays where it is", row,
        eligibility_state="quarantined",
    )  # fmt: skip


async def expect_all_listed(ecosystem: Ecosystem) -> None:
    """A tool that lists the butlers, where there is one, shows each that is registered, as it is."""
    if "butler_list" not in await ecosystem.switchboard.tools():
        return
    rows = await ecosystem.switchboard.database.rows(
        "SELECT name, eligibility_state FROM butler_registry"
    )
    shown = [
        part
        for part in parts_of(await ecosystem.switchboard.call("butler_list"))
        if isinstance(part, Mapping) and "name" in part
    ]

    expect_same(
        "the registry lists the butlers that registered, whatever their state",
        expected={row["name"]: row["eligibility_state"] for row in rows},
        found={part["name"]: part.get("eligibility_state") for part in shown},
    )


async def expect_renewed(ecosystem: Ecosystem, butler: Butler, *, restart: bool) -> None:
    """A butler has renewed its lease after this moment, by itself or because it was restarted."""
    began = (await ecosystem.switchboard.database.one("SELECT clock_timestamp() AS now"))["now"]
    if restart:
        await butler.restart()

    async def renewed() -> bool:
        seen: datetime = (await _entry(ecosystem, butler.name))["last_seen_at"]
        return seen > began

    await expect_soon(f"{butler.name} has renewed its lease", renewed, seconds=REGISTERED_S)


async def _entry(ecosystem: Ecosystem, name: str) -> Row:
    return await ecosystem.switchboard.database.one(
        "SELECT * FROM butler_registry WHERE name = %s", (name,)
    )
