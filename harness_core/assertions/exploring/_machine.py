"""A state machine whose rules reach async code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from harness_core.base.bridge import from_thread

P = ParamSpec("P")
T = TypeVar("T")


class Machine(RuleBasedStateMachine):
    """Rules and invariants are plain functions; they run in a thread beside the test's loop."""

    def wait_for(self, call: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await ``call(*args, **kwargs)`` on the loop of the test; for rules, not for async code.

        Raises:
            trio.Cancelled: the test was cancelled; lets the thread end.
        """
        return from_thread(call, *args, **kwargs)
