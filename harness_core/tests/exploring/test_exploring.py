"""Exploring finds what a small faulty store does wrong, and says how to see it again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from harness_core.assertions.exploring import Explore, Machine
from harness_core.base.errors import HarnessError, NotReady


class Store:
    """Keeps values by key; forgets one when a third key is there and the first is deleted."""

    def __init__(self, *, faulty: bool = True) -> None:
        self._values: dict[str, int] = {}
        self._faulty = faulty
        self.calls = 0

    async def put(self, key: str, value: int) -> None:
        """Set a key."""
        await trio.lowlevel.checkpoint()
        self.calls += 1
        self._values[key] = value

    async def delete(self, key: str) -> None:
        """Remove a key."""
        await trio.lowlevel.checkpoint()
        self._values.pop(key, None)
        if self._faulty and self._values:
            self._values.popitem()

    async def all(self) -> dict[str, int]:
        """What there is."""
        await trio.lowlevel.checkpoint()
        return dict(self._values)


class StoreMachine(Machine):
    """Holds the store to a dictionary."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.model: dict[str, int] = {}

    @rule(key=st.sampled_from("abc"), value=st.integers())
    def put(self, key: str, value: int) -> None:
        """Set a key in both."""
        self.wait_for(self.store.put, key, value=value)
        self.model[key] = value

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Remove a key from both."""
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.wait_for(self.store.delete, key)
        del self.model[key]

    @invariant()
    def keeps_what_was_put(self) -> None:
        """The contract."""
        found = self.wait_for(self.store.all)
        assert self.model == found, f"the store keeps what was put: {self.model}, not {found}"


def open_explore(seconds: float = 5.0, *, seed: int = 1) -> tuple[Explore, list[str]]:
    """An explorer, and the lines that it leaves."""
    lines: list[str] = []
    explorer = Explore(
        seconds=seconds, seed=seed, repeat=lambda seed: f"again --seed {seed}", done=lines.append
    )
    return explorer, lines


async def failure_of(make: Callable[[], Machine], *, seed: int = 1) -> AssertionError:
    """What exploring finds."""
    explorer, _ = open_explore(seed=seed)
    with pytest.raises(AssertionError) as caught:
        await explorer(make, steps=20)
    return caught.value


def note_of(error: BaseException) -> str:
    """The note of a failure."""
    (note,) = error.__notes__
    return note


async def test_a_fault_is_found_and_its_steps_are_few():
    """Two keys are put and one is deleted; the sentence is the rule's own."""
    error = await failure_of(lambda: StoreMachine(Store()))
    steps = re.findall(r"^ {4}.*state\.(\w+)\(", note_of(error), re.MULTILINE)

    assert "the store keeps what was put" in str(error)
    assert ["put", "put", "delete", "keeps_what_was_put"] == steps
    assert "state.keeps_what_was_put()  # does not hold" in note_of(error)
    assert "state.delete(data=data(...))  # 'a'" in note_of(error), "what was drawn"
    assert "value=0" in note_of(error)
    assert 1 == note_of(error).count("state = StoreMachine()")


async def test_the_seed_in_the_failure_finds_the_same_again():
    """As the first round, whichever it was before; the steps are the same."""
    first = await failure_of(lambda: StoreMachine(Store()), seed=40)
    seed = int(re.search(r"again --seed (\d+)", note_of(first))[1])
    again = await failure_of(lambda: StoreMachine(Store()), seed=seed)

    assert seed >= 40
    assert note_of(first) == note_of(again)
    assert str(first) == str(again)


