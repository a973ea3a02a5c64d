"""Examples of Hypothesis against the running stack: each is sent by the test that asks, one after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from harness_core.base.bridge import blocking, from_thread

__all__ = ["for_all"]

T = TypeVar("T")

#: Requests take as long as the machine needs.
_SLOW: Final = (HealthCheck.too_slow, HealthCheck.data_too_large)


async def for_all(
    examples: SearchStrategy[T], check: Callable[[T], Awaitable[None]], *, most: int
) -> None:
    """Check examples; the same ones in each run, and of one that fails the smallest that does.

    Args:
        examples: what is drawn.
        check: asserts, for one example.
        most: how many are drawn.

    Raises:
        AssertionError: of the smallest example that was found to fail.
    """

    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=_SLOW,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )
    @given(examples)
    def each(example: T) -> None:
        from_thread(check, example)

    await blocking(each)
