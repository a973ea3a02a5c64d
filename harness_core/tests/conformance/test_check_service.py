"""The conformance check itself: the fake passes it, and it sees every way to break a promise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from harness_core.base.errors import Unavailable
from harness_core.infrastructure.services import Place, Service
from harness_core.tests.conformance.services import (
    FakeService,
    ServiceState,
    ask_fake,
    check_service,
)
from harness_core.tests.conformance.services import open_fake_service as open_fake


async def write_mark(service: FakeService) -> None:
    """Leave a mark."""
    service.marks.add("mark")


async def read_mark(service: FakeService) -> bool:
    """Whether the mark is there."""
    return "mark" in service.marks


async def test_the_fake_passes() -> None:
    """The fake keeps every promise of the protocol, over a real socket."""
    opened = 0

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        nonlocal opened
        opened += 1
        async with open_fake() as service:
            yield service

    await check_service(factory, ask=ask_fake, state=ServiceState(write=write_mark, read=read_mark))

    assert 2 == opened


class Wrong:
    """A fake with one operation replaced; everything else is passed on."""

    name = "wrong"

    def __init__(self, inner: FakeService, **replaced: object) -> None:
        self._inner = inner
        self._replaced = replaced

    def __getattr__(self, key: str) -> object:
        if key in self._replaced:
            return self._replaced[key](self._inner)
        return getattr(self._inner, key)


def nothing(_: FakeService):
    """An operation that does nothing."""

    async def do_nothing() -> None:
        return

    return do_nothing


def stops_instead(inner: FakeService):
    """A pause that closes the connections."""
    return inner.stop


def forgets(inner: FakeService):
    """A start that loses the data."""

    async def start() -> None:
        await inner.start()
        inner.marks.clear()

    return start


def restarts_silently(inner: FakeService):
    """A start that accepts to be called twice."""

    async def start() -> None:
        if inner._scope is None:
            await inner.start()

    return start


def moves(inner: FakeService):
    """A start on another port."""

    async def start() -> None:
        await FakeService.start(inner) if inner._scope is not None else await moved(inner)

    return start


async def moved(inner: FakeService) -> None:
    """Start on a new port."""
    inner._port = 0
    await inner.start()


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        pytest.param({"stop": nothing}, "refuse connections after stop", id="does-not-stop"),
        pytest.param({"kill": nothing}, "refuse connections after kill", id="does-not-die"),
        pytest.param({"pause": nothing}, "expected a paused fake to hang", id="does-not-pause"),
        pytest.param(
            {"pause": stops_instead}, "expected a paused fake to hang", id="closes-on-pause"
        ),
        pytest.param({"start": forgets}, "to keep its data over stop", id="forgets"),
        pytest.param(
            {"start": restarts_silently}, "a second start to be refused", id="starts-twice"
        ),
        pytest.param({"start": moves}, "the address", id="moves"),
        pytest.param({"place": lambda _: Place()}, "expected a pid or a container", id="nowhere"),
        pytest.param({"place": lambda _: Place(pid=1)}, "expected no pid of", id="still-somewhere"),
    ],
)
async def test_a_broken_promise_is_seen(replaced: dict[str, object], says: str) -> None:
    """Each double breaks one promise, and the check names that one."""

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        async with open_fake() as service:
            wrong = Wrong(service, **replaced)
            wrong.name = "fake"
            yield wrong

    with pytest.raises(AssertionError, match=says):
        await check_service(
            factory, ask=ask_fake, state=ServiceState(write=write_mark, read=read_mark)
        )


async def test_a_service_that_does_not_resume_is_seen(autojump_clock: object) -> None:
    """A service that stays frozen fails after the time an answer may take."""

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        async with open_fake() as service:
            yield Wrong(service, resume=nothing)

    with pytest.raises(AssertionError, match=r"an answer from .* after resume, found none"):
        await check_service(factory, ask=ask_fake_in_memory)


async def ask_fake_in_memory(service: Service) -> str:
    """An ask that touches no socket, which the virtual clock would not wait for."""
    inner = service._inner if isinstance(service, Wrong) else service
    if inner._scope is None:
        raise ConnectionRefusedError
    await inner._running.wait()
    return "here"


@pytest.mark.parametrize("when", ["close", "a kill"])
async def test_what_is_left_behind_is_seen(when: str) -> None:
    """A provider that leaves a directory behind fails, and the check names it and the occasion."""
    left: list[str] = []
    opened = 0

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        nonlocal opened
        opened += 1
        async with open_fake() as service:
            if opened == 2 or when == "close":
                left.append("a-directory")
            yield service

    with pytest.raises(AssertionError, match=f"nothing left after {when}, found a-directory"):
        await check_service(factory, ask=ask_fake, leftovers=lambda: left)


async def test_a_listener_that_outlives_its_service_is_seen() -> None:
    """A provider whose server still answers after close fails."""
    async with trio.open_nursery() as nursery:

        @asynccontextmanager
        async def factory() -> AsyncIterator[Service]:
            service = FakeService(nursery)
            await service.start()
            yield service

        with pytest.raises(AssertionError, match="refuse connections after it was closed"):
            await check_service(factory, ask=ask_fake)
        nursery.cancel_scope.cancel()


async def test_an_external_service_must_refuse() -> None:
    """A provider that may not take the server away, and does, fails."""

    def refuse(_: FakeService):
        async def refused() -> None:
            raise Unavailable("stop it", observed="it is not ours")

        return refused

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        async with open_fake() as service:
            yield Wrong(service, stop=refuse)

    with pytest.raises(AssertionError, match="expected kill to be refused"):
        await check_service(factory, ask=ask_fake, controllable=False)
