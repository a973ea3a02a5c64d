"""The queue of sessions: bounded at every moment, also between two of them."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from butlers.config import ButlerConfig, Runtime
from butlers.errors import Rejected
from butlers.log import Log
from butlers.spawner import Job, Spawner
from butlers.tracing import Tracer


class HeldRuntime:
    """Sessions that end when they are let go, and how many there were."""

    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)
        self.begun = 0

    async def run(self, job: Job, outcome: Any) -> None:
        self.begun += 1
        await self.go.acquire()
        outcome.success = True


class Nowhere:
    """Rows that go nowhere; the first that is completed calls ``then`` some turns later."""

    def __init__(self, *, turns: int = 0, then: Callable[[], Any] = lambda: None) -> None:
        self._turns = turns
        self._then: Callable[[], Any] | None = then

    async def opened(self, *_: Any, **__: Any) -> None:
        pass

    async def completed(self, *_: Any, **__: Any) -> None:
        then, self._then = self._then, None
        if then is not None:
            self._after(self._turns, then)

    def _after(self, turns: int, then: Callable[[], Any]) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._after, turns - 1, then)
        else:
            then()


def spawner(
    runtime: HeldRuntime, tmp_path: Any, *, depth: int, rows: Nowhere | None = None
) -> Spawner:
    config = ButlerConfig(directory=tmp_path, name="x", port=1, runtime=Runtime(queue_depth=depth))
    sessions: Any = rows or Nowhere()
    any_runtime: Any = SimpleNamespace(run=runtime.run)
    return Spawner(
        config, runtime=any_runtime, sessions=sessions, tracer=Tracer("x"), log=Log("x"), tools=()
    )


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("after", range(8))
def test_the_queue_is_full_also_while_a_turn_changes_hands(tmp_path: Any, after: int) -> None:
    """When a session has ended and the next has not begun, the lock is free and the queue is not."""

    async def play() -> tuple[list[Any], int]:
        runtime = HeldRuntime()
        late: list[asyncio.Task[Any]] = []

        def rush() -> None:
            late.extend(asyncio.create_task(trigger()) for _ in range(4))

        queue = spawner(runtime, tmp_path, depth=2, rows=Nowhere(turns=after, then=rush))

        async def trigger() -> Any:
            try:
                return (await queue.trigger("x", trigger_source="trigger")).status
            except Rejected as refusal:
                return refusal.error_class

        first = [asyncio.create_task(trigger()) for _ in range(3)]
        await turns()
        runtime.go.release()
        await turns(100)
        for _ in range(6):
            runtime.go.release()
        await turns(200)
        return [await each for each in (*first, *late)], runtime.begun

    answers, begun = asyncio.run(play())

    assert answers[:3] == ["success"] * 3, f"those that were queued in time: {answers}"
    assert answers[3:].count("overload_rejected") >= 3, (
        f"one place became free, so of four late triggers one may wait at most: {answers}"
    )
    assert begun <= 4, f"{begun} sessions ran, expected 1 + depth 2 + the place that became free"


def test_a_place_is_given_back_after_every_kind_of_end(tmp_path: Any) -> None:
    """After fifty callers that went away, were refused or succeeded, the queue is as at first."""

    async def play() -> int:
        runtime = HeldRuntime()
        queue = spawner(runtime, tmp_path, depth=1)
        for _ in range(50):
            running = asyncio.create_task(queue.trigger("x", trigger_source="trigger"))
            waiting = asyncio.create_task(queue.trigger("x", trigger_source="trigger"))
            await turns()
            waiting.cancel()
            running.cancel()
            await asyncio.gather(waiting, running, return_exceptions=True)
        runtime.go.release()
        last = await queue.trigger("x", trigger_source="trigger")
        assert "success" == last.status, f"after fifty cancelled ones a trigger ended as {last}"
        return queue.queued

    assert 0 == asyncio.run(play()), "triggers that went away still count as waiting"
