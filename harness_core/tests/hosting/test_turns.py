"""Turns: shared or alone, first come first served."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from harness_core.errors import HarnessError
from harness_core.hosting import Turns


async def test_many_share_at_once() -> None:
    """Users that share do not wait for one another."""
    turns = Turns()
    for who in ("a", "b", "c"):
        await turns.enter(who, alone=False)

    assert ("a", "b", "c") == turns.holders()


async def test_one_alone_waits_for_all_and_is_not_overtaken() -> None:
    """Who wants to be alone waits for those before it, and those after it wait for it."""
    turns = Turns()
    order: list[str] = []

    async def use(who: str, *, alone: bool) -> None:
        await turns.enter(who, alone=alone)
        order.append(who)

    await turns.enter("first", alone=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: use("alone", alone=True))
        await wait_all_tasks_blocked()
        nursery.start_soon(lambda: use("later", alone=False))
        await wait_all_tasks_blocked()

        assert [] == order
        turns.leave("first")
        await wait_all_tasks_blocked()

        assert ["alone"] == order
        assert turns.is_alone("alone")
        turns.leave("alone")

    assert ["alone", "later"] == order


async def test_one_that_gives_up_waiting_holds_nobody_up() -> None:
    """A cancelled wait leaves the queue, and those behind it get their turn."""
    turns = Turns()
    await turns.enter("first", alone=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: turns.enter("alone", alone=True))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await turns.enter("later", alone=False)

    assert ("first", "later") == turns.holders()


async def test_a_second_turn_is_refused() -> None:
    """Nobody waits for itself."""
    turns = Turns()
    await turns.enter("a", alone=False)
    with pytest.raises(HarnessError, match="has one already"):
        await turns.enter("a", alone=True)
