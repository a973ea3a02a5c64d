"""Who may use what lives on another loop: each kind of caller, and what ends a call in the middle."""

import asyncio
import signal
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from harness_core.base.bridge import anywhere, at_home, blocking, open_loop, this_loop
from harness_core.base.errors import HarnessError
from harness_core.base.wait import until

#: A deadline that a call which never ends runs into.
SOON_S = 0.05
#: What takes longer does not happen.
LONG_S = 10.0


class Broken(Exception):  # noqa: N818 - a word, as those of the harness are
    """Raised by the tests' own calls."""


class Endless:
    """A call that ends when it is cut off, and takes its time about it."""

    def __init__(self, when_begun=lambda: None, *, error: Exception | None = None) -> None:
        self.begun = threading.Event()
        self.ended = False
        self._when_begun = when_begun
        self._error = error

    async def __call__(self) -> None:
        """Begin, and end only when cut off."""
        self.begun.set()
        try:
            self._when_begun()
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await blocking(lambda: None)
            self.ended = True
            if self._error is not None:
                raise self._error


def interrupt() -> None:
    """Ctrl-C, which the main thread gets in its sleep.

    asyncio waits for its loop without a descriptor that signals wake it by: one that comes when it has
    looked for signals, and does not sleep yet, is seen when it wakes up for something else.
    """
    main = threading.main_thread()
    state = Path(f"/proc/self/task/{main.native_id}/stat")
    while main is not threading.current_thread() and state.read_text().rpartition(")")[2][1] == "R":
        pass
    signal.pthread_kill(main.ident, signal.SIGINT)


async def answer() -> str:
    """A call that works; says which thread it ran in."""
    await trio.lowlevel.checkpoint()
    return threading.current_thread().name


async def fail() -> None:
    """A call that does not."""
    await trio.lowlevel.checkpoint()
    raise Broken


def loops_running() -> int:
    """Threads that run a loop of ours."""
    return sum(thread.name == "harness-loop" for thread in threading.enumerate())


class Handle:
    """What lives on a loop, and what belongs to none."""

    def __init__(self, loop) -> None:
        self.loop = loop

    @at_home
    async def owned(self) -> str:
        """Runs where it lives."""
        return await answer()

    @anywhere
    async def free(self, call=answer) -> object:
        """Runs in the caller's loop."""
        return await call()


def test_a_call_answers_and_raises(caller):
    """Result and error arrive in the caller's loop; the call itself runs on the other."""
    with open_loop() as loop:

        async def body():
            assert "harness-loop" == await loop.call(answer)
            assert "harness-loop" == await Handle(loop).owned()
            with pytest.raises(Broken):
                await loop.call(fail)

        caller.run(body)


def test_several_calls_of_one_loop_overlap(caller):
    """The caller's loop goes on while it waits: the first call ends only when the second has come."""
    with open_loop() as loop:
        second_came = trio.Event()

        async def first() -> int:
            await second_came.wait()
            return 1

        async def second() -> int:
            second_came.set()
            return 2

        async def in_trio():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(loop.call, first)
                assert 2 == await loop.call(second)

        async def in_asyncio():
            assert [1, 2] == await asyncio.gather(loop.call(first), loop.call(second))

        caller.run(in_asyncio if caller.name.endswith("asyncio") else in_trio)


def test_a_deadline_ends_the_call_in_both_loops(caller):
    """The caller goes on when the call has ended on the other loop, and not before."""
    hanging = Endless()
    with open_loop() as loop:

        async def body():
            with pytest.raises(TimeoutError):
                await caller.within(SOON_S, lambda: loop.call(hanging))
            assert hanging.ended
            assert "harness-loop" == await loop.call(answer)

        caller.run(body)


