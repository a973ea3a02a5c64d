"""A trio loop in a thread: what crosses between it and its callers, and in which shape."""

import threading
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from harness_core.base.bridge import blocking, open_loop
from harness_core.base.errors import HarnessError, NotReady


class Broken(Exception):  # noqa: N818 - a word, as those of the harness are
    """Raised by the tests' own managers."""


async def answer() -> int:
    """A call that works."""
    await trio.lowlevel.checkpoint()
    return 42


async def fail() -> int:
    """A call that does not."""
    await trio.lowlevel.checkpoint()
    raise Broken


def test_run_answers_and_raises():
    """A call's result and its error arrive in the calling thread."""
    with open_loop() as loop:
        assert 42 == loop.run(answer)
        with pytest.raises(Broken):
            loop.run(fail)
        assert 42 == loop.run(answer)


def test_hold_enters_and_leaves_in_one_task():
    """A manager may open a nursery: it is entered and left in the same task of the loop."""
    tasks = []

    @asynccontextmanager
    async def manager():
        tasks.append(trio.lowlevel.current_task())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            yield "value"
            nursery.cancel_scope.cancel()
        tasks.append(trio.lowlevel.current_task())

    with open_loop() as loop, loop.hold(manager()) as value:
        assert "value" == value
        assert 1 == len(tasks)

    assert tasks[0] is tasks[1]


@pytest.mark.parametrize("when", ["enter", "exit"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_errors_of_the_manager_arrive_unwrapped(when, wrapped):
    """What a manager raises on the way in or out is raised here as itself, also from a nursery."""

    async def break_down() -> None:
        raise Broken(when)

    async def go_wrong() -> None:
        if wrapped:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(break_down)
        await break_down()

    @asynccontextmanager
    async def manager():
        if when == "enter":
            await go_wrong()
        yield
        await go_wrong()

    entered = False
    with open_loop() as loop:
        with pytest.raises(Broken) as raised, loop.hold(manager()):
            entered = True
        assert 42 == loop.run(answer)

    assert (when,) == raised.value.args
    assert entered is (when == "exit")


def test_error_of_the_block_reaches_the_manager_and_wins():
    """The manager sees the block's error, as in an ``async with``; the very error is raised here."""
    seen: list[BaseException] = []
    error = Broken("block")

    @asynccontextmanager
    async def manager():
        try:
            async with trio.open_nursery():
                yield
        except* Broken as group:
            seen.extend(group.exceptions)
            raise

    with open_loop() as loop, pytest.raises(Broken) as raised, loop.hold(manager()):
        raise error

    assert [error] == seen
    assert raised.value is error


def test_manager_may_swallow_the_error_of_the_block():
    """A manager that handles the block's error ends it, as in an ``async with``."""

    @asynccontextmanager
    async def manager():
        with suppress(Broken):
            yield

    with open_loop() as loop, loop.hold(manager()):
        raise Broken


def test_error_of_the_manager_over_that_of_the_block():
    """A manager that fails while it handles the block's error raises its own, with the other kept."""

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            raise NotReady("stop", observed="it hangs")

    with open_loop() as loop, pytest.raises(NotReady) as raised, loop.hold(manager()):
        raise Broken

    assert isinstance(raised.value.__context__, Broken)


def test_keyboard_interrupt_in_the_block_leaves_the_manager():
    """Ctrl-C while a resource is held still closes it."""
    left = []

    @asynccontextmanager
    async def manager():
        try:
            yield
        finally:
            left.append(True)

    with open_loop() as loop, pytest.raises(KeyboardInterrupt), loop.hold(manager()):
        raise KeyboardInterrupt

    assert [True] == left


def test_loop_that_stops_ends_what_waits_on_it():
    """A call in flight when its loop stops is an error of the harness, not a cancellation."""
    errors: list[BaseException] = []
    started = threading.Event()

    @asynccontextmanager
    async def manager():
        started.set()
        await trio.sleep_forever()
        yield

    def enter(loop) -> None:
        try:
            with loop.hold(manager()):
                pass
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    with open_loop() as loop:
        thread = threading.Thread(target=enter, args=(loop,))
        thread.start()
        started.wait(5)
    thread.join(5)

    (error,) = errors
    assert isinstance(error, HarnessError)
    assert "the loop was stopped" == error.observed


async def test_blocking_runs_off_the_loop():
    """A blocking call runs in another thread with its arguments, and its error comes back."""

    def work(first: int, *, second: int) -> tuple[bool, int]:
        return threading.current_thread() is threading.main_thread(), first + second

    assert (False, 3) == await blocking(work, 1, second=2)
    with pytest.raises(ZeroDivisionError):
        await blocking(lambda: 1 / 0)
