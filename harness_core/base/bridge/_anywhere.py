"""Methods that may be awaited in any loop: what a handle's class writes above them."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from harness_core.base.bridge._callers import library_of_task
from harness_core.base.bridge._loop import Loop, open_loop, refuse_caller

P = ParamSpec("P")
T = TypeVar("T")


class HasLoop(Protocol):
    """Something that lives on a loop."""

    @property
    def loop(self) -> Loop:
        """The loop it lives on."""


H = TypeVar("H", bound=HasLoop)


def at_home(
    method: Callable[Concatenate[H, P], Awaitable[T]],
) -> Callable[Concatenate[H, P], Coroutine[Any, Any, T]]:
    """A method that runs on the loop of its object, whichever loop awaits it."""

    @functools.wraps(method)
    async def carried(self: H, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.loop.call(lambda: method(self, *args, **kwargs))

    return carried


def anywhere(function: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A function written for trio that belongs to no loop: it runs in the caller's own.

    Awaited in asyncio it runs in a trio loop made for this one call, which costs half a millisecond.

    Raises:
        HarnessError: from the function: it is awaited in a task of neither.
    """

    @functools.wraps(function)
    async def carried(*args: P.args, **kwargs: P.kwargs) -> T:
        library = library_of_task()
        if library == "trio":
            return await function(*args, **kwargs)
        if not library:
            refuse_caller(f"call {function.__qualname__}")
        with open_loop(f"the loop of {function.__qualname__}") as loop:
            return await loop.call(lambda: function(*args, **kwargs))

    return carried
