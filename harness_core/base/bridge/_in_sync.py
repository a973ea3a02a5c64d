"""The async methods of a handle for code without a loop: each waits for its answer.

A handle offers them as one attribute, beside its own:

    class Synchronous(View["Kettle"]):
        boil = in_sync(Kettle.boil)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from harness_core.base.bridge._loop import Loop

H = TypeVar("H")
P = ParamSpec("P")
T = TypeVar("T")


class View(Generic[H]):
    """A handle as synchronous code uses it.

    Args:
        handle: has the methods.
        loop: where they run.
    """

    def __init__(self, handle: H, loop: Loop) -> None:
        self._handle = handle
        self._loop = loop


class SyncMethod(Generic[P, T]):
    """A method of a :class:`View`; made by :func:`in_sync`."""

    def __init__(self, method: Callable[..., Awaitable[T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, view: View[Any], owner: object = None) -> Callable[P, T]:
        """What the method is for one handle."""

        def wait(*args: P.args, **kwargs: P.kwargs) -> T:
            handle, loop = view._handle, view._loop  # noqa: SLF001 - the other half of this class
            return loop.run(lambda: self._method(handle, *args, **kwargs))

        wait.__doc__ = self.__doc__
        return wait


def in_sync(method: Callable[Concatenate[H, P], Awaitable[T]]) -> SyncMethod[P, T]:
    """A method that waits for what an async one of the handle answers, and answers that.

    Raises:
        HarnessError: when it is called in a thread that runs a loop, which would stand still.
    """
    return SyncMethod(method)
