"""Spans that a stack sends to a collector of OpenTelemetry, and whether those of an episode hang together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from harness_core.doubles.http import Answer, Recorder, Rule
from harness_core.doubles.telemetry import BadExport, Span, Trace, spans_of
from suites.integration.patience import eventually

__all__ = ["SERVICES", "Spans", "of_service"]

#: Those that work on an episode.
SERVICES: Final = ("controller", "controller-worker", "worker")

_EXPORTS: Final = "/v1/traces"

#: Exporters send in batches; the usual interval between two is 5 s.
_ARRIVE_S: Final = 12.0


class Spans:
    """What came of a stack's spans since the test began.

    Args:
        recorder: the service that they are sent to.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._mark = recorder.mark()
        self._taken: list[Span] = []

    def trace(self, trace_id: str) -> Trace:
        """What has come of a trace so far, by beginnings.

        Raises:
            AssertionError: a request was no export.
        """
        for request in self._recorder.matching(_EXPORTS, method="POST", since=self._mark):
            self._mark = max(self._mark, request.sequence)
            if 200 <= request.status < 300:
                try:
                    self._taken += spans_of(request)
                except BadExport as bad:
                    raise AssertionError(f"expected spans as OTLP, found {bad}") from bad
        mine = [span for span in self._taken if span.trace_id == trace_id]
        return Trace(trace_id=trace_id, spans=tuple(sorted(mine, key=lambda span: span.start_ns)))

    async def expect_whole(
        self,
        episode: Mapping[str, Any],
        *,
        killed_ns: int = 0,
        again: Collection[str] = (),
    ) -> Trace:
        """The trace of an episode that has ended, once it hangs together.

        Args:
            episode: as it is answered.
            killed_ns: when something of the stack was killed; what had begun by then may lack its parent, which
                was under way.
            again: names of spans of the worker that began later.

        Raises:
            AssertionError: it does not in time; says what is wrong with it.
        """
        wrong: list[str] = []

        async def there() -> bool:
            trace = self.trace(episode["trace_id"])
            wrong[:] = _wrong_with(
                trace, workflow_id=episode["workflow_id"], killed_ns=killed_ns, again=again
            )
            return not wrong

        await eventually(
            there,
            seconds=_ARRIVE_S,
            expected=f"the spans of {episode['episode_id']} in one trace that hangs together",
            seen=lambda: "; ".join([*wrong, self.trace(episode["trace_id"]).text()]),
        )
        return self.trace(episode["trace_id"])

    @contextmanager
    def away(self, **answer: Any) -> Iterator[int]:
        """The collector answers in another way during the block; gives the number of the last request before."""
        rule = Rule(answer=Answer(**answer))
        mark = self._recorder.mark()
        self._recorder.add_rule(rule)
        try:
            yield mark
        finally:
            self._recorder.remove_rule(rule)

    async def until_asked(self, since: int) -> None:
        """Wait until something has been sent after a request, whatever became of it.

        Raises:
            AssertionError: nothing is.
        """

        async def there() -> bool:
            return bool(self._recorder.matching(_EXPORTS, method="POST", since=since))

        await eventually(there, seconds=_ARRIVE_S, expected="spans to be sent, though in vain")


def of_service(trace: Trace, service: str) -> list[Span]:
    """The spans of a service: it is called after it, whatever stands around."""
    return [span for span in trace.spans if _service(span) == service]


def _service(span: Span) -> str:
    named = [service for service in SERVICES if service in span.service]
    return max(named, key=len, default="")


def _wrong_with(
    trace: Trace, *, workflow_id: str, killed_ns: int, again: Collection[str]
) -> list[str]:
    """What keeps the spans of an episode from being one trace of all that work on it."""
    wrong = [f"no span of {service}" for service in SERVICES if not of_service(trace, service)]
    later = {span.name for span in of_service(trace, "worker") if span.start_ns >= killed_ns}
    wrong += [f"no span {name} of the worker after the kill" for name in sorted({*again} - later)]
    if not any(workflow_id in map(str, span.attributes.values()) for span in trace.spans):
        wrong.append("no span names its workflow at Temporal")
    roots = [span for span in trace.spans if not span.parent_id]
    if len(roots) != 1:
        wrong.append(f"{len(roots)} spans are the first of all")
    wrong += [
        f"a span hangs below none: {span.text()}"
        for span in trace.loose()
        if span.start_ns >= killed_ns
    ]
    wrong += [f"a span was sent more than once: {each}" for each in trace.repeated()]
    return wrong
