"""Add butlers, not boilerplate: a folder with a ``butler.toml`` is all a new butler needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import route, say, use
from harness_core.infrastructure.databases import Contains
from harness_core.process import Run
from harness_core.system.parts import ServiceFailed
from harness_core.system.subject import Subject
from suites.e2e.contracts.session_rows import expect_paid, session_of
from suites.e2e.ecosystem.boot import link_butlers, open_ecosystem, roster_directory
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing, expect_sessions
from suites.e2e.observe.journey import follow, recorded_calls
from suites.e2e.worlds.chaos import expect_soon

pytestmark = pytest.mark.covers("E2E-NEW-BUTLER")

GARDEN = """
[butler]
name = "garden"
port = 8177
description = "Garden: plants, seeds, sowing, watering, ${GARDEN_WORD}, roses and the greenhouse."
capabilities = ["plants", "watering", "sowing"]
"""

#: What it is later, and what it is no more.
WINTER = "hibernation"
CHANGED = f"""
[butler]
name = "garden"
port = 8177
description = "Garden in {WINTER}: pots and tools."
capabilities = ["pots", "{WINTER}"]
"""

#: From a start to the registry.
KNOWN_S = 30.0

#: What the butler is told of itself, in no message and no description.
INSTRUCTIONS = "You are the garden butler. The key to the greenhouse hangs behind the {token} vase."

#: What stands for ``${GARDEN_WORD}``, as it is.
WORD = 'tomatoes "Öchsle" \\ ${HOME}'

#: What a butler thinks with that names no model (contract, ``roster/<name>/``).
MODEL = "claude-haiku-4-5-20251001"

#: One with code and tables of its own, which are those of another.
SHED = """
[butler]
name = "shed-2"
port = 8178
description = "Shed: tools, ladders, buckets."

