"""Which servers the tests of the core run on (``--services``, as in every suite), and in which loops."""

from __future__ import annotations

import asyncio
import functools
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
import trio


@dataclass(frozen=True, slots=True)
class Caller:
    """A user with a loop of its own of what lives on another.

    Attributes:
        name: of its library.
        run: runs an async function in that loop, in this thread.
        within: awaits an async function, for so many seconds.
    """

    name: str
    run: Callable[[Callable[[], Awaitable[Any]]], Any]
    within: Callable[[float, Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def _within_trio(seconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        with trio.fail_after(seconds):
            return await call()
    except trio.TooSlowError as error:
        raise TimeoutError from error


async def _within_asyncio(seconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(seconds):
        return await call()


async def _within_anyio(seconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
    with anyio.fail_after(seconds):
        return await call()


CALLERS = (
    Caller("trio", trio.run, _within_trio),
    Caller("asyncio", lambda call: asyncio.run(call()), _within_asyncio),
    Caller("anyio-trio", functools.partial(anyio.run, backend="trio"), _within_anyio),
    Caller("anyio-asyncio", functools.partial(anyio.run, backend="asyncio"), _within_anyio),
)


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.name)
def caller(request: pytest.FixtureRequest) -> Caller:
    """Each library whose tasks may await a handle's methods."""
    found: Caller = request.param
    return found


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A test and what it starts can be interrupted, whatever was there before.

    A run that a shell started in the background ignores SIGINT, and so would every program that it
    starts; two servers in one test, ended in the order of their start, leave the handler of a loop
    that is no more.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def provider(pytestconfig: pytest.Config) -> str:
    """Where servers come from; a test that uses it is one of those that ``--services`` is for."""
    name: str = pytestconfig.getoption("--services")
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on the chosen servers, so that it can be selected: ``-m services``."""
    for item in items:
        if "provider" in getattr(item, "fixturenames", ()):
            item.add_marker("services")
