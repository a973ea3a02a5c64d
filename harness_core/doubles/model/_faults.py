"""Planted trouble of the provider: late, held, refusing, cut, garbled, wrong or no answers."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, get_args

import trio
from msgspec import Meta

from harness_core.base.reading import Table
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._request import bare

Kind = Literal["latency", "hold", "status", "cut", "malformed", "hang", "endless", "answer"]

#: Kinds of which the trouble is what a message says: embeddings have none.
_SAID: Final = ("answer", "endless")


class Fault(Table, frozen=True):
    """One kind of trouble, which calls it meets, and how often; checked when it is planted.

    Attributes:
        kind: ``latency`` (answer ``latency_s`` late), ``hold`` (answer once the fault is withdrawn:
            a session stays where it is for as long as a test wants), ``status`` (refuse with
            ``status``), ``cut`` (close the connection after ``after_events`` events),
            ``malformed`` (``body`` in place of a message: no JSON unless given), ``hang`` (no answer
            until the client gives up), ``endless`` (an answer that goes on until the client gives
            up), ``answer`` (a well-formed message that says ``text`` and calls ``tool``, if one is
            named: a model that misbehaves).
        times: how many calls it meets before it is spent.
        share: which part of the calls that match it meets, above 0 up to 1; drawn from ``seed``, so
            that two runs meet the same ones.
        seed: of the draw.
        body: what a ``malformed`` answer is: JSON of another shape, or none.
        text: what an ``answer`` says, or a ``status``; may be empty, for a ``status`` in words of the
            harness's own.
        tool: the tool an ``answer`` calls: its whole name, or the bare name of one on offer.
        input: the arguments of that call, whatever the tool's schema says.
        cache_read_tokens: of an ``answer``: tokens that it read from the cache, beside its input.
        cache_write_tokens: the same of those that it wrote to the cache.
        retry_after_s: sent with ``status`` when given.
        contains: only calls whose system, messages or tools contain this text.
        also: only calls that contain this text too, e.g. a tool's name beside a test's own word.
        model: only calls for this model.
        without_tools: only calls that offer no tool.
        offers: only calls that offer one of these tools, by its bare name, whatever server it is of.
    """

    kind: Annotated[Kind, Meta(description=f"one of {', '.join(get_args(Kind))}")]
    times: Annotated[int, Meta(ge=1)] = 1
    latency_s: Annotated[float, Meta(ge=0, description="seconds from 0 on")] = 0.0
    status: Annotated[int, Meta(ge=400, le=599, description="an HTTP status from 400 to 599")] = 529
    retry_after_s: float | None = None
    after_events: Annotated[int, Meta(ge=0, description="events from 0 on")] = 2
    contains: str = ""
    also: str = ""
    model: str = ""
    without_tools: bool = False
    offers: tuple[str, ...] = ()
    body: str = '{"type": "message", "content": [{"type": "te'
    text: str = ""
    tool: str = ""
    input: Mapping[str, Any] = {}
    cache_read_tokens: Annotated[int, Meta(ge=0, description="tokens from 0 on")] = 0
    cache_write_tokens: Annotated[int, Meta(ge=0, description="tokens from 0 on")] = 0
    share: Annotated[float, Meta(gt=0, le=1, description="a part above 0, up to 1")] = 1.0
    seed: int = 0

    def describe(self) -> str:
        """What the ledger writes beside a call it met."""
        return {
            "latency": f"latency {self.latency_s:g} s",
            "status": f"status {self.status}",
            "cut": f"cut after {self.after_events} events",
            "answer": f"answer of {len(self.text)} characters"
            + (f" that calls {self.tool}" if self.tool else ""),
        }.get(self.kind, self.kind)


def planted_refusal(status: int, *, retry_after_s: float | None = None, text: str = "") -> Refusal:
    """The answer of a provider that fails because that was planted."""
    headers = {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}
    text = text or "planted by the harness"
    return Refusal(status, text, headers=headers, reason="fault", fault=f"status {status}")


@dataclass(slots=True, kw_only=True)
class Planted:
    """A fault that waits for its calls, and what is left of it.

    Attributes:
        number: names it.
        fault: what it does.
        met: how many it has met.
        withdrawn: set when it is taken back; calls that it holds go on then.
    """

    number: int
    fault: Fault
    draw: random.Random
    met: int = 0
    withdrawn: trio.Event = field(default_factory=trio.Event)

    @property
    def left(self) -> int:
        """How many calls it may still meet."""
        return self.fault.times - self.met


class FaultBoard:
    """Faults waiting for their calls, oldest first."""

    def __init__(self) -> None:
        self._planted: dict[int, Planted] = {}
        self._count = 0

    def add(self, fault: Fault) -> int:
        """Plant one; returns the number to withdraw it by."""
        self._count += 1
        self._planted[self._count] = Planted(
            number=self._count,
            fault=fault,
            draw=random.Random(fault.seed),  # noqa: S311 - repeatable on purpose
        )
        return self._count

    def withdraw(self, number: int) -> bool:
        """Forget one and let go of what it holds; whether it still waited for calls."""
        planted = self._planted.pop(number, None)
        if planted is None:
            return False
        planted.withdrawn.set()
        return planted.left > 0

    def clear(self) -> None:
        """Forget all."""
        for number in list(self._planted):
            self.withdraw(number)

    def planted(self) -> tuple[Planted, ...]:
        """Those not yet withdrawn, spent or not."""
        return tuple(self._planted.values())

    def take(
        self, *, model: str, text: str, tools: Collection[str] = (), says: bool = True
    ) -> Planted | None:
        """The first fault that matches a call; counts it down.

        Args:
            model: that it asks.
            text: of it.
            tools: that it offers.
            says: its answer is a message, not vectors.
        """
        offered = {bare(tool) for tool in tools}
        for planted in self._planted.values():
            fault = planted.fault
            matches = (
                planted.left > 0
                and fault.model in ("", model)
                and fault.contains in text
                and fault.also in text
                and not (fault.without_tools and tools)
                and (not fault.offers or not offered.isdisjoint(fault.offers))
                and (says or fault.kind not in _SAID)
            )
            if matches and (fault.share == 1 or planted.draw.random() < fault.share):
                planted.met += 1
                return planted
        return None