[butler.runtime]
model = "claude-sonnet-4-5-20250929"
"""
SHED_MODEL = "claude-sonnet-4-5-20250929"
CODE_OF = "general"
ASKS = "${GARDEN_WORD}"


#: The ecosystem with two folders more, and where its roster lies.
Grown = Callable[[], AbstractContextManager[tuple[Ecosystem, Path]]]


@pytest.fixture
def grown(
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    tmp_path: Path,
    token: str,
    progress: Callable[[str], None],
) -> Grown:
    """Boots a copy of the roster with two folders more; what only they prevent is a failure of the product."""

    @contextmanager
    def opened() -> Iterator[tuple[Ecosystem, Path]]:
        roster = tmp_path / "roster"
        link_butlers(subject, roster, ["switchboard"])
        (roster / "garden").mkdir()
        (roster / "garden" / "butler.toml").write_text(GARDEN, encoding="utf-8")
        told = INSTRUCTIONS.format(token=f"behind{token}")
        (roster / "garden" / "CLAUDE.md").write_text(told, encoding="utf-8")
        shutil.copytree(roster_directory(subject) / CODE_OF, roster / "shed-2")
        (roster / "shed-2" / "butler.toml").write_text(SHED, encoding="utf-8")
        manager = open_ecosystem(
            harness_run,
            subject,
            evidence=evidence,
            roster=roster,
            environment={"GARDEN_WORD": WORD, **turned(subject, "shed-2", shutdown_s=1)},
            say=progress,
        )
        try:
            with harness_loop.hold(manager) as ecosystem:
                yield ecosystem, roster
        except ServiceFailed as error:
            if not {"garden", "shed-2"} & set(str(error).replace(":", " ").split()):
                raise
            raise AssertionError(
                f"a folder with a butler.toml is a butler, and starts: {error}"
            ) from error

    return opened


@pytest.mark.slow
def test_a_new_folder_is_booted_registered_and_reached(
    harness_loop: Loop, grown: Grown, token: str
) -> None:
    """In a copy of the roster, a new folder is booted, registered, and gets its messages.

    So is one with tools and tables of its own, and a hyphen in its name. Each is told what its
    CLAUDE.md says, and thinks with the model that its file names. Started again with another file,
    it is known as what that one says.
    """
    with grown() as (ecosystem, roster):
        harness_loop.run(lambda: expect_reached(ecosystem, token))
        harness_loop.run(lambda: expect_code_used(ecosystem, token))
        harness_loop.run(lambda: expect_known_as_changed(ecosystem, roster))


@pytest.mark.covers("E2E-SESSIONS")
@pytest.mark.slow
@pytest.mark.capability("cost", "token-sums")
@pytest.mark.knob("shutdown_s")
def test_a_session_that_is_cut_off_is_paid(harness_loop: Loop, grown: Grown, token: str) -> None:
    """What a session spent before its butler was stopped is on record, at the prices of its own model."""
    with grown() as (ecosystem, _):
        harness_loop.run(lambda: expect_cut_off_paid(ecosystem, token))


async def expect_reached(ecosystem: Ecosystem, token: str) -> None:
    """The new butler serves, is listed, and runs the one session of its message."""
    assert set(ecosystem.butlers) == {"garden", "shed-2", "switchboard"}, (
        f"the roster has garden, shed-2 and switchboard, found {sorted(ecosystem.butlers)}"
    )
    await ecosystem.switchboard.database.expect_row(
        "butler_registry",
        where={"name": "garden", "endpoint_url": Contains(f":{ecosystem['garden'].port}/")},
        columns={"description": ecosystem["garden"].config.description.replace(ASKS, WORD)},
    )
    status = await ecosystem["garden"].status()

    assert status["name"] == "garden", f"garden calls itself {status['name']!r}"
    # A call of the model that was told what stands in the butler's own file, and no other.
    told = Fault(kind="latency", times=100, contains=f"behind{token}")
    async with ecosystem.gateway.client.fault(told) as number:
        sent = await ecosystem.send(
            f"Please water the tomatoes in the greenhouse ({token})",
            model=[route("garden"), say("They are watered.")],
        )
        journey = await follow(ecosystem, sent)
        met = await ecosystem.gateway.client.fault_met(number)

    assert met == 1, (
        "the system prompt of a butler's sessions is its CLAUDE.md: expected the one call of garden's "
        f"session to be told it, and no other; {met} calls were\n{journey.text()}"
    )
    expect_inbox(journey, ["garden"])
    expect_routing(journey, ["garden"])
    expect_sessions(journey, ["garden"])
    models = {row["model"] for row in journey.of_message("garden")}

    assert models == {MODEL}, (
        f"a butler whose file names no model has {MODEL}, found {models}\n{journey.text()}"
    )


async def expect_known_as_changed(ecosystem: Ecosystem, roster: Path) -> None:
    """Who is started with another description and other capabilities is in the registry with those."""
    garden = ecosystem["garden"]
    (roster / "garden" / "butler.toml").write_text(CHANGED, encoding="utf-8")
    await garden.restart()

    async def row() -> Mapping[str, Any]:
        rows: list[Mapping[str, Any]] = await ecosystem.switchboard.database.rows(
            "SELECT description, capabilities FROM butler_registry WHERE name = 'garden'"
        )
        assert len(rows) == 1, f"a butler is in the registry once, found garden as {rows}"
        return rows[0]

    async def is_known() -> bool:
        found = await row()
        return WINTER in str(found["description"]) and WINTER in str(found["capabilities"])

    try:
        await expect_soon("garden is known as its file says now", is_known, seconds=KNOWN_S)
    except AssertionError as error:
        raise AssertionError(
            f"the registry says of a butler what its file says since its start, {WINTER!r}: found "
            f"{dict(await row())}"
        ) from error
    found = await row()

    assert "sowing" not in str(dict(found)), (
        f"what the file does not say any more is not said in the registry either: found {dict(found)}"
    )


async def expect_code_used(ecosystem: Ecosystem, token: str) -> None:
    """The one with code is asked, and its tool's call and row are on record under their names."""
    text = f"Put the ladder {token} into the shed"
    given = {"collection": "ladders", "name": f"ladder {token}"}
    sent = await ecosystem.send(
        text, model=[route("shed-2"), use("entity_create", **given), say("It is there.")]
    )
    journey = await follow(ecosystem, sent)
    expect_inbox(journey, ["shed-2"])
    expect_routing(journey, ["shed-2"])
    expect_sessions(journey, ["shed-2"])
    called = [call["name"] for row in journey.of_message("shed-2") for call in recorded_calls(row)]

    assert called == ["entity_create"], (
        f"tool calls are recorded by the tool's own name: expected entity_create, found {called}\n"
        f"{journey.text()}"
    )
    models = {row["model"] for row in journey.of_message("shed-2")}
    asked = {call.model for call in journey.calls if call.kind != "count_tokens" and call.tools}

    assert (models, asked) == ({SHED_MODEL}, {SHED_MODEL}), (
        f"a butler thinks with the model that its file names, {SHED_MODEL}: its row says {models}, "
        f"called were {asked}\n{journey.text()}"
    )
    await ecosystem["shed-2"].database.expect_row("entities", where={"name": f"ladder {token}"})


async def expect_cut_off_paid(ecosystem: Ecosystem, token: str) -> None:
    """Stopped while its model is asked for the second time, it has the first answer on record."""
    shed, client = ecosystem["shed-2"], ecosystem.gateway.client
    word = f"saw {token}"
    # Much was read from the cache and little written to it: the price of neither is the other's.
    first = Fault(
        kind="answer",
        tool="entity_create",
        input={"collection": "saws", "name": word},
        contains=word,
        times=1,
        cache_read_tokens=9_000,
        cache_write_tokens=300,
    )
    mark = await client.mark()
    async with client.fault(first), client.fault(Fault(kind="hold", contains=word)) as number:

        async def is_held() -> bool:
            return await client.fault_met(number) > 0

        async def ask() -> None:
            with suppress(CannotReach):
                await shed.try_call("trigger", {"prompt": f"Put the {word} into the shed"})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await expect_soon("the session asks its model again", is_held, seconds=KNOWN_S)
            await shed.stop()
            nursery.cancel_scope.cancel()
    calls = await client.ledger(since=mark)
    paid = [call for call in calls if call.kind != "count_tokens" and call.status == 200]
    row = await session_of(shed, word)
    story = f"row {dict(row)}, paid calls {paid}"

    assert {SHED_MODEL} == {call.model for call in paid}, f"{SHED_MODEL} was asked\n{story}"
    expect_paid(row, paid, story)
