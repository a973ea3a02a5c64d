"""The collector of spans that another process of the run holds: its spans, and trouble on request."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from harness_core.errors import HarnessError
from harness_core.hosting import ask
from harness_core.http import Answer, Rule
from harness_core.telemetry import Collector, Span, SpanEvent
from harness_core.wait import deadline, until
from suites.e2e.visit import Visit

__all__ = ["attached_collector", "collector_act"]


def collector_act(collector: Collector, verb: str, arguments: Mapping[str, Any]) -> Any:
    """What a host does to its collector for a test in another process."""
    recorder = collector.recorder
    if verb == "mark":
        return recorder.mark()
    if verb == "refused":
        return list(collector.refused)
    if verb == "received":
        return len(recorder.matching(arguments["path"], since=arguments["since"]))
    if verb == "add_rule":
        answer = Answer(**arguments["answer"])
        recorder.add_rule(Rule(path=arguments["path"], answer=answer, name=arguments["name"]))
        return None
    for rule in [rule for rule in recorder.rules if rule.name == arguments["name"]]:
        recorder.remove_rule(rule)
    return None


def attached_collector(host: Path, told: Mapping[str, Any], *, visit: Visit) -> Collector:
    """The collector of the run, as tests use it in the process that holds it."""
    recorder: Any = _Recorder(host, told["endpoint"], visit)
    spans: Any = _Looked(lambda: list(_spans(Path(told["spans"]))))
    refused: Any = _Looked(lambda: ask(host, "act", part="collector", verb="refused", arguments={}))
    return Collector(recorder, spans, refused)


class _Looked(Sequence[Any]):
    """A list that is read anew at every look."""

    def __init__(self, look: Callable[[], list[Any]]) -> None:
        self._look = look

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...

    def __getitem__(self, at: int | slice) -> Any:
        return self._look()[at]

    def __len__(self) -> int:
        return len(self._look())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._look())


def _spans(path: Path) -> Iterator[Span]:
    """What the collector has written so far; a line in the making is for the next look."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            return
        yield Span(**{**row, "events": tuple(SpanEvent(**event) for event in row["events"])})


class _Recorder:
    """The part of :class:`Recorder` that tests of a collector use."""

    def __init__(self, host: Path, url: str, visit: Visit) -> None:
        self.url = url
        self._host = host
        self._visit = visit

    def mark(self) -> int:
        """See :class:`Recorder`."""
        mark: int = self._ask("mark")
        return mark

    async def wait_for(self, path: str, *, since: int = 0, count: int = 1, seconds: float) -> None:
        """See :class:`Recorder`; the requests themselves stay where they are."""

        async def enough() -> bool:
            received: int = self._ask("received", path=path, since=since)
            return received >= count

        with deadline(f"see {count} requests for {path} at the collector", seconds=seconds):
            await until(enough)

    def add_rule(self, rule: Rule) -> None:
        """See :class:`Recorder`; for rules with one fixed answer."""
        self._visit.check_alone("bring trouble to the collector")
        if not isinstance(rule.answer, Answer):
            raise HarnessError(
                f"add the rule {rule.name!r} to the collector of the run",
                observed="its answer is a function, which cannot travel to another process",
                next_step="Give the rule one fixed Answer",
            )
        self._ask(
            "add_rule", path=rule.path, name=rule.name, answer=dataclasses.asdict(rule.answer)
        )

    def remove_rule(self, rule: Rule) -> None:
        """See :class:`Recorder`."""
        self._ask("remove_rule", name=rule.name)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        return ask(self._host, "act", part="collector", verb=verb, arguments=arguments)
