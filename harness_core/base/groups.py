"""Exception groups at the edge of an opener: callers see what went wrong, not its wrapping.

A group of one is opened. When several things were started side by side and several of
them could not be, that is one failure with several witnesses: the first error is raised and the
others are in its notes; so it is when several of them failed by assertion, or one did, twice, each time
otherwise. Any other group stays what it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from harness_core.base.errors import HarnessError

#: How the message of a group begins that says nothing but that there is one.
_NURSERY = "Exceptions from Trio nursery"


def unwrap(error: BaseException) -> BaseException:
    """The one error inside nested groups; the group itself when it holds several that differ.

    Several :class:`HarnessError` count as one, and so do several assertions: the first, with the others in
    its notes.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        leaves = _leaves(error)
        harness = [leaf for leaf in leaves if isinstance(leaf, HarnessError)]
        if len(harness) == len(leaves):
            return _first_of_ours(harness)
        if all(isinstance(leaf, AssertionError) for leaf in leaves):
            return _first_assertion(leaves, said=error.message)
    return error


def _first_assertion(errors: Sequence[BaseException], *, said: str) -> BaseException:
    first, *others = errors
    if not said.startswith(_NURSERY):  # Hypothesis says that one example failed in two ways
        first.add_note(said)
    for other in dict.fromkeys(map(str, others)):
        if other != str(first):
            first.add_note(f"at the same time: {other}")
    return first


def _first_of_ours(errors: Sequence[HarnessError]) -> HarnessError:
    first, *others = errors
    same = [each for each in others if each.observed == first.observed]
    if same:  # one cause is reported once
        actions = dict.fromkeys(each.action for each in same)
        first.add_note(f"for the same reason cannot {', cannot '.join(actions)}")
    for other in others:
        if other not in same:
            first.add_note(f"at the same time: {other}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found


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
