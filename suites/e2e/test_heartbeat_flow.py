"""The clock of the household: every butler is ticked, what is due runs once, silence is written down.

It runs in the ecosystem that has credentials: Telegram and the other services are stand-ins, recorders
on loopback, of which these tests need none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.errors import NotReady
from harness_core.base.vain import VainWaits
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Butler
from suites.e2e.ecosystem.subject_file import filled, tables_of
from suites.e2e.worlds.chaos import Chaos, expect_in_time
from suites.e2e.worlds.credentialed import BEAT_S, Connected
from suites.e2e.worlds.quarantine import quarantined
from suites.e2e.worlds.schedules import fall_due, schedule, schedule_row, sessions_of

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-HEARTBEAT"),
    pytest.mark.capability("heartbeat", "schedules"),
    pytest.mark.disturbs,
]

#: Two beats and one session, on a loaded machine. Slowest seen: 4 s.
SOON_S: Final = 30.0

#: Ticks that were owed and did not come; a tick waits for the beat and for a session.
_TICKED: Final = VainWaits("e2e-ticks", least_s=20.0)

#: Longer than the deadline until a butler speaks MCP, as it comes with the product.
LONG_S: Final = 8.0

#: Connections that five butlers try to make meanwhile: some beats of the clock are among them.
KNOCKS: Final = 20

#: Ticks of one butler after which another that had none has been left out, not late.
MANY: Final = 8


async def test_every_butler_is_ticked_again_and_again(beating: Connected) -> None:
    """Within a few beats every butler that runs, the heartbeat too, was ticked twice and answered."""
    since = await now(beating)
    wanted = set(beating.butlers.butlers)
    seen: dict[str, int] = {}

    async def twice() -> bool:
        seen.clear()
        for tick in await ticks(beating, since=since):
            if tick["success"]:
                seen[tick["butler"]] = seen.get(tick["butler"], 0) + 1
        return {name for name, count in seen.items() if count > 1} >= wanted or (
            max(seen.values(), default=0) >= MANY and not seen.keys() >= wanted
        )

    await comes_true(twice)

    assert wanted <= {name for name, count in seen.items() if count > 1}, (
        f"ticked were {seen}, there are {sorted(wanted)}"
    )


async def test_a_beat_that_is_asked_for(beating: Connected) -> None:
    """Asked to, it ticks every butler at once and says whom; its history shows those ticks.

    After many beats what it says is still about one: it does not name a butler as often as it was ticked.
    """
    heartbeat = beating.butlers["heartbeat"]
    if not {"tick_all_butlers", "tick_history"} <= (await heartbeat.tools()).keys():
        not_run("subject", "heartbeat has no tools tick_all_butlers and tick_history")
    since = await now(beating)
    wanted = set(beating.butlers.butlers)
    said: list[str] = []

    async def all_named() -> bool:
        # One that still works on a tick of the clock is left alone by this beat.
        said.append(str(await heartbeat.call("tick_all_butlers", seconds=SOON_S)))
        return all(any(name in each for each in said) for name in wanted)

    named = await comes_true(all_named)
    answered = {tick["butler"] for tick in await ticks(beating, since=since) if tick["success"]}
    shown = str(await heartbeat.call("tick_history", limit=200))
    for _ in range(MANY):
        last = str(await heartbeat.call("tick_all_butlers", seconds=SOON_S))

    often = {name: last.count(name) for name in wanted if last.count(name) >= MANY}
    assert not often, f"a beat ticks each butler once; after {MANY} it names {often} in {last}"
    assert named, f"it says that each of {sorted(wanted)} was ticked; found {said[-1]}"
    assert wanted <= answered, f"{sorted(wanted)} are ticked; found {sorted(answered)}"
    lacking = sorted(name for name in wanted if name not in shown)
    assert not lacking, f"its history shows every tick; {lacking} are not in {shown}"


@pytest.mark.slow
async def test_the_clock_keeps_its_time(beating: Connected) -> None:
    """Ticks of one butler come at the configured interval: not faster, and not at half the pace."""
    since = await now(beating)
    times: list[dt.datetime] = []

    async def five() -> bool:
        times[:] = [
            tick["at"] for tick in await ticks(beating, since=since) if tick["butler"] == "health"
        ]
        return len(times) > 4

    assert await comes_true(five), f"ticks of health: {times}"
    mean_s = (times[-1] - times[0]).total_seconds() / (len(times) - 1)

    expect_in_time(f"a beat ({times})", mean_s, deadline_s=0.5 * BEAT_S, slack_s=1.5 * BEAT_S)


@pytest.mark.covers("E2E-HEARTBEAT", "E2E-SCHEDULES")
async def test_what_is_due_runs_once_and_is_armed_again(beating: Connected, token: str) -> None:
    """A due task runs by the beat alone, in one session, and waits for its next time."""
    health = beating.butlers["health"]
    name = f"once-{token}"
    await schedule(health, name, f"Log that I have a headache, severity 3 ({token})")
    await fall_due(health, name)
    await ran(health, name)
    await another_tick(beating, "health")
    sessions = await sessions_of(health, name)
    row = await schedule_row(health, name)

    assert [True] == [session["success"] for session in sessions], (
        f"a due task is one session that succeeds\n{sessions}"
    )
    assert row["next_run_at"] > dt.datetime.now(dt.UTC), f"it is not armed again: {row}"
    assert row["last_run_at"] >= sessions[0]["started_at"] - dt.timedelta(seconds=5), (
        f"last_run_at is when it ran\n{row}"
    )
    assert row["last_result"], f"nothing is written down of its run: {row}"
    await health.database.expect_row("symptoms", where={"severity": 3, "name": "headache"})


@pytest.mark.slow
@pytest.mark.covers("E2E-HEARTBEAT", "E2E-SCHEDULES")
async def test_a_tick_may_take_its_time(beating: Connected, token: str) -> None:
    """A task that runs for longer than any handshake may take: its tick is answered, not given up.

    The gateway is a stand-in for the model provider, which is not late on request.
    """
    health, heartbeat = beating.butlers["health"], beating.butlers["heartbeat"]
    if "tick_all_butlers" not in await heartbeat.tools():
        not_run("subject", "heartbeat has no tool tick_all_butlers")
    name = f"slow-{token}"
    await schedule(health, name, f"Log that I have a headache, severity 2 ({token})")
    late = Fault(kind="latency", latency_s=LONG_S, contains=token)
    async with beating_rarely(beating), beating.butlers.gateway.client.fault(late):
        await fall_due(health, name)
        since = await now(beating)
        said = await heartbeat.call("tick_all_butlers", seconds=SOON_S + LONG_S)
        found = [tick for tick in await ticks(beating, since=since) if tick["butler"] == "health"]
    sessions = await sessions_of(health, name)

    assert [True] == [session["success"] for session in sessions], (
        f"a due task is one session that succeeds, however long it takes\n{sessions}"
    )
    assert [True] == [tick["success"] for tick in found], (
        f"a tick is answered when what was due is done, after {LONG_S:g} s and more: expected one, a "
        f"success, found {found}; the beat said {said}"
    )


@asynccontextmanager
async def beating_rarely(beating: Connected) -> AsyncIterator[None]:
    """During the block the clock does not beat, but for who asks."""
    heartbeat = beating.butlers["heartbeat"]
    subject = beating.butlers.subject
    before = dict(heartbeat.environment)
    variables = tables_of(subject).heartbeat.env
    heartbeat.environment.update(
        filled(subject, "heartbeat.env", variables, {"interval_s": "3600"})
    )
    try:
        await heartbeat.restart()
        yield
    finally:
        heartbeat.environment.clear()
        heartbeat.environment.update(before)
        await heartbeat.restart()


async def test_what_is_disabled_does_not_run(beating: Connected, token: str) -> None:
    """A disabled task that is due stays where it is, beat after beat."""
    health = beating.butlers["health"]
    name = f"off-{token}"
    await schedule(health, name, f"Log that I have a cough, severity 2 ({token})")
    row = await schedule_row(health, name)
    await health.call("schedule_update", schedule_id=str(row["id"]), enabled=False)
    await fall_due(health, name)
    await another_tick(beating, "health")

    assert [] == await sessions_of(health, name), "a disabled task does not run"


@pytest.mark.covers("E2E-HEARTBEAT", "E2E-REGISTRY")
@pytest.mark.capability("registry-table")
async def test_what_is_due_in_quarantine_waits(beating: Connected, token: str) -> None:
    """A butler in quarantine is given no work by the beat either; released, it does what is due, once."""
    health = beating.butlers["health"]
    name = f"apart-{token}"
    await schedule(health, name, f"Log that I have a cough, severity 3 ({token})")
    async with quarantined(beating.butlers, "health"):
        # A beat that is under way may have asked before who is there; the next one asks again.
        for _ in range(2):
            await another_tick(beating, "relationship")
        await fall_due(health, name)
        for _ in range(2):
            await another_tick(beating, "relationship")
        ran_apart = await sessions_of(health, name)
    await ran(health, name)
    await another_tick(beating, "health")

    assert [] == ran_apart, (
        f"a butler in quarantine is given no work: expected no session, found {ran_apart}"
    )
    assert 1 == len(await sessions_of(health, name)), (
        "what was due in quarantine runs once after it"
    )


@pytest.mark.slow
async def test_what_falls_due_while_its_butler_is_down_is_not_lost(
    beating: Connected, token: str
) -> None:
    """A task that fell due while its butler was down runs once when its butler is back."""
    health = beating.butlers["health"]
    name = f"late-{token}"
    await schedule(health, name, f"Log that I have a fever, severity 5 ({token})")
    await health.stop()
    try:
        await fall_due(health, name)
    finally:
        await health.start()
    await ran(health, name)
    await another_tick(beating, "health")

    assert 1 == len(await sessions_of(health, name)), (
        "what fell due while its butler was down runs once"
    )


async def test_a_butler_that_does_not_answer_is_written_down(beating: Connected) -> None:
    """A dead butler's tick is a failure with its reason; the others are ticked all the same."""
    since = await now(beating)
    relationship = beating.butlers["relationship"]
    await relationship.kill()
    try:
        ended = await now(beating)

        async def logged() -> bool:
            return await logged_as_failed(beating, "relationship", since) or (
                sum(tick["butler"] == "relationship" for tick in await ticks(beating, since=ended))
                >= MANY
            )

        await comes_true(logged)

        assert await logged_as_failed(beating, "relationship", since), (
            "no tick of the dead butler is recorded as a failure"
        )
        await another_tick(beating, "health")
        await expect_not_named(beating, "relationship")
    finally:
        await relationship.restart()
    await another_tick(beating, "relationship")