def test_a_wait_of_asyncio_ends_the_call():
    """``asyncio.wait_for`` and a cancelled task end it as a deadline does."""
    first, second = Endless(), Endless()
    with open_loop() as loop:

        async def body():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(loop.call(first), SOON_S)
            task = asyncio.create_task(loop.call(second))
            await asyncio.to_thread(second.begun.wait, LONG_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()

        asyncio.run(body())

    assert (True, True) == (first.ended, second.ended)


def test_what_goes_wrong_on_the_way_out_is_raised(caller):
    """An error that a call raises while it is cut off is not lost."""
    with open_loop() as loop:

        async def body():
            with pytest.raises(Broken):
                await caller.within(SOON_S, lambda: loop.call(Endless(error=Broken())))

        caller.run(body)


def test_ctrl_c_ends_the_call_in_both_loops(caller):
    """Ctrl-C in the middle comes out as itself, when the call has ended on the other loop."""
    hanging = Endless(interrupt)
    with open_loop() as loop:

        async def body():
            await loop.call(hanging)

        with pytest.raises(KeyboardInterrupt):
            caller.run(body)

        assert hanging.ended
        assert "harness-loop" == loop.run(answer)


def test_ctrl_c_ends_a_call_of_synchronous_code():
    """The same without a loop, also while something is entered that would have been held."""
    hanging, entering = Endless(interrupt), Endless(interrupt)

    @asynccontextmanager
    async def manager():
        await entering()
        yield

    with open_loop() as loop:
        with pytest.raises(KeyboardInterrupt):
            loop.run(hanging)
        assert hanging.ended
        with pytest.raises(KeyboardInterrupt), loop.hold(manager()):
            raise AssertionError("it was never entered")
        assert entering.ended
        assert "harness-loop" == loop.run(answer)


def test_a_second_ctrl_c_leaves_at_once_and_the_loop_lives_on():
    """A caller who insists leaves; its call ends later, and the loop goes on."""
    release = threading.Event()

    async def stubborn() -> None:
        interrupt()
        try:
            await trio.sleep_forever()
        finally:
            interrupt()
            with trio.CancelScope(shield=True):
                await blocking(release.wait, LONG_S)

    with open_loop() as loop:

        async def body():
            await loop.call(stubborn)

        with pytest.raises(KeyboardInterrupt):
            trio.run(body)
        assert not release.is_set()
        release.set()

        assert "harness-loop" == loop.run(answer)


def test_a_coroutine_that_is_dropped_ends_its_call():
    """A loop that was left by force never wakes its task again: the call goes with the task."""
    hanging = Endless()

    with open_loop() as loop:
        abandoned = asyncio.new_event_loop()
        waiting = loop.call(hanging)

        async def body():
            # Driven by hand: a task would be kept, and logged, by its loop.
            waiting.send(None)

        abandoned.run_until_complete(body())
        abandoned.close()
        hanging.begun.wait(LONG_S)
        waiting.close()

        async def ended() -> bool:
            return hanging.ended

        async def seen() -> None:
            with trio.fail_after(LONG_S):
                await until(ended)

        loop.run(seen)
        assert "harness-loop" == loop.run(answer)


def test_threads_may_use_it_at_once_with_or_without_a_loop(caller):
    """Plain threads wait; threads with a loop of their own await. Their calls overlap on the one loop."""
    arrived: list[str] = []
    answers: list[str] = []

    async def meet() -> str:
        arrived.append(await answer())

        async def all_here() -> bool:
            return len(arrived) == 4

        with trio.fail_after(LONG_S):
            await until(all_here)
        return arrived[0]

    with open_loop() as loop:

        async def body():
            answers.append(await loop.call(meet))

        ways = (lambda: answers.append(loop.run(meet)), lambda: caller.run(body))
        threads = [threading.Thread(target=way) for way in ways * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert ["harness-loop"] * 4 == answers


def test_what_belongs_to_no_loop_runs_in_the_callers_own(caller):
    """In trio at once; in asyncio in a loop for this call, of which nothing is left."""
    before = loops_running()

    async def body():
        handle = Handle(None)
        expected = "harness-loop" if caller.name.endswith("asyncio") else "MainThread"
        assert expected == await handle.free()
        with pytest.raises(Broken):
            await handle.free(fail)
        hanging = Endless()
        with pytest.raises(TimeoutError):
            await caller.within(SOON_S, lambda: handle.free(hanging))
        assert hanging.ended
        assert before == loops_running()

    caller.run(body)

    hanging = Endless(interrupt)
    with pytest.raises(KeyboardInterrupt):
        caller.run(lambda: Handle(None).free(hanging))
    assert hanging.ended
    assert before == loops_running()


def test_to_wait_where_a_loop_runs_is_refused_by_its_name(caller):
    """A thread that runs a loop cannot wait for another: it would stand still."""
    library = caller.name.rpartition("-")[2]
    with open_loop() as loop:

        async def body():
            for wait in (lambda: loop.run(answer), lambda: loop.hold(this_loop("x")).__enter__()):
                with pytest.raises(HarnessError) as refused:
                    wait()
                assert "wait for the harness loop" == refused.value.action
                assert f"runs a loop of {library}," in refused.value.observed
                assert "await loop.call" in refused.value.next_step

        caller.run(body)


def test_to_wait_on_the_loop_itself_is_refused():
    """The harness's own thread would wait for itself for ever."""
    with open_loop() as loop:

        async def wait() -> None:
            loop.run(answer)

        with pytest.raises(HarnessError, match="this thread runs a loop of trio"):
            loop.run(wait)


def test_a_caller_of_neither_library_is_refused():
    """A coroutine that something else drives is refused, with what may drive it, before anything happens."""
    hanging = Endless()
    with open_loop() as loop:
        for waiting, named in (
            (loop.call(hanging), "use the harness loop"),
            (Handle(loop).owned(), "use the harness loop"),
            (Handle(loop).free(hanging), "call Handle.free"),
        ):
            with pytest.raises(HarnessError, match="in no task of trio or asyncio") as refused:
                waiting.send(None)
            assert named == refused.value.action
            assert "loop.run(" in refused.value.next_step

    assert not hanging.begun.is_set()


def test_a_loop_that_was_closed_is_refused_by_name(caller):
    """A late call is refused at once, and the error names the loop."""
    with open_loop("the loop of a test") as loop:
        pass

    with pytest.raises(HarnessError, match="cannot use the loop of a test: it was closed"):
        caller.run(Handle(loop).owned)
    with pytest.raises(HarnessError, match="cannot use the loop of a test: it was closed"):
        loop.run(answer)


def test_a_loop_that_runs_already_serves_others_for_a_block(caller):
    """What is opened in a trio loop of the caller's can be used from other threads while it is open."""
    seen = []
    late = threading.Event()
    hanging = Endless()

    async def main() -> None:
        async with this_loop("the stack x") as loop:
            handle = Handle(loop)

            async def body():
                seen.append(await handle.owned())
                seen.append("called")
                try:
                    await loop.call(hanging)
                except HarnessError as error:
                    seen.append(error.observed)
                late.wait(LONG_S)
                with pytest.raises(HarnessError, match="cannot use the stack x: it was closed"):
                    await handle.owned()
                seen.append("refused")

            thread = threading.Thread(target=lambda: caller.run(body))
            thread.start()
            await blocking(hanging.begun.wait, LONG_S)
            assert "MainThread" == await handle.owned()
        assert hanging.ended
        with pytest.raises(HarnessError, match="cannot use the stack x: it was closed"):
            await handle.owned()
        late.set()
        await blocking(thread.join)

    trio.run(main)

    assert ["MainThread", "called", "the loop was stopped", "refused"] == seen
