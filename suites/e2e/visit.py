"""Which test uses an ecosystem now, and whether it has it to itself.

Several tests may use one ecosystem at once, each in a process of its own. The model calls that a
test causes are booked on it by the trace ids it sends; what only a test alone may do is refused
to the others, with the marker that gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness_core.errors import HarnessError

if TYPE_CHECKING:
    from harness_core.llm import GatewayClient

__all__ = ["Visit"]

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")

#: Tools whose calls make the model work, under the trace context that the caller sent with them.
_CAUSES: Final = frozenset({"ingest", "route.execute", "trigger"})


class Visit:
    """The test that uses an ecosystem now, in this process.

    Attributes:
        test: its id; empty between tests and for an ecosystem of a test's own.
        alone: it may take parts of the ecosystem away.
        gateway: where its calls are booked on it; ``None`` when all calls are.
    """

    def __init__(self) -> None:
        self.test = ""
        self.alone = True
        self.gateway: GatewayClient | None = None

    def begin(self, test: str, *, alone: bool, gateway: GatewayClient | None) -> None:
        """Another test is at work now."""
        self.test = test
        self.alone = alone
        self.gateway = gateway

    def check_alone(self, action: str) -> None:
        """Refuse what other tests would suffer from.

        Raises:
            HarnessError: the test shares the ecosystem; says how to have it alone.
        """
        if not self.alone:
            raise HarnessError(
                action,
                observed=f"{self.test} shares the ecosystem with the tests of other workers",
                next_step="Mark the test @pytest.mark.disturbs: it then has it to itself",
            )

    async def book(
        self, tool: str, arguments: Mapping[str, Any] | None, headers: Mapping[str, str] | None
    ) -> None:
        """Have the model calls that a tool call is about to cause booked on this test."""
        if tool not in _CAUSES or self.gateway is None:
            return
        texts = [*_texts(arguments or {}), *(headers or {}).values()]
        for trace_id in {match[1] for text in texts if (match := _TRACEPARENT.fullmatch(text))}:
            await self.gateway.set_scope(self.test, trace_id=trace_id)


def _texts(value: Any) -> Iterator[str]:
    """Every text of nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
