"""What many failures leave behind: the success after them is as the first one."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
import trio

from harness_core.ports import lease_port
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_broken_journey import expect_carried_out, expect_no_open_session
from suites.e2e.worlds.canned import to_general
from suites.e2e.worlds.chaos import Chaos
from suites.e2e.worlds.vitals import expect_no_growth, read_vitals

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process", "registry-table"),
    pytest.mark.disturbs,
]

FAILURES: Final = 50

#: At a time: what a pool of connections grows to, it grows to before it is counted.
AT_ONCE: Final = 5

#: Each kind so often before anything is counted: what is loaded and cached at the first use is.
WARM_UP: Final = 10


async def test_fifty_failures_and_then_a_success(fragile: Ecosystem, chaos: Chaos) -> None:
    """Refused, failed and broken off calls hold no file, thread, process or connection afterwards."""
    general, board = fragile["general"], fragile.switchboard
    numbers = itertools.count()

    async def refused() -> None:
        """Arguments that no schema allows."""
        answer = await general.try_call("schedule_create", {"name": "", "cron": "no", "prompt": ""})

        assert answer.is_error, f"a schedule without a name is refused, found {answer.text}"

    async def failing_hop() -> None:
        """A delivery by way of the switchboard; where the messenger is said to be, no process is."""
        arguments = {"channel": "telegram", "message": f"number {next(numbers)}"}
        answer = await general.try_call("notify", arguments)

        assert answer.is_error, f"a delivery without a messenger fails, found {answer.text}"

    async def foreign() -> None:
        """A request for another butler."""
        answer = await board.try_call("ingest", {"source": {"channel": "x" * 70_000}})

        assert answer.is_error, f"half an envelope is refused, found {answer.text[:200]}"

    async def hung_up() -> None:
        """A caller that goes away in mid-call, or on the way in."""
        with trio.move_on_after(0.001 * (next(numbers) % 40)):
            try:
                await general.try_call("state_list", {"prefix": ""})
            except CannotReach as error:
                raise AssertionError(f"a butler that runs was not reached: {error}") from error

    with lease_port() as nowhere:
        await chaos.enlist(
            "messenger",
            like="general",
            url=f"http://127.0.0.1:{nowhere.port}/sse",
            description="Sends messages out.",
        )
    kinds = (refused, failing_hop, foreign, hung_up)
    await expect_carried_out(fragile, await fragile.send(to_general().text), "general")
    for kind in kinds:
        await often(kind, WARM_UP)
    before = {butler.name: await read_vitals(butler) for butler in (general, board)}
    for kind in kinds:
        await often(kind, FAILURES)
    message = to_general()
    await expect_carried_out(fragile, await fragile.send(message.text), "general")
    await message.expect_row(fragile, "general")
    for butler in (general, board):
        await expect_no_growth(
            butler,
            before[butler.name],
            after=f"{FAILURES} failures of each kind and one success",
            spare=AT_ONCE,
        )
        await expect_no_open_session(butler)


async def often(one: Callable[[], Awaitable[None]], times: int) -> None:
    """Some of them at a time."""
    limit = trio.CapacityLimiter(AT_ONCE)

    async def limited() -> None:
        async with limit:
            await one()

    async with trio.open_nursery() as nursery:
        for _ in range(times):
            nursery.start_soon(limited)