async def expect_not_named(beating: Connected, dead: str) -> None:
    """A beat that is asked for does not count one as ticked that did not answer, if it says whom."""
    heartbeat = beating.butlers["heartbeat"]
    if "tick_all_butlers" not in await heartbeat.tools():
        return
    said = await heartbeat.call("tick_all_butlers", seconds=SOON_S)
    ticked = said.get("ticked", ()) if isinstance(said, dict) else ()

    assert dead not in ticked, f"{dead} is dead, and the beat says that it was ticked: {said}"


@pytest.mark.slow
async def test_the_beat_goes_on_without_the_switchboard(beating: Connected) -> None:
    """While the switchboard is down, the butlers that are known are still ticked."""
    switchboard = beating.butlers.switchboard
    await another_tick(beating, "health")
    await switchboard.stop()
    try:
        await another_tick(beating, "health")
    finally:
        await switchboard.start()
    await another_tick(beating, "switchboard")


@pytest.fixture
def chaos(beating: Connected, harness_loop: Loop) -> Iterator[Chaos]:
    """Breaks what a test wants broken; everything is given back afterwards, proved."""
    breaking = Chaos(beating.butlers)
    harness_loop.run(breaking.begin)
    yield breaking
    harness_loop.run(breaking.restore)


@pytest.mark.slow
async def test_the_beat_goes_on_after_its_database_was_away(
    beating: Connected, chaos: Chaos
) -> None:
    """Beats that nobody could write down are no end of the clock; each butler is ticked as before."""
    await another_tick(beating, "health")
    await chaos.kill_database()
    async with chaos.knocks() as knocks:
        await knocks.more(KNOCKS)
    await chaos.start_database()
    await chaos.expect_all_back()
    for _ in range(2):
        for name in ("health", "heartbeat"):
            await another_tick(beating, name)