async def test_the_traceback_begins_in_the_machine():
    """Forty frames of a library help no reader."""
    error = await failure_of(lambda: StoreMachine(Store()))
    files, frame = [], error.__traceback__
    while frame is not None:
        files.append(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next

    assert [] == [file for file in files if "/hypothesis/" in file]
    assert "keeps_what_was_put" == traceback_end(error)


def traceback_end(error: BaseException) -> str:
    """The function that raised."""
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code.co_name


async def test_a_right_product_is_explored_until_its_time_is_over():
    """A little more than its share: the round's last example is finished."""
    store = Store(faulty=False)
    explorer, lines = open_explore(0.5)
    began = time.monotonic()

    await explorer(lambda: StoreMachine(store_of(store)), steps=10)

    (line,) = lines
    assert time.monotonic() - began >= 0.5
    assert int(re.match(r"(\d+) examples", line)[1]) >= 5
    assert re.search(r"seeds 1 to \d+,", line)


def store_of(counted: Store) -> Store:
    """A right store for one example."""
    counted.calls += 1
    return Store(faulty=False)


async def test_one_round_is_whole_however_little_time_there_is():
    """Every test that was chosen has tried something."""
    made = count()
    explorer, lines = open_explore(1e-6)

    await explorer(lambda: next(made) is None or StoreMachine(Store(faulty=False)), steps=5)

    assert "5 examples, 25 steps" in lines[0]
    assert next(made) >= 5


class Breaks(StoreMachine):
    """The harness cannot go on in the third step."""

    steps = 0

    @invariant()
    def reaches(self) -> None:
        """Not always."""
        Breaks.steps += 1
        if Breaks.steps % 5 == 4:
            raise NotReady("reach the store", observed="nothing answers")


async def test_an_error_of_the_harness_stays_one_and_nothing_is_shrunk():
    """It is not tried again with fewer steps, and not taken for a failure of the product."""
    Breaks.steps = 0
    explorer, _ = open_explore()
    with pytest.raises(NotReady, match="nothing answers") as caught:
        await explorer(lambda: Breaks(Store(faulty=False)), steps=20)

    assert isinstance(caught.value, HarnessError)
    assert 4 == Breaks.steps


async def test_an_error_of_the_harness_while_shrinking_is_one():
    """The product failed, and then it could not be judged: the harness is what the reader mends."""
    failed = []

    class Lost(Machine):
        @rule()
        def step(self) -> None:
            if failed:
                raise HarnessError("reach the store", observed="it is gone")
            failed.append(1)
            raise AssertionError("the store answers")

    explorer, _ = open_explore()
    with pytest.raises(HarnessError, match="it is gone"):
        await explorer(Lost, steps=5)


async def test_shrinking_ends_with_its_time(monkeypatch):
    """The smallest so far is reported, with a word about it."""
    monkeypatch.setattr("harness_core.assertions.exploring._explore._SHRINK_S", 0.0)

    class Late(Machine):
        seen = 0

        @rule(value=st.integers())
        def step(self, value: int) -> None:
            self.seen += 1
            assert self.seen < 5, "the fifth step is like the first"

    explorer, _ = open_explore(1e-6)
    with pytest.raises(AssertionError, match="the fifth step") as caught:
        await explorer(Late, steps=30)

    assert "The time for shrinking was over" in note_of(caught.value)
    assert "at the end of 5 steps:" in note_of(caught.value)


async def test_a_failure_that_does_not_return_is_still_one():
    """The product remembered something, or it was a matter of time; the note says so."""
    made = count()

    class Once(Machine):
        @rule()
        def step(self) -> None:
            assert next(made) != 3, "the answer is always the same"

    explorer, _ = open_explore()
    with pytest.raises(AssertionError, match="the answer is always the same") as caught:
        await explorer(Once, steps=4)

    assert "did not fail in the same way" in note_of(caught.value)


async def test_what_a_teardown_finds_is_a_failure_with_its_steps():
    """Where a history ends is where much is judged."""

    class Ends(Machine):
        done = 0

        @rule()
        def step(self) -> None:
            self.done += 1

        def teardown(self) -> None:
            assert self.done < 3, "nothing outlives its owner"

    explorer, _ = open_explore()
    with pytest.raises(AssertionError, match="nothing outlives") as caught:
        await explorer(Ends, steps=9)

    assert "at the end of 3 steps, shrunk from 9:" in note_of(caught.value)


async def test_a_machine_that_cannot_be_made_fails_so():
    """By its own error."""

    class Refused(StoreMachine):
        def __init__(self) -> None:
            raise AssertionError("a store opens")

    error = await failure_of(Refused)

    assert "a store opens" == str(error)


async def test_cancelling_the_test_ends_its_thread():
    """Also in the middle of a wait that would never end."""

    class Waits(Machine):
        @rule()
        def step(self) -> None:
            self.wait_for(trio.sleep_forever)

    explorer, _ = open_explore()
    with trio.move_on_after(0.2) as scope:
        await explorer(Waits, steps=5)

    assert scope.cancelled_caught


async def test_cancelling_ends_rules_that_wait_for_nothing():
    """At the next example."""

    class Counts(Machine):
        @rule()
        def step(self) -> None:
            pass

    explorer, _ = open_explore(3600.0)
    with trio.move_on_after(0.2) as scope:
        await explorer(Counts, steps=5)

    assert scope.cancelled_caught


def test_a_test_without_a_loop_explores_too():
    """Its machine waits for nothing."""

    class Pure(Machine):
        total = 0

        @rule(value=st.integers(min_value=0))
        def add(self, value: int) -> None:
            self.total += value
            assert self.total < 10, "a sum stays small"

    explorer, _ = open_explore()
    with pytest.raises(AssertionError, match="a sum stays small") as caught:
        explorer.run(Pure, steps=9)

    assert "state.add(value=10)" in note_of(caught.value)
