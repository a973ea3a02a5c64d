"""How inputs are generated: the same ones in each run, however slow the daemon or the machine is.

A smaller example of a silence costs a whole wait each time it is tried, for minutes, and tells no more:
after some, no other is tried. An answer that is wrong is made as small as it gets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Final

from hypothesis import HealthCheck, reject, settings

from suites.daemon.wire import RemoteProtocolError, Violation

__all__ = ["generated"]

#: Examples that are left without an answer, in full each.
_SILENCES: Final = 3

#: Of what a test is given, the kinds that are generated here; the others are fixtures.
_GENERATED: Final = (str, bytes, int, float, list, tuple, dict)

_Test = Callable[..., Any]


def generated(examples: int) -> Callable[[_Test], _Test]:
    """So many examples for one test; a failure shows one, and what repeats it.

    Args:
        examples: how many; ``@given(…)`` stands below it.
    """
    rule = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )

    def decorate(test: Any) -> _Test:
        handle = test.hypothesis
        wrap = _awaited if iscoroutinefunction(handle.inner_test) else _called
        handle.inner_test = wrap(handle.inner_test)
        decorated: _Test = rule(test)
        return decorated

    return decorate


class _Silences:
    """The examples of one test that nothing answered."""

    def __init__(self) -> None:
        self._seen: list[str] = []

    def begin(self, given: dict[str, Any]) -> str:
        """What is tried next, unless enough of others have shown the same."""
        drawn = {key: each for key, each in given.items() if isinstance(each, _GENERATED)}
        example = repr(drawn)
        if len(self._seen) >= _SILENCES and example not in self._seen:
            reject()
        return example

    def end(self, example: str, error: RemoteProtocolError) -> None:
        """It has failed."""
        if error.violation is Violation.SILENT:
            self._seen.append(example)


def _awaited(inner: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    silences = _Silences()

    @wraps(inner)
    async def once(**given: Any) -> None:
        example = silences.begin(given)
        try:
            await inner(**given)
        except RemoteProtocolError as error:
            silences.end(example, error)
            raise

    return once


def _called(inner: Callable[..., None]) -> Callable[..., None]:
    silences = _Silences()

    @wraps(inner)
    def once(**given: Any) -> None:
        example = silences.begin(given)
        try:
            inner(**given)
        except RemoteProtocolError as error:
            silences.end(example, error)
            raise

    return once
