"""A stack of a fixture, used from each kind of loop: every method, and Ctrl-C in the middle."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness_core.base.bridge import Loop, open_loop
from harness_core.base.evidence import open_evidence
from harness_core.base.wait import until_blocking
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import Rehearsal, say
from harness_core.infrastructure.databases import Database
from harness_core.process import open_run
from harness_core.system.compose import Stack, StackOptions, open_stack
from harness_core.system.parts import State
from harness_core.tests.conformance.stack import write_sample_stack

pytestmark = pytest.mark.real

#: Long enough for a service to be stopped, and nowhere near the minute that it may take to start.
SOON_S = 0.5
AT_ONCE_S = 20.0


def with_model(services: dict[str, Any]) -> None:
    """The sample, with a model gateway."""
    services["model"] = {
        "image": "none",
        "ports": ["4000"],
        "x-harness": {"service": "gateway", "mode": "rehearsed"},
    }


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that lives on a loop of its own, as that of a fixture does."""
    folder = tmp_path_factory.mktemp("loops")
    evidence = open_evidence(folder / "evidence")
    compose = write_sample_stack(folder / "sample", python=sys.executable, changes=with_model)
    options = StackOptions(bin=str(compose.parent), environment={"PATH": "/usr/bin:/bin"})
    with (
        open_loop() as loop,
        loop.hold(open_run(evidence=evidence)) as run,
        loop.hold(open_stack(run, compose, evidence=evidence, options=options)) as opened,
    ):
        yield opened


@pytest.fixture
def loop() -> Iterator[Loop]:
    """For synchronous code."""
    with open_loop() as opened:
        yield opened


async def use(stack: Stack) -> None:
    """Every method of a stack that is awaited."""
    await stack.restart("front")
    await stack.kill("back")
    assert "it does not run (stopped)" == (await stack.unhealthy())["back"]
    await stack.start("back")
    await stack.pause("front")
    assert State.PAUSED is (await stack.states())["front"]
    await stack.resume("front")
    await stack.healthy()
    assert any("sample_server.py" in line for line in await stack.processes("front"))
    assert [{"number": 7}] == await stack.rows("select %s::int as number", [7])
    assert 200 == (await stack.client("front").get("/health")).status
    async with stack.outage("back", "kill"):
        assert "back" in await stack.unhealthy()
    assert {} == await stack.unhealthy()
    assert stack.database is not None
    await stack.database.expect_table("pg_catalog.pg_class")
    await stack.stop("back")
    assert ["back was stopped"] == list(await stack.mend())
    await stack.close()


async def use_gateway(stack: Stack) -> None:
    """What steers the model."""
    gateway = stack.gateway.client
    await gateway.rehearse(Rehearsal(message="hello", turns=(say("hi"),)))
    assert () == await gateway.unmatched()
    await gateway.set_scope("a test")
    async with gateway.fault(Fault(kind="status")):
        assert 1 == len(await gateway.waiting_faults())
    assert () == await gateway.waiting_faults()
    await gateway.clear()


@contextmanager
def ctrl_c_when(seen: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C in the block, as soon as something is seen."""

    def watch() -> None:
        until_blocking(lambda: seen() or None, seconds=AT_ONCE_S, action="see it begin")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        watching.join()


def starts_again(stack: Stack, service: str) -> Callable[[], bool]:
    """Whether another life of a service has begun since now."""
    lives = len(stack.log_files(service))
    return lambda: len(stack.log_files(service)) > lives


async def expect_down_and_mend(stack: Stack) -> None:
    """The start that was cut off has left nothing running, and says so; then all is put right."""
    assert State.STOPPED is (await stack.states())["front"]
    assert [] == list(await stack.processes("front"))
    assert ["back was stopped", "front was stopped"] == list(await stack.mend())
    await stack.healthy()


def test_every_method_works_in_every_loop(caller, stack):
    """Services, rows, requests and rehearsals, for trio, asyncio, and anyio on both."""
    caller.run(lambda: use(stack))
    caller.run(lambda: use_gateway(stack))


def test_every_method_works_in_synchronous_code_and_threads(stack, loop):
    """By ``loop.run``, of any loop, in any thread."""
    loop.run(lambda: use(stack))
    done = []

    def work() -> None:
        loop.run(lambda: use_gateway(stack))
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [True] == done


def test_a_deadline_in_the_middle_of_a_start(caller, stack):
    """A start that does not come to an end is cut off where its caller has no more patience."""

    async def body():
        await stack.kill("back")  # without which front never serves
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await caller.within(SOON_S, lambda: stack.restart("front"))
        assert time.monotonic() - began < AT_ONCE_S
        await expect_down_and_mend(stack)

    caller.run(body)


def test_ctrl_c_in_the_middle_of_a_start(caller, stack):
    """The same by Ctrl-C, which ends the caller's whole loop."""

    async def body():
        await stack.kill("back")
        await stack.restart("front")

    with ctrl_c_when(starts_again(stack, "front")):
        caller.run(body)

    caller.run(lambda: expect_down_and_mend(stack))


def test_ctrl_c_in_the_middle_of_a_start_by_synchronous_code(stack, loop):
    """The same without a loop of one's own."""
    loop.run(lambda: stack.kill("back"))

    with ctrl_c_when(starts_again(stack, "front")):
        loop.run(lambda: stack.restart("front"))

    loop.run(lambda: expect_down_and_mend(stack))


def test_ctrl_c_in_an_outage_gives_the_service_back(caller, stack):
    """Whatever ends the block, the stack is afterwards as it was."""
    away = threading.Event()

    async def body():
        async with stack.outage("back", "kill"):
            away.set()
            await stack.healthy()

    with ctrl_c_when(away.is_set):
        caller.run(body)

    assert {} == caller.run(stack.unhealthy)


def test_ctrl_c_in_the_middle_of_a_query(caller, stack, loop):
    """A query that takes a minute ends with its caller, on the server too."""
    watcher = Database(stack.access.database_url)
    running = "select 1 from pg_stat_activity where query = 'select pg_sleep(61)'"

    def runs() -> bool:
        return bool(loop.run(lambda: watcher.rows(running)))

    with ctrl_c_when(runs):
        caller.run(lambda: stack.rows("select pg_sleep(61)"))

    until_blocking(lambda: not runs() or None, seconds=AT_ONCE_S, action="see it end")
    assert [{"number": 1}] == caller.run(lambda: stack.rows("select 1 as number"))
    loop.run(watcher.close)