async def comes_true(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Whether a condition holds soon; a product that never meets it fails, the harness does not."""
    with _TICKED.waiting(seconds=SOON_S) as wait:
        try:
            with deadline("see it happen", seconds=wait.seconds):
                await until(condition)
            wait.came = True
        except NotReady:
            return False
    return True


async def ran(butler: Butler, name: str) -> None:
    """A task has run to its end."""

    async def ended() -> bool:
        sessions = await sessions_of(butler, name)
        return bool(sessions) and sessions[0]["completed_at"] is not None

    assert await comes_true(ended), (
        f"{butler.name} did not run {name} to its end: {await schedule_row(butler, name)}"
    )


async def logged_as_failed(connected: Connected, butler: str, since: dt.datetime) -> bool:
    """Whether a tick of a butler is recorded as a failure."""
    return any(
        tick["butler"] == butler and tick["success"] is False
        for tick in await ticks(connected, since=since)
    )


async def another_tick(connected: Connected, butler: str) -> None:
    """A tick of a butler that began after this moment has succeeded."""
    since = await now(connected)

    async def answered() -> bool:
        return any(
            tick["butler"] == butler and tick["success"]
            for tick in await ticks(connected, since=since)
        )

    assert await comes_true(answered), f"{butler} was not ticked within {SOON_S:.0f} s"


async def now(connected: Connected) -> dt.datetime:
    """The time of the heartbeat's database, which its log is written by."""
    row = await connected.butlers["heartbeat"].database.one("SELECT clock_timestamp() AS now")
    return row["now"]


async def ticks(connected: Connected, *, since: dt.datetime) -> list[dict[str, Any]]:
    """The heartbeat's log, oldest first; the subject file says where it is."""
    subject = connected.butlers.subject
    log = tables_of(subject).heartbeat.ticks
    if log is None:
        not_run("subject", f"{subject.path.name} does not say where ticks are logged")
    return await connected.butlers["heartbeat"].database.rows(
        f"SELECT {log.butler} AS butler, {log.at} AS at, {log.success} AS success FROM {log.table} "
        f"WHERE {log.at} >= %s ORDER BY {log.at}",
        (since,),
    )
