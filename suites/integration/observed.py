"""What Langfuse was told, read from what stands in for it: observations of runs, and scores.

Products send observations as OpenTelemetry spans or as batches of their own kind, whichever their client
speaks; scores one by one or several at once. The same id sent again is the same thing, as Langfuse has it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from harness_core.doubles.http import Answer, Recorded, Recorder, Rule
from harness_core.doubles.telemetry import BadExport, spans_of
from harness_core.system.compose import Stack
from suites.integration.episodes import Episodes
from suites.integration.patience import SOON_S, eventually

__all__ = ["Langfuse", "Observation", "all_but", "away", "linked", "refusing"]

_TYPE: Final = "langfuse.observation.type"
_LEVEL: Final = "langfuse.observation.level"
_FAILED: Final = ("ERROR", "WARNING")

#: The kinds of a batch → what the observation is.
_CREATED: Final = {
    "event-create": "event",
    "generation-create": "generation",
    "observation-create": "span",
    "span-create": "span",
    "tool-create": "tool",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something of a run, as Langfuse has it.

    Attributes:
        kind: ``generation``, ``tool``, ``event``, ``span``, …
        parent: id of the observation that it hangs below; empty for none.
        text: all that is said of it, as JSON.
        failed: it is told as an error or a warning.
        start_ns, end_ns: nanoseconds since 1970; 0 where a batch of another kind says it in words.
    """

    id: str
    trace_id: str
    kind: str
    name: str
    parent: str
    text: str
    failed: bool
    start_ns: int = 0
    end_ns: int = 0


class Langfuse:
    """What stands in for Langfuse beside a stack.

    Args:
        recorder: the service that does.
        whole: all that it was told since it began, not from now on: for one that has just been started again.
    """

    def __init__(self, recorder: Recorder, *, whole: bool = False) -> None:
        self.recorder = recorder
        self._mark = 0 if whole else recorder.mark()

    def observations(self, trace_id: str) -> tuple[Observation, ...]:
        """What it has of a trace, by their beginning.

        Raises:
            AssertionError: a request was no export.
        """
        found = {one.id: one for request in self._requests() for one in _observations(request)}
        mine = [one for one in found.values() if one.trace_id == trace_id]
        return tuple(sorted(mine, key=lambda one: (one.start_ns, one.id)))

    def traces(self) -> frozenset[str]:
        """The traces that it has been told of since the test began."""
        told = (one for request in self._requests() for one in _observations(request))
        return frozenset(one.trace_id for one in told)

    def scores(self, *trace_ids: str) -> list[dict[str, Any]]:
        """The scores of traces in the order they came; those of an id as they stand, the last one's."""
        found: dict[str, dict[str, Any]] = {}
        for number, score in enumerate(_scores(self._requests())):
            key = str(score.get("id") or number)
            found.pop(key, None)
            found[key] = score
        return [each for each in found.values() if each.get("traceId") in trace_ids]

    async def until_scored(self, trace_id: str, *, value: float) -> dict[str, Any]:
        """The score of a trace, when it has this value."""

        async def there() -> dict[str, Any] | None:
            return next((s for s in self.scores(trace_id) if s.get("value") == value), None)

        found: dict[str, Any] = await eventually(
            there,
            seconds=SOON_S,
            expected=f"a score of {value} for {trace_id} at Langfuse",
            seen=lambda: self.scores(trace_id) or "none",
        )
        return found

    def _requests(self) -> list[Recorded]:
        """Those that Langfuse took."""
        taken = self.recorder.matching(method="POST", since=self._mark)
        return [request for request in taken if 200 <= request.status < 300]


async def linked(episodes: Episodes, episode_id: str) -> dict[str, Any]:
    """An episode when each of its traces names one of Langfuse."""
    last: dict[str, Any] = {}

    async def there() -> bool:
        last.update(await episodes.get(episode_id))
        return all(trace["langfuse_trace_id"] for trace in last["traces"])

    await eventually(
        there,
        seconds=SOON_S,
        expected=f"a langfuse_trace_id in each trace of {episode_id}",
        seen=lambda: [(t["name"], t["langfuse_trace_id"]) for t in last.get("traces", [])],
    )
    return last


@contextmanager
def away(stack: Stack, service: str, **answer: Any) -> Iterator[None]:
    """Langfuse answers in another way during the block; without a word, nothing comes at all."""
    recorder = stack.recorder(service)
    rule = Rule(answer=Answer(**answer or {"drop": "unanswered"}))
    recorder.add_rule(rule)
    try:
        yield
    finally:
        recorder.remove_rule(rule)


@contextmanager
def refusing(stack: Stack, service: str, word: str) -> Iterator[None]:
    """Langfuse refuses what says a word during the block, and takes all else."""
    recorder = stack.recorder(service)

    def answer(request: Recorded) -> Answer:
        told = request.path.endswith("/ingestion") and word.encode() in request.body
        if request.path.endswith("/traces"):
            told = any(word in str(dict(span.attributes)) for span in spans_of(request))
        return Answer(status=400) if told else Answer(json={})

    rule = Rule(method="POST", answer=answer)
    recorder.add_rule(rule)
    try:
        yield
    finally:
        recorder.remove_rule(rule)


async def all_but(episodes: Episodes, episode_id: str, word: str) -> None:
    """All traces of an episode come to name one at Langfuse, but those that say a word."""
    last: list[tuple[bool, bool]] = []

    async def there() -> bool:
        episode = await episodes.get(episode_id)
        last[:] = [
            (word in str(trace["detail"]), trace["langfuse_trace_id"] is not None)
            for trace in episode["traces"]
        ]
        claimed = [told for says, told in last if says and told]
        assert not claimed, f"no row claims what Langfuse has refused: found {episode['traces']}"
        return all(told for says, told in last if not says)

    await eventually(
        there,
        seconds=SOON_S,
        expected=f"all of {episode_id} at Langfuse but what it refuses",
        seen=lambda: last,
    )


def _observations(request: Recorded) -> Iterator[Observation]:
    if request.path.endswith("/traces"):
        yield from _spans(request)
    elif request.path.endswith("/ingestion"):
        for each in _batch(request):
            body = each.get("body") or {}
            if each.get("type") in _CREATED:
                yield Observation(
                    id=str(body.get("id")),
                    trace_id=str(body.get("traceId")),
                    kind=_CREATED[each["type"]],
                    name=str(body.get("name")),
                    parent=str(body.get("parentObservationId") or ""),
                    text=json.dumps(body),
                    failed=body.get("level") in _FAILED,
                )


def _spans(request: Recorded) -> Iterator[Observation]:
    try:
        spans = spans_of(request)
    except BadExport as bad:
        raise AssertionError(f"expected Langfuse to be sent OTLP, found {bad}") from bad
    for span in spans:
        yield Observation(
            id=span.span_id,
            trace_id=span.trace_id,
            kind=str(span.attributes.get(_TYPE, "span")),
            name=span.name,
            parent=span.parent_id,
            text=json.dumps(dict(span.attributes), default=str),
            failed=span.status == "error" or span.attributes.get(_LEVEL) in _FAILED,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
        )


def _scores(requests: list[Recorded]) -> Iterator[dict[str, Any]]:
    for request in requests:
        if request.path.endswith("/scores"):
            found = request.json()
            yield from found if isinstance(found, list) else [found]
        elif request.path.endswith("/ingestion"):
            for each in _batch(request):
                if each.get("type") == "score-create":
                    yield dict(each["body"])


def _batch(request: Recorded) -> list[Mapping[str, Any]]:
    found = request.json()
    return list(found.get("batch", [])) if isinstance(found, dict) else []
