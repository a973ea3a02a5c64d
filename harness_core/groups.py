"""Exception groups of one: callers see the error that was raised, not its wrapping (style 13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["lone_error", "unwrap"]


def unwrap(error: BaseException) -> BaseException:
    """The one error inside nested groups of one; the group itself when it holds several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@asynccontextmanager
async def lone_error() -> AsyncIterator[None]:
    """Raise a lone error out of an exception group as itself; put it around an opener's nursery."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if error is group:
            raise
        context = error.__context__
        try:
            raise error
        finally:
            # What it was raised in, not the group it travelled in.
            error.__context__ = context
